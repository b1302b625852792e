package syntax

import "github.com/albertofaria/pav/jinja/py"

// Node is a node of the tree.
type Node interface {
	Position() Pos
	// Children returns the nodes directly below, in the order in which Jinja searches them for names.
	Children() []Node
}

// Expr is a Node that has a value.
type Expr interface {
	Node
	expr()
}

// Stmt is a Node that is executed.
type Stmt interface {
	Node
	stmt()
}

// Expressions.
type (
	// Const is a literal of one value.
	Const struct {
		Pos
		Value py.Value
	}
	// Name is a variable.
	Name struct {
		Pos
		Name string
		Use  Use
	}
	// Tuple is (a, b).
	Tuple struct {
		Pos
		Items []Expr
	}
	// List is [a, b].
	List struct {
		Pos
		Items []Expr
	}
	// Dict is {key: value}.
	Dict struct {
		Pos
		Keys, Values []Expr
	}
	// Cond is Then if Test else Else; Else may be nil.
	Cond struct {
		Pos
		Test, Then, Else Expr
	}
	// Logic is Left and Right, or Left or Right.
	Logic struct {
		Pos
		And         bool
		Left, Right Expr
	}
	// Not is not Operand.
	Not struct {
		Pos
		Operand Expr
	}
	// Compare is a chain of comparisons: First Ops[0] Rest[0] Ops[1] Rest[1] ….
	Compare struct {
		Pos
		First Expr
		Ops   []CompareOp
		Rest  []Expr
	}
	// Binary is arithmetic with two operands.
	Binary struct {
		Pos
		Op          py.BinaryOp
		Left, Right Expr
	}
	// Unary is -Operand, or +Operand.
	Unary struct {
		Pos
		Negative bool
		Operand  Expr
	}
	// Concat is a ~ b ~ c.
	Concat struct {
		Pos
		Parts []Expr
	}
	// Attribute is Object.Name.
	Attribute struct {
		Pos
		Object Expr
		Name   string
	}
	// Item is Object[Key].
	Item struct {
		Pos
		Object, Key Expr
	}
	// Slice is Start:Stop:Step as the key of an Item; parts that are left out are nil.
	Slice struct {
		Pos
		Start, Stop, Step Expr
	}
	// Call is Function(Args).
	Call struct {
		Pos
		Function Expr
		Args     Args
	}
	// Filter is Input|Name(Args); a nil Input is the output that the statement around it collected.
	Filter struct {
		Pos
		Input Expr
		Name  string
		Args  Args
	}
	// Test is Input is Name(Args).
	Test struct {
		Pos
		Input Expr
		Name  string
		Args  Args
	}
	// NamespaceRef is Name.Attribute as the target of set.
	NamespaceRef struct {
		Pos
		Name, Attribute string
	}
)

// Use is how a Name is used: as a value, as the target of an assignment, or as a parameter.
type Use int

// The uses of a Name.
const (
	Load Use = iota
	Store
	Param
)

// Args are the arguments of a call: Pos, *Star, Named, **StarStar.
type Args struct {
	Pos            []Expr
	Named          []NamedArg
	Star, StarStar Expr
}

// NamedArg is Name=Value.
type NamedArg struct {
	Name  string
	Value Expr
}

// CompareOp is a comparison, or membership.
type CompareOp struct {
	// Op applies if neither In nor NotIn is set.
	Op        py.CompareOp
	In, NotIn bool
}

// Statements.
type (
	// Output prints; its Data items are template data.
	Output struct {
		Pos
		Items []Expr
	}
	// Data is text outside of tags, as an item of an Output.
	Data struct {
		Pos
		Text string
	}
	// For is for Target in Iter if Test, recursive or not.
	For struct {
		Pos
		Target     Expr
		Iter, Test Expr
		Body, Else []Stmt
		Recursive  bool
	}
	// If has its tests and bodies in Branches.
	If struct {
		Pos
		Branches []Branch
		Else     []Stmt
	}
	// Assign is set Target = Value.
	Assign struct {
		Pos
		Target, Value Expr
	}
	// AssignBlock is set Target … endset. Filter is nil or a chain of Filter that ends in one without input.
	AssignBlock struct {
		Pos
		Target Expr
		Filter Expr
		Body   []Stmt
	}
	// Macro defines a macro.
	Macro struct {
		Pos
		Name      string
		Signature Signature
		Body      []Stmt
	}
	// CallBlock calls with its body as caller.
	CallBlock struct {
		Pos
		Call      *Call
		Signature Signature
		Body      []Stmt
	}
	// FilterBlock prints its body filtered.
	FilterBlock struct {
		Pos
		Filter Expr
		Body   []Stmt
	}
	// With binds Targets to Values in its body.
	With struct {
		Pos
		Targets, Values []Expr
		Body            []Stmt
	}
	// Autoescape turns the escaping of the output of its body on or off.
	Autoescape struct {
		Pos
		Value Expr
		Body  []Stmt
	}
	// Block is a named block.
	Block struct {
		Pos
		Name             string
		Scoped, Required bool
		Body             []Stmt
	}
	// Other is a statement that needs other templates: include, import, from, extends.
	Other struct {
		Pos
		Tag      string
		Template Expr
		// IgnoreMissing says that an include may not find a template.
		IgnoreMissing bool
		// Binds are the names that it would set.
		Binds []string
	}
)

// Branch is a test and the body that is executed if it is true.
type Branch struct {
	Test Expr
	Body []Stmt
}

// Signature is the parameters of a macro; the last ones have the Defaults.
type Signature struct {
	Params   []*Name
	Defaults []Expr
}

func (*Const) expr()        {}
func (*Name) expr()         {}
func (*Tuple) expr()        {}
func (*List) expr()         {}
func (*Dict) expr()         {}
func (*Cond) expr()         {}
func (*Logic) expr()        {}
func (*Not) expr()          {}
func (*Compare) expr()      {}
func (*Binary) expr()       {}
func (*Unary) expr()        {}
func (*Concat) expr()       {}
func (*Attribute) expr()    {}
func (*Item) expr()         {}
func (*Slice) expr()        {}
func (*Call) expr()         {}
func (*Filter) expr()       {}
func (*Test) expr()         {}
func (*NamespaceRef) expr() {}
func (*Data) expr()         {}

func (*Output) stmt()      {}
func (*For) stmt()         {}
func (*If) stmt()          {}
func (*Assign) stmt()      {}
func (*AssignBlock) stmt() {}
func (*Macro) stmt()       {}
func (*CallBlock) stmt()   {}
func (*FilterBlock) stmt() {}
func (*With) stmt()        {}
func (*Autoescape) stmt()  {}
func (*Block) stmt()       {}
func (*Other) stmt()       {}
