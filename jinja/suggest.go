package jinja

import "github.com/albertofaria/pav/jinja/editdistance"

// suggest returns what to add to an error about an unknown name: the most similar of known, if one is similar.
func suggest[V any](name string, known map[string]V) string {
	best, bestDistance := "", max(len(name)/3, 1)+1
	if len(name) > editdistance.MaxName {
		return ""
	}
	for candidate := range known {
		distance := editdistance.Distance(name, candidate)
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

// otherwise is suggest for a filter or test; the name may also be that of the other kind.
func otherwise[V, W any](name string, known map[string]V, others map[string]W, kind string) string {
	if _, ok := others[name]; ok {
		return ", but a " + kind + " of that name"
	}
	return suggest(name, known)
}
