package jinja

// suggest returns what to add to an error about a name that is none: the nearest of known, if one is near.
func suggest[V any](name string, known map[string]V) string {
	best, bestDistance := "", len(name)/3+2
	if len(name) > maxSuggested {
		return ""
	}
	for candidate := range known {
		distance := editDistance(name, candidate)
		if distance < bestDistance || distance == bestDistance && best != "" && candidate < best {
			best, bestDistance = candidate, distance
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean '" + best + "'?"
}

// maxSuggested is how long a name may be that something is suggested for.
const maxSuggested = 40

// editDistance is how many characters must be inserted, removed or replaced to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// bounded returns name as it may stand in an error: not longer than a name should be.
func bounded(name string) string {
	if len(name) > maxSuggested {
		return name[:maxSuggested] + "…"
	}
	return name
}
