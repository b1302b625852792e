package podplan

import (
	"context"
	"errors"
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// evaluate evaluates a template with a real Evaluator.
func evaluate(ctx context.Context, path string, definition *pavv1.Template, vars template.Variables) (any, error) {
	templates := template.NewEvaluator(template.DefaultLimits())
	return templates.Evaluate(ctx, template.Field{Path: path}, *definition, vars, nil)
}

// isError reports whether an error says that the definition does not support a volume.
func isError(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

func volume(mode, capacity string, accessModes ...any) map[string]any {
	return map[string]any{"spec": map[string]any{
		"volumeMode": mode, "accessModes": accessModes, "capacity": map[string]any{"storage": capacity},
		"csi": map[string]any{"volumeHandle": "h", "volumeAttributes": map[string]any{"most": "2Gi"}},
	}}
}

func TestCheckSupported_OfAPersistentVolume(t *testing.T) {
	tests := map[string]struct {
		volume     map[string]any
		validation *pavv1.VolumeValidation
		err        string
	}{
		"no definition":                   {volume: volume("Filesystem", "1Gi", "ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod")},
		"no definition, and block":        {volume: volume("Block", "1Gi", "ReadWriteOnce"), err: "the persistent volume asks for volume mode Block, but the provisioner supports only Filesystem"},
		"block":                           {volume: volume("Block", "1Gi", "ReadWriteOnce"), validation: &pavv1.VolumeValidation{VolumeModes: field(`["Filesystem", "Block"]`)}},
		"an access mode":                  {volume: volume("Filesystem", "1Gi", "ReadWriteOnce", "ReadWriteMany"), validation: &pavv1.VolumeValidation{AccessModes: field(`["ReadWriteOnce"]`)}, err: "the persistent volume asks for access mode ReadWriteMany, but the provisioner supports only ReadWriteOnce"},
		"one pod where one node is":       {volume: volume("Filesystem", "1Gi", "ReadWriteOncePod"), validation: &pavv1.VolumeValidation{AccessModes: field(`["ReadWriteOnce"]`)}},
		"one pod where one node is not":   {volume: volume("Filesystem", "1Gi", "ReadWriteOncePod"), validation: &pavv1.VolumeValidation{AccessModes: field(`["ReadOnlyMany"]`)}, err: "the persistent volume asks for access mode ReadWriteOncePod, but the provisioner supports only ReadOnlyMany"},
		"the least capacity":              {volume: volume("Filesystem", "1Gi"), validation: &pavv1.VolumeValidation{MinCapacity: field(`"1Gi"`)}},
		"less than the least":             {volume: volume("Filesystem", "1Gi"), validation: &pavv1.VolumeValidation{MinCapacity: field(`"2Gi"`)}, err: "the persistent volume asks for a capacity of 1Gi, but the provisioner's volumes have at least 2Gi"},
		"the greatest capacity":           {volume: volume("Filesystem", "1Gi"), validation: &pavv1.VolumeValidation{MaxCapacity: field(`1073741824`)}},
		"more than the greatest":          {volume: volume("Filesystem", "1Gi"), validation: &pavv1.VolumeValidation{MaxCapacity: field(`"512Mi"`)}, err: "the persistent volume asks for a capacity of 1Gi, but the provisioner's volumes have at most 512Mi"},
		"templates see the volume":        {volume: volume("Filesystem", "3Gi"), validation: &pavv1.VolumeValidation{MaxCapacity: field(`"{{ pv.spec.csi.volumeAttributes.most }}"`)}, err: "the persistent volume asks for a capacity of 3Gi, but the provisioner's volumes have at most 2Gi"},
		"a mode that is none is told too": {volume: volume("Filesystem", "1Gi"), validation: &pavv1.VolumeValidation{VolumeModes: field(`["Filesystem", "Tape"]`)}, err: `spec.volumeValidation.volumeModes[1]: "Tape" is none of Filesystem, Block`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			vars, err := template.StaticValidationVariables(test.volume)
			if err != nil {
				t.Fatal(err)
			}
			err = CheckSupported(t.Context(), evaluate, test.validation, vars, ForPersistentVolume)
			if test.err == "" {
				if err != nil {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err == nil || err.Error() != test.err || !isError(err) {
				t.Errorf("got %v, want the refusal %q", err, test.err)
			}
		})
	}
}

// The tests of VolumeRequest check the messages for claims.
func TestCheckSupported_MistakesAndTroublesAreNoRefusals(t *testing.T) {
	vars, err := template.StaticValidationVariables(volume("Filesystem", "1Gi"))
	if err != nil {
		t.Fatal(err)
	}
	err = CheckSupported(t.Context(), evaluate, &pavv1.VolumeValidation{MinCapacity: field(`"{{ nope.nope }}"`)}, vars, ForPersistentVolume)
	var mistake *template.Error
	if !errors.As(err, &mistake) || mistake.Field != "spec.volumeValidation.minCapacity" || isError(err) {
		t.Errorf("a mistake: %v", err)
	}
	trouble := errors.New("the API server is away")
	away := func(context.Context, string, *pavv1.Template, template.Variables) (any, error) { return nil, trouble }
	err = CheckSupported(t.Context(), away, &pavv1.VolumeValidation{VolumeModes: field(`[]`)}, vars, ForPersistentVolume)
	if !errors.Is(err, trouble) || isError(err) {
		t.Errorf("trouble: %v", err)
	}
}
