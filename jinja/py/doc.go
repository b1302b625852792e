// Package py has values that behave as Python's do: integers of any size, floats and their text,
// strings by code point, ordered dictionaries, tuples beside lists, one-shot iterators, and Jinja's
// undefined. It knows their operators, conversions, methods and string formatting, and nothing of
// templates. It never reaches anything but the data it is given, never panics on any input, and what
// an operation may use of time and memory is taken from a Budget.
package py
