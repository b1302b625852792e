// Package rule decides by tables: each row has a condition of what was observed of an object, and what is decided where the
// condition is true. It is the same for every kind of object that runs pods; the tables are those of the controllers.
//
// All of it is pure: it does no I/O and reads no clock.
package rule
