package cli

// phases are the phases by the words that begin the names of their pods.
var phases = map[string]string{"validate": "validation", "create": "creation", "delete": "deletion", "stage": "staging", "unstage": "unstaging"}

// Phase returns the phase that a value of --phase names: "staging", or "stage", as in the names of its pods. Any other word is
// returned as it is.
func Phase(word string) string {
	if phase, ok := phases[word]; ok {
		return phase
	}
	return word
}
