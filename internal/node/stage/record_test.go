package stage

import (
	"errors"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestCheckProvisionedClaim(t *testing.T) {
	of := func(size int) *apiextensionsv1.JSON {
		return &apiextensionsv1.JSON{Raw: []byte(strings.Repeat("x", size))}
	}
	tests := map[string]struct {
		claim *apiextensionsv1.JSON
		want  error
	}{
		"none":            {},
		"the largest":     {claim: of(pavv1.MaxClaimCopy)},
		"one byte larger": {claim: of(pavv1.MaxClaimCopy + 1), want: ErrRefused},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkProvisionedClaim("pvc", test.claim)
			if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), "status.provisionedClaim") {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
