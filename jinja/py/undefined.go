package py

import "fmt"

// Err returns the error of using u.
func (u *Undefined) Err() error {
	if u.Unsafe {
		return &Error{Kind: Security, Exception: "SecurityError", Message: u.message()}
	}
	return &Error{Kind: UndefinedUse, Exception: "UndefinedError", Message: u.message()}
}

func (u *Undefined) message() string {
	switch {
	case u.Hint != "":
		return u.Hint
	case u.Object == nil:
		return fmt.Sprintf("'%s' is undefined", u.Name)
	case u.Unsafe && u.Computed:
		return fmt.Sprintf("access to an attribute of '%s' object is unsafe", u.Object.TypeName())
	case u.Unsafe:
		return fmt.Sprintf("access to attribute '%s' of '%s' object is unsafe", u.Name, u.Object.TypeName())
	case u.Computed:
		return fmt.Sprintf("'%s object' has no attribute or item of this name", u.Object.TypeName())
	case u.Object.TypeName() == "NoneType":
		return fmt.Sprintf("'None' has no attribute '%s'", u.Name)
	}
	return fmt.Sprintf("'%s object' has no attribute '%s'", u.Object.TypeName(), u.Name)
}

// TypeName implements Value.
func (*SliceKey) TypeName() string { return "slice" }

// SliceKey is start:stop:step as the key of Item.
type SliceKey struct{ Start, Stop, Step Value }
