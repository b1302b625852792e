package jinja

import (
	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// output compiles a statement that prints data and expressions.
func (c *compiler) output(s *syntax.Output, f *frame) (exec, error) {
	if c.extended && !f.captures {
		return nil, nil
	}
	var items []exec
	for _, item := range s.Items {
		if data, ok := item.(*syntax.Data); ok {
			items = append(items, c.data(data))
			continue
		}
		late := len(c.late)
		value, err := c.expression(item, f)
		if err != nil {
			return nil, err
		}
		if text, ok := c.constantText(value); ok {
			c.late = c.late[:late]
			items = append(items, printText(item.Position(), text))
			continue
		}
		items = append(items, c.printed(item.Position(), value))
	}
	return sequence(items), nil
}

// data compiles the text between tags. If Jinja does not know whether output is escaped, it treats the text as a value.
func (c *compiler) data(data *syntax.Data) exec {
	if !c.volatile {
		return printText(data.Pos, data.Text)
	}
	return c.printed(data.Pos, expr{eval: func(r *run) (py.Value, error) { return r.markup(data.Text), nil }})
}

func printText(pos syntax.Pos, text string) exec {
	return func(r *run) error { return at(pos, r.print(text)) }
}

// constantText returns what a constant prints. Jinja escapes constants before it finalizes them, and other values after.
func (c *compiler) constantText(value expr) (string, bool) {
	if value.constant == nil {
		return "", false
	}
	printed := value.constant
	if c.autoescape {
		escaped, err := py.Escape(c.folding.budget, printed)
		if err != nil {
			return "", false
		}
		printed = escaped
	}
	text, err := c.env.finalize(c.folding.budget, printed)
	if err != nil {
		return "", false
	}
	printedText, err := py.ToStr(c.folding.budget, text)
	return printedText, err == nil
}

// finalize returns value as Options.Finalize prints it.
func (env *Environment) finalize(b *py.Budget, value py.Value) (py.Value, error) {
	if env.options.Finalize == nil {
		return value, nil
	}
	text, err := env.options.Finalize(b, value)
	return py.Str(text), err
}

// printed compiles {{ value }}.
func (c *compiler) printed(pos syntax.Pos, value expr) exec {
	env, escaping := c.env, c.escaping()
	text := func(r *run) (string, error) {
		result, err := value.eval(r)
		if err != nil {
			return "", err
		}
		if result, err = env.finalize(r.budget, result); err != nil {
			return "", err
		}
		if escaping(r) {
			escaped, err := py.Escape(r.budget, result)
			return string(escaped), err
		}
		return py.ToStr(r.budget, result)
	}
	return func(r *run) error {
		printed, err := text(r)
		if err != nil {
			return at(pos, err)
		}
		return at(pos, r.print(printed))
	}
}
