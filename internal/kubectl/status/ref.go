package status

import (
	"fmt"
	"slices"
	"strings"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// Kind is a kind of object that commands accept, in one word.
type Kind string

// The kinds.
const (
	Claim       Kind = "pvc"
	PV          Kind = "pv"
	Pod         Kind = "pod"
	Volume      Kind = "pavvolume"
	Stage       Kind = "pavstage"
	Snapshot    Kind = "volumesnapshot"
	Content     Kind = "volumesnapshotcontent"
	PavSnapshot Kind = "pavsnapshot"
	Provisioner Kind = "pav"
	kindless    Kind = ""

	ObjectBucketClaim Kind = "obc"
	BucketClaim       Kind = "bucketclaim"
	BucketAccess      Kind = "bucketaccess"
	PavBucket         Kind = "pavbucket"
	PavAccess         Kind = "pavbucketaccess"
)

// aliases are the names that users may type for the kinds.
var aliases = map[string]Kind{
	"pvc": Claim, "pvcs": Claim, "claim": Claim, "persistentvolumeclaim": Claim, "persistentvolumeclaims": Claim,
	"pv": PV, "pvs": PV, "persistentvolume": PV, "persistentvolumes": PV,
	"pod": Pod, "pods": Pod, "po": Pod,
	"pavvolume": Volume, "pavvolumes": Volume, "pavvol": Volume,
	"pavstage": Stage, "pavstages": Stage,
	"vs": Snapshot, "volumesnapshot": Snapshot, "volumesnapshots": Snapshot,
	"vsc": Content, "vscs": Content, "volumesnapshotcontent": Content, "volumesnapshotcontents": Content,
	"pavsnapshot": PavSnapshot, "pavsnapshots": PavSnapshot, "pavsnap": PavSnapshot,
	"obc": ObjectBucketClaim, "obcs": ObjectBucketClaim, "objectbucketclaim": ObjectBucketClaim, "objectbucketclaims": ObjectBucketClaim,
	"bucketclaim": BucketClaim, "bucketclaims": BucketClaim, "bucketaccess": BucketAccess, "bucketaccesses": BucketAccess,
	"pavbucket": PavBucket, "pavbuckets": PavBucket, "pavbuc": PavBucket,
	"pavbucketaccess": PavAccess, "pavbucketaccesses": PavAccess, "pavacc": PavAccess,
	"pav": Provisioner, "pavs": Provisioner, "pavprovisioner": Provisioner, "pavprovisioners": Provisioner,
}

// Ref names an object.
type Ref struct {
	Kind      Kind
	Namespace string // empty for kinds without one
	Name      string
}

// isSnapshot reports whether it is an object of a snapshot.
func (r Ref) isSnapshot() bool {
	return r.Kind == Snapshot || r.Kind == Content || r.Kind == PavSnapshot
}

// isBucket reports whether it is an object of a bucket, or of an access to one.
func (r Ref) isBucket() bool {
	return r.Kind == ObjectBucketClaim || r.Kind == BucketClaim || r.Kind == PavBucket || r.isAccess()
}

// isAccess reports whether it is an object of an access to a bucket alone.
func (r Ref) isAccess() bool { return r.Kind == BucketAccess || r.Kind == PavAccess }

// String returns the object in kubectl's form, with its namespace: pvc/data -n apps.
func (r Ref) String() string {
	text := string(r.Kind) + "/" + r.Name
	if r.Namespace != "" {
		text += " -n " + r.Namespace
	}
	return text
}

// Parse returns the object that the arguments name, as "pvc NAME" or "pvc/NAME", in the user's namespace. An error
// lists the valid forms, and has exit status 2.
func Parse(env *cli.Env, args []string, kinds ...Kind) (Ref, error) {
	kind, name := split(args)
	if kind == kindless || name == "" || strings.Contains(name, "/") || !slices.Contains(kinds, kind) {
		return Ref{}, &cli.ExitError{Code: 2, Err: fmt.Errorf("%q is not an object of this command: write %s", strings.Join(args, " "), forms(kinds))}
	}
	ref := Ref{Kind: kind, Name: name}
	if !slices.Contains([]Kind{Claim, Pod, Snapshot, ObjectBucketClaim, BucketClaim, BucketAccess}, kind) {
		return ref, nil
	}
	var err error
	if ref.Namespace, err = env.Namespace(); err != nil {
		return Ref{}, &cli.ExitError{Code: 2, Err: err}
	}
	return ref, nil
}

func split(args []string) (kind Kind, name string) {
	word := ""
	switch len(args) {
	case 1:
		word, name, _ = strings.Cut(args[0], "/")
	case 2:
		word, name = args[0], args[1]
	}
	// As in persistentvolumeclaims.v1 and pavvolumes.pav.albertofaria.github.io.
	word, _, _ = strings.Cut(strings.ToLower(word), ".")
	return aliases[word], name
}

func forms(kinds []Kind) string {
	var words []string
	for _, kind := range kinds {
		words = append(words, string(kind)+"/NAME")
	}
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
