package jinja

// suggest returns what to add to an error about a name that is none: the nearest of known, if one is near.
func suggest[V any](name string, known map[string]V) string {
	best, bestDistance := "", max(len(name)/3, 1)+1
	if len(name) > maxSuggested {
		return ""
	}
	for candidate := range known {
		distance := editDistance(name, candidate)
		if distance >= len(candidate) {
			continue
		}
		if distance < bestDistance || distance == bestDistance && best != "" && candidate < best {
			best, bestDistance = candidate, distance
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean '" + best + "'?"
}

// otherwise is suggest for a filter or test, which may be one of the others, of a kind.
func otherwise[V, W any](name string, known map[string]V, others map[string]W, kind string) string {
	if _, ok := others[name]; ok {
		return ", but a " + kind + " of that name"
	}
	return suggest(name, known)
}

// maxSuggested is how long a name may be that something is suggested for.
const maxSuggested = 40

// editDistance is how many characters must be inserted, removed, replaced or swapped with the next to make b of a.
func editDistance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
