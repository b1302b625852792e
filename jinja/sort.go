package jinja

import "github.com/albertofaria/pav/jinja/py"

// keyed is an item with its sort key.
type keyed struct{ item, key py.Value }

// sortBy returns items in the order of their keys. It is stable, also in reverse order.
func (s *state) sortBy(items []py.Value, key getter, reverse bool) ([]py.Value, error) {
	if err := s.budget.Alloc(4 * valueSize * len(items)); err != nil {
		return nil, err
	}
	entries := make([]keyed, len(items))
	for i, item := range items {
		by, err := key(item)
		if err != nil {
			return nil, err
		}
		entries[place(i, len(items), reverse)] = keyed{item: item, key: by}
	}
	sort := sorting{less: func(x, y keyed) (bool, error) { return py.Compare(s.budget, py.OpLt, x.key, y.key) }}
	sort.sort(entries)
	if sort.err != nil {
		return nil, sort.err
	}
	sorted := make([]py.Value, len(items))
	for i, entry := range entries {
		sorted[place(i, len(items), reverse)] = entry.item
	}
	return sorted, nil
}

// place returns the new index of item i of n. For a reverse sort, the items are reversed before and after, so equal items
// keep their order.
func place(i, n int, reverse bool) int {
	if reverse {
		return n - 1 - i
	}
	return i
}

// sorting sorts with a comparison that may fail.
type sorting struct {
	less func(x, y keyed) (bool, error)
	err  error
}

// before returns false once a comparison has failed.
func (s *sorting) before(x, y keyed) bool {
	if s.err != nil {
		return false
	}
	less, err := s.less(x, y)
	s.err = err
	return less && err == nil
}

// insertionSize is up to how many items Python sorts by insertion. If a comparison is not an order, as with NaN, the result
// depends on the algorithm, so few items are sorted exactly as Python does.
const insertionSize = 63

func (s *sorting) sort(entries []keyed) {
	if len(entries) <= insertionSize {
		s.insert(entries)
		return
	}
	middle := len(entries) / 2
	s.sort(entries[:middle])
	s.sort(entries[middle:])
	s.merge(entries, middle)
}

// insert finds the run at the beginning of entries, reverses it if it descends, and inserts the others.
func (s *sorting) insert(entries []keyed) {
	for next := s.run(entries); next < len(entries) && s.err == nil; next++ {
		pivot, low, high := entries[next], 0, next
		for low < high {
			if middle := (low + high) / 2; s.before(pivot, entries[middle]) {
				high = middle
			} else {
				low = middle + 1
			}
		}
		copy(entries[low+1:next+1], entries[low:next])
		entries[low] = pivot
	}
}

// run returns the length of the run at the beginning of entries.
func (s *sorting) run(entries []keyed) int {
	if len(entries) < 2 {
		return len(entries)
	}
	descends := s.before(entries[1], entries[0])
	n := 2
	for n < len(entries) && s.before(entries[n], entries[n-1]) == descends {
		n++
	}
	if descends {
		for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
			entries[i], entries[j] = entries[j], entries[i]
		}
	}
	return n
}

// merge merges the sorted entries before and after middle.
func (s *sorting) merge(entries []keyed, middle int) {
	left, right := append([]keyed(nil), entries[:middle]...), entries[middle:]
	for i := 0; len(left) > 0; i++ {
		if len(right) > 0 && s.before(right[0], left[0]) {
			entries[i], right = right[0], right[1:]
		} else {
			entries[i], left = left[0], left[1:]
		}
	}
}
