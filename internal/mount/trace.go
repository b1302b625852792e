package mount

import "sync/atomic"

var trace atomic.Pointer[func(call string)]

// SetTrace makes f hear of every system call that changed the mount table, or
// made, moved or removed a directory entry, right after it, on the thread that
// made it. It is for tests, which stop the agent there; nil ends it.
func SetTrace(f func(call string)) {
	if f == nil {
		trace.Store(nil)
		return
	}
	trace.Store(&f)
}

// Traced tells the function of SetTrace, if any, of a call by its name, as
// "move_mount". Packages that use this one call it after what they change
// themselves.
func Traced(call string) {
	if f := trace.Load(); f != nil {
		(*f)(call)
	}
}
