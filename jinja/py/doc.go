// Package py has values that behave as Python's do: integers of any size, floats and their text,
// strings by code point, ordered dictionaries, tuples beside lists, one-shot iterators, and Jinja's
// undefined. It knows their operators, conversions, methods and string formatting, and nothing of
// templates. It uses only the data that it is given, never panics on any input, and takes the time and memory of operations
// from a Budget.
package py
