package kubectl

import (
	"context"
	"slices"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

const (
	// completionTimeout limits the wait for the API server: completion must feel instant.
	completionTimeout = 2 * time.Second

	// maxNames is the number of names that are requested.
	maxNames = 500
)

// complete is the function type with which cobra completes the arguments of a command or the value of a flag.
type complete = func(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// kind is a kind of object as users type it.
type kind struct {
	word       string
	gvk        schema.GroupVersionKind
	namespaced bool
}

var (
	claims       = kind{"pvc", schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, true}
	pods         = kind{"pod", schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, true}
	pvs          = kind{"pv", schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}, false}
	namespaces   = kind{"namespace", schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, false}
	volumes      = kind{"pavvolume", pavv1.GroupVersion.WithKind("PavVolume"), false}
	snapshots    = kind{"vs", snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshot"), true}
	contents     = kind{"vsc", snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshotContent"), false}
	records      = kind{"pavsnapshot", pavv1.GroupVersion.WithKind("PavSnapshot"), false}
	stages       = kind{"pavstage", pavv1.GroupVersion.WithKind("PavStage"), false}
	objectClaims = kind{"obc", objectbucketv1.GroupVersion.WithKind("ObjectBucketClaim"), true}
	bucketClaims = kind{"bucketclaim", cosiv1.GroupVersion.WithKind("BucketClaim"), true}
	accesses     = kind{"bucketaccess", cosiv1.GroupVersion.WithKind("BucketAccess"), true}
	pavBuckets   = kind{"pavbucket", pavv1.GroupVersion.WithKind("PavBucket"), false}
	pavAccesses  = kind{"pavbucketaccess", pavv1.GroupVersion.WithKind("PavBucketAccess"), false}
	provisioners = kind{"pavprovisioner", pavv1.GroupVersion.WithKind("PavProvisioner"), false}
)

// objects are the kinds of objects that commands accept, as KIND/NAME or KIND NAME.
var objects = map[string][]kind{
	"describe": {claims, pvs, pods, snapshots, contents, objectClaims, bucketClaims, accesses, records, pavBuckets, pavAccesses},
	"logs":     {claims, pvs, pods, snapshots, contents, objectClaims, bucketClaims, accesses, records, pavBuckets, pavAccesses},
	"retry":    {claims, pvs, snapshots, contents, objectClaims, bucketClaims, accesses, volumes, stages, records, pavBuckets, pavAccesses},
	"rotate":   {objectClaims, accesses, pavAccesses},
}

// addCompletion adds completion of arguments and global flags to all commands below root that have none of their own.
func addCompletion(env *cli.Env, root *cobra.Command) {
	c := &completer{env: env}
	for _, command := range root.Commands() {
		if command.ValidArgsFunction == nil && len(command.ValidArgs) == 0 {
			command.ValidArgsFunction = c.words(command.Name())
		}
		for name, values := range map[string][]string{"output": cli.Formats()} {
			if flag := command.Flags().Lookup(name); flag != nil {
				// The command may have its own completion.
				_ = command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
			}
		}
	}
	for flag, function := range map[string]complete{"namespace": c.namesOf(namespaces), "context": c.contexts} {
		if root.PersistentFlags().Lookup(flag) != nil {
			_ = root.RegisterFlagCompletionFunc(flag, function)
		}
	}
}

// completer looks up names.
type completer struct{ env *cli.Env }

// words returns the completion of a command's arguments; nil for cobra's default.
func (c *completer) words(command string) complete {
	switch {
	case objects[command] != nil:
		return c.references(objects[command])
	case command == "get":
		return c.namesOf(provisioners)
	case slices.Contains([]string{"lint", "render", "test"}, command):
		return files
	default:
		return nil
	}
}

func files(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// references completes KIND/NAME, and NAME after KIND.
func (c *completer) references(kinds []kind) complete {
	return func(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			for _, k := range kinds {
				if k.word == args[0] {
					return c.names(command.Context(), k, "", typed), cobra.ShellCompDirectiveNoFileComp
				}
			}
		}
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word, name, slash := strings.Cut(typed, "/")
		var found []string
		for _, k := range kinds {
			if !slash && strings.HasPrefix(k.word, typed) {
				found = append(found, k.word+"/")
			}
			if slash && k.word == word {
				return c.names(command.Context(), k, word+"/", name), cobra.ShellCompDirectiveNoFileComp
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// namesOf completes one name.
func (c *completer) namesOf(k kind) complete {
	return func(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if k == provisioners && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.names(command.Context(), k, "", typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// names returns the names of a kind that begin with what is typed, each with a prefix.
func (c *completer) names(ctx context.Context, k kind, prefix, typed string) []string {
	if ctx == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	cluster, err := c.env.Connect()
	if err != nil {
		return nil
	}
	options := []client.ListOption{client.Limit(maxNames)}
	if k.namespaced {
		namespace, err := c.env.Namespace()
		if err != nil {
			return nil
		}
		options = append(options, client.InNamespace(namespace))
	}
	var names []string
	for _, name := range k.list(ctx, cluster.Objects, options...) {
		if strings.HasPrefix(name, typed) {
			names = append(names, prefix+name)
		}
	}
	return names
}

// list returns the names of objects of the kind; none if they cannot be had.
func (k kind) list(ctx context.Context, reader client.Reader, options ...client.ListOption) (names []string) {
	for _, gvk := range k.versions() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := reader.List(ctx, list, options...)
		if meta.IsNoMatchError(err) {
			continue
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		break
	}
	return names
}

// versions returns the kind in each version that the cluster may have. It has one of the two of COSI.
func (k kind) versions() []schema.GroupVersionKind {
	if k.gvk.Group == cosiv1.GroupVersion.Group {
		return []schema.GroupVersionKind{k.gvk, cosiv2.GroupVersion.WithKind(k.gvk.Kind)}
	}
	return []schema.GroupVersionKind{k.gvk}
}

// contexts completes the names of contexts in the kubeconfig.
func (c *completer) contexts(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	config, err := c.env.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for name := range config.Contexts {
		if strings.HasPrefix(name, typed) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}
