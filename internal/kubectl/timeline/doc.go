// Package timeline tells what has become of a volume: it gathers everything about it that the user may
// read (Gather), and makes of that, without any further question to anybody, one line of time across all
// objects and a diagnosis with what to do next (Build). It never writes.
package timeline
