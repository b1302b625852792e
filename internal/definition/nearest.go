package definition

import "strings"

// maxSuggested is how long a name may be that a similar one is looked for.
const maxSuggested = 40

// nearest returns the known name that is written as name but for its case, or else the one that is most
// like it; "" where none is like it.
func nearest(name string, known []string) string {
	for _, candidate := range known {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
	}
	if len(name) > maxSuggested {
		return ""
	}
	lower := strings.ToLower(name)
	best, least := "", max(len(name)/3, 1)+1
	for _, candidate := range known {
		if max(len(candidate)-len(lower), len(lower)-len(candidate)) >= least {
			continue // so long are the edits at least
		}
		distance := edits(lower, strings.ToLower(candidate))
		if distance < least && distance < len(candidate) {
			best, least = candidate, distance
		}
	}
	if best != "" {
		return best
	}
	return longer(lower, known)
}

// longer returns the known name that a name is the end of, as name is of secretName, if there is but one.
func longer(lower string, known []string) string {
	const least = 4
	found := ""
	for _, candidate := range known {
		if len(lower) >= least && strings.HasSuffix(strings.ToLower(candidate), lower) {
			if found != "" {
				return ""
			}
			found = candidate
		}
	}
	return found
}

// edits is how many bytes must be inserted, removed, replaced or swapped with the next one to make b of a.
func edits(a, b string) int {
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
