package workflow

import (
	"crypto/sha256"
	"encoding/hex"
)

// hashLength is the number of hexadecimal digits of Hash: 80 bits, so that no two volumes of a
// cluster share one by chance.
const hashLength = 20

// Hash returns a short name for the parts, fit for labels and for names of objects. Different lists
// of parts have different hashes.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))[:hashLength]
}

// Name returns the name of the pod of a workflow, deterministic in the parts.
func Name(workflow string, parts ...string) string {
	return workflow + "-" + Hash(parts...)
}
