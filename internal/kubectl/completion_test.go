package kubectl

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

func TestAdd(t *testing.T) {
	env := &cli.Env{Config: genericclioptions.NewConfigFlags(false)}
	root := &cobra.Command{Use: "pav"}
	for _, use := range []string{"describe", "lint", "rotate", "other"} {
		root.AddCommand(&cobra.Command{Use: use, Run: func(*cobra.Command, []string) {}})
	}
	addCompletion(env, root)

	tests := map[string]struct {
		command string
		args    []string
		typed   string
		want    []string
	}{
		"any kind":               {command: "describe", want: []string{"pvc/", "pv/", "pod/", "vs/", "vsc/", "obc/", "bucketclaim/", "bucketaccess/", "pavsnapshot/", "pavbucket/", "pavbucketaccess/"}},
		"the kinds that fit":     {command: "describe", typed: "pv", want: []string{"pvc/", "pv/"}},
		"kinds of buckets":       {command: "rotate", want: []string{"obc/", "bucketaccess/", "pavbucketaccess/"}},
		"a kind that is no good": {command: "describe", typed: "node/a"},
		"too many words":         {command: "describe", args: []string{"pvc", "a"}},
		// There is no cluster.
		"names that cannot be had": {command: "describe", typed: "pvc/a"},
		"names after a kind":       {command: "describe", args: []string{"pvc"}, typed: "a"},
		"files":                    {command: "lint", want: []string{"yaml", "yml", "json"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			command, _, err := root.Find([]string{test.command})
			if err != nil {
				t.Fatal(err)
			}
			command.SetContext(t.Context())
			got, _ := command.ValidArgsFunction(command, test.args, test.typed)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if other, _, _ := root.Find([]string{"other"}); other.ValidArgsFunction != nil {
		t.Error("a command of which nothing is known is completed")
	}
}

// A cluster has one of the two versions of COSI.
func TestList_OfEitherVersionOfCOSI(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(cosiv1.AddToScheme(scheme), cosiv2.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	first := &cosiv1.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "first"}}
	second := &cosiv2.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "second"}}
	for version, want := range map[string][]string{"v1alpha1": {"first"}, "v1alpha2": {"second"}, "v1beta1": nil} {
		reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(first, second).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, reader client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if gvk := list.GetObjectKind().GroupVersionKind(); gvk.Version != version {
					return &meta.NoKindMatchError{GroupKind: gvk.GroupKind()}
				}
				return reader.List(ctx, list, options...)
			},
		}).Build()
		if diff := cmp.Diff(want, bucketClaims.list(t.Context(), reader, client.InNamespace("apps"))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", version, diff)
		}
	}
	if got := pvs.versions(); len(got) != 1 {
		t.Errorf("the versions of PersistentVolumes are %v", got)
	}
}
