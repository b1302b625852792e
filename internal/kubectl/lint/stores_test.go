package lint

import (
	"strings"
	"testing"
)

// Two definitions of one store do not know of each other's buckets.
func TestLint_OfTwoProvisionersOfAStore(t *testing.T) {
	provisioner := func(name, store string) string {
		return strings.NewReplacer("name: good", "name: "+name, "provisioningModes: [Static]", "provisioningModes: [Static]\n  bucketValidation: {store: "+store+"}").Replace(good)
	}
	for name, test := range map[string]struct {
		first, second string
		warns         bool
	}{
		"the same store":                      {provisioner("one", "s3.example"), provisioner("two", "s3.example"), true},
		"two stores":                          {provisioner("one", "s3.example"), provisioner("two", "s4.example"), false},
		"what a template yields is not known": {provisioner("one", `"{{ params.endpoint }}"`), provisioner("two", `"{{ params.endpoint }}"`), false},
		"one definition twice":                {provisioner("one", "s3.example"), provisioner("one", "s3.example"), false},
		"no store is named":                   {provisioner("one", `""`), provisioner("two", `""`), false},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, _ := run(t, test.first+"---\n"+test.second, "-")
			if warns := strings.Contains(stdout, `spec.bucketValidation.store: is that of PavProvisioner "one", too`); warns != test.warns {
				t.Errorf("got %s", stdout)
			}
		})
	}
}
