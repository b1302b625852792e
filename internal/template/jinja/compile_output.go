package jinja

import (
	"github.com/albertofaria/pav/internal/template/jinja/py"
	"github.com/albertofaria/pav/internal/template/jinja/syntax"
)

// output compiles what is printed: data, and expressions.
func (c *compiler) output(s *syntax.Output, f *frame) (exec, error) {
	if c.extended && !f.captures {
		return nil, nil
	}
	var items []exec
	for _, item := range s.Items {
		if data, ok := item.(*syntax.Data); ok {
			items = append(items, printText(data.Pos, data.Text))
			continue
		}
		value, err := c.expression(item, f)
		if err != nil {
			return nil, err
		}
		if text, ok := c.constantText(value); ok {
			items = append(items, printText(item.Position(), text))
			continue
		}
		items = append(items, c.printed(item.Position(), value))
	}
	return sequence(items), nil
}

func printText(pos syntax.Pos, text string) exec {
	return func(r *run) error { return at0(pos, r.print(text)) }
}

// constantText returns what a constant prints. Jinja escapes it before it is finalized, and what a render computes after.
func (c *compiler) constantText(value expr) (string, bool) {
	if value.constant == nil || c.volatile {
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
	text, err := c.env.options.Finalize(c.folding.budget, printed)
	return text, err == nil
}

// printed compiles {{ value }}.
func (c *compiler) printed(pos syntax.Pos, value expr) exec {
	finalize, escaping := c.env.options.Finalize, c.escaping()
	return func(r *run) error {
		result, err := value.eval(r)
		if err != nil {
			return at(pos, err)
		}
		text, err := finalize(r.budget, result)
		if err != nil {
			return at(pos, err)
		}
		if escaping(r) {
			escaped, err := py.Escape(r.budget, py.Str(text))
			if err != nil {
				return at(pos, err)
			}
			text = string(escaped)
		}
		return at0(pos, r.print(text))
	}
}
