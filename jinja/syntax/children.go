package syntax

// children returns the nodes in groups, in order, without those that are nil.
func children(groups ...[]Node) []Node {
	var all []Node
	for _, group := range groups {
		all = append(all, group...)
	}
	return all
}

// exprs returns those of items that are not nil.
func exprs(items ...Expr) []Node {
	nodes := make([]Node, 0, len(items))
	for _, item := range items {
		if item != nil {
			nodes = append(nodes, item)
		}
	}
	return nodes
}

func stmts(items []Stmt) []Node {
	nodes := make([]Node, len(items))
	for i, item := range items {
		nodes[i] = item
	}
	return nodes
}

func (a Args) children() []Node {
	named := make([]Expr, len(a.Named))
	for i, arg := range a.Named {
		named[i] = arg.Value
	}
	return children(exprs(a.Pos...), exprs(named...), exprs(a.Star, a.StarStar))
}

func (s Signature) children() []Node {
	params := make([]Node, len(s.Params))
	for i, param := range s.Params {
		params[i] = param
	}
	return children(params, exprs(s.Defaults...))
}

// Children implements Node.
func (*Const) Children() []Node { return nil }

// Children implements Node.
func (*Name) Children() []Node { return nil }

// Children implements Node.
func (*NamespaceRef) Children() []Node { return nil }

// Children implements Node.
func (*Data) Children() []Node { return nil }

// Children implements Node.
func (n *Tuple) Children() []Node { return exprs(n.Items...) }

// Children implements Node.
func (n *List) Children() []Node { return exprs(n.Items...) }

// Children implements Node.
func (n *Dict) Children() []Node {
	var nodes []Node
	for i := range n.Keys {
		nodes = append(nodes, n.Keys[i], n.Values[i])
	}
	return nodes
}

// Children implements Node.
func (n *Cond) Children() []Node { return exprs(n.Test, n.Then, n.Else) }

// Children implements Node.
func (n *Logic) Children() []Node { return exprs(n.Left, n.Right) }

// Children implements Node.
func (n *Not) Children() []Node { return exprs(n.Operand) }

// Children implements Node.
func (n *Compare) Children() []Node { return children(exprs(n.First), exprs(n.Rest...)) }

// Children implements Node.
func (n *Binary) Children() []Node { return exprs(n.Left, n.Right) }

// Children implements Node.
func (n *Unary) Children() []Node { return exprs(n.Operand) }

// Children implements Node.
func (n *Concat) Children() []Node { return exprs(n.Parts...) }

// Children implements Node.
func (n *Attribute) Children() []Node { return exprs(n.Object) }

// Children implements Node.
func (n *Item) Children() []Node { return exprs(n.Object, n.Key) }

// Children implements Node.
func (n *Slice) Children() []Node { return exprs(n.Start, n.Stop, n.Step) }

// Children implements Node.
func (n *Call) Children() []Node { return children(exprs(n.Function), n.Args.children()) }

// Children implements Node.
func (n *Filter) Children() []Node { return children(exprs(n.Input), n.Args.children()) }

// Children implements Node.
func (n *Test) Children() []Node { return children(exprs(n.Input), n.Args.children()) }

// Children implements Node.
func (n *Output) Children() []Node { return exprs(n.Items...) }

// Children implements Node.
func (n *For) Children() []Node {
	return children(exprs(n.Target, n.Iter), stmts(n.Body), stmts(n.Else), exprs(n.Test))
}

// Children implements Node.
func (n *If) Children() []Node {
	nodes := children(exprs(n.Branches[0].Test), stmts(n.Branches[0].Body))
	for _, branch := range n.Branches[1:] {
		nodes = append(append(nodes, exprs(branch.Test)...), stmts(branch.Body)...)
	}
	return append(nodes, stmts(n.Else)...)
}

// Children implements Node.
func (n *Assign) Children() []Node { return exprs(n.Target, n.Value) }

// Children implements Node.
func (n *AssignBlock) Children() []Node { return children(exprs(n.Target, n.Filter), stmts(n.Body)) }

// Children implements Node.
func (n *Macro) Children() []Node { return children(n.Signature.children(), stmts(n.Body)) }

// Children implements Node.
func (n *CallBlock) Children() []Node {
	return children([]Node{n.Call}, n.Signature.children(), stmts(n.Body))
}

// Children implements Node.
func (n *FilterBlock) Children() []Node { return children(stmts(n.Body), exprs(n.Filter)) }

// Children implements Node.
func (n *With) Children() []Node {
	return children(exprs(n.Targets...), exprs(n.Values...), stmts(n.Body))
}

// Children implements Node.
func (n *Autoescape) Children() []Node { return children(exprs(n.Value), stmts(n.Body)) }

// Children implements Node.
func (n *Block) Children() []Node { return stmts(n.Body) }

// Children implements Node.
func (n *Other) Children() []Node { return exprs(n.Template) }
