package jinja

import "github.com/albertofaria/pav/jinja/py"

// newDict is Python's dict(mapping or pairs, **more).
func newDict(b *py.Budget, args py.Args) (py.Value, error) {
	if len(args.Pos) > 1 {
		return nil, raisef("TypeError", "dict expected at most 1 argument, got %d", len(args.Pos))
	}
	dict := py.NewDict()
	if len(args.Pos) == 1 {
		if err := updateDict(b, dict, args.Pos[0]); err != nil {
			return nil, err
		}
	}
	for _, arg := range args.Named {
		dict.SetStr(arg.Name, arg.Value)
	}
	return dict, b.Alloc(4 * valueSize * dict.Len())
}

// updateDict adds the entries of a mapping, or pairs of keys and values.
func updateDict(b *py.Budget, dict *py.Dict, entries py.Value) error {
	switch v := entries.(type) {
	case *py.Undefined:
		return v.Err()
	case *py.Dict:
		entries = &py.DictView{Dict: v, Kind: "dict_items"}
	}
	pairs, err := py.Iterate(b, entries)
	if err != nil {
		return err
	}
	for {
		pair, ok, err := pairs.Next(b)
		if !ok || err != nil {
			return err
		}
		parts, err := py.Collect(b, pair)
		if raised(err, "TypeError") {
			return raisef("TypeError", "cannot convert dictionary update sequence element to a sequence")
		}
		if err != nil {
			return err
		}
		if len(parts) != 2 {
			return raisef("ValueError", "dictionary update sequence element has length %d; 2 is required", len(parts))
		}
		if err := dict.Set(parts[0], parts[1]); err != nil {
			return err
		}
	}
}
