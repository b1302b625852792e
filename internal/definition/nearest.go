package definition

import (
	"strings"

	"github.com/albertofaria/pav/jinja/editdistance"
)

// Nearest returns the known name that differs from name only in case, or else the most similar known name; "" if none
// is similar.
func Nearest(name string, known []string) string {
	for _, candidate := range known {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
	}
	if len(name) > editdistance.MaxName {
		return ""
	}
	lower := strings.ToLower(name)
	best, least := "", max(len(name)/3, 1)+1
	for _, candidate := range known {
		if max(len(candidate)-len(lower), len(lower)-len(candidate)) >= least {
			continue // the edit distance is at least this long
		}
		distance := editdistance.Distance(lower, strings.ToLower(candidate))
		if distance < least && distance < len(candidate) {
			best, least = candidate, distance
		}
	}
	if best != "" {
		return best
	}
	return longer(lower, known)
}

// longer returns the only known name that ends with this name, as secretName ends with name; "" if there is none or
// more than one.
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
