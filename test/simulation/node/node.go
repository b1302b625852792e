package node

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// Node is a simulated node. Its methods may be called by any goroutine. Each takes effect at once, and they take effect
// one after another.
type Node struct {
	name, kubelet string

	mu      sync.Mutex
	boots   int // boots of the kernel
	starts  int // starts of the node, which may be a container
	stages  map[string]*stageDirectory
	pods    map[string]*stageDirectory
	places  map[string]*place
	runs    map[types.UID]bool
	keeps   map[string]map[string]bool // UIDs of pods, by name of the PersistentVolume
	agents  []*Agent
	changed chan struct{} // closed to make waiting probes look again
}

// New returns a new node. The path kubeletDir is kubelet's directory on the node.
func New(name, kubeletDir string) *Node {
	return &Node{
		name: name, kubelet: kubeletDir, boots: 1, starts: 1, stages: map[string]*stageDirectory{}, pods: map[string]*stageDirectory{}, places: map[string]*place{},
		runs: map[types.UID]bool{}, keeps: map[string]map[string]bool{}, changed: make(chan struct{}),
	}
}

// stageDirectory is the directory of a stage, or of a pod that has its own /pav.
type stageDirectory struct {
	pav     *directory        // nil if it does not exist
	record  []byte            // nil if it does not exist
	targets map[string][]byte // records of targets
	given   bool              // pav was mounted for a pod
}

// directory is a directory that pods see as /pav. It can still be mounted in a pod after it was removed from the
// directory of its stage or pod.
type directory struct {
	mounted bool // in the directory of its stage or pod
	removed bool
	covers  int // number of mounts over /pav itself
	files   map[string]file
	volume  []layer  // mounts at /pav/volume, the lowest first
	plain   *content // /pav/volume, if that is a directory of /pav itself; nil before its first use
}

func newDirectory() *directory { return &directory{files: map[string]file{}} }

// file is a file or a directory in a /pav.
type file struct {
	directory bool
	text      string
	written   time.Time
}

// place is a possible mount point: a directory or a file.
type place struct {
	isFile bool
	client bool     // it is a target of a client
	layers []layer  // mounts, the lowest first
	disk   *content // the place itself, without mounts; nil before its first use
}

// layer is a mount.
type layer struct {
	content *content
	options mount.BindOptions

	// follows means that later mounts at the source of this bind mount also appear here.
	follows bool
}

// content is something that can be mounted: a volume, a directory or file of the node's disk, or a /pav. Two layers
// with the same content show the same data.
type content struct {
	volume Volume
	health Health
	pav    *directory // nil unless it is a /pav
	in     *directory // the /pav that contains it; nil if it is not a directory of a /pav
}

// isFile reports whether the content must be mounted on a file, and not on a directory.
func (c *content) isFile() bool { return c.volume.Mode == mount.Block }

// top returns the uppermost layer, or nil.
func top(layers []layer) *layer {
	if len(layers) == 0 {
		return nil
	}
	return &layers[len(layers)-1]
}

// Boot returns the identity of the current start of the node.
func (n *Node) Boot() pavdir.Boot {
	n.mu.Lock()
	defer n.mu.Unlock()
	return pavdir.Boot{BootID: n.name + "-boot-" + strconv.Itoa(n.boots), NodeStart: strconv.Itoa(n.starts)}
}

// Reboot restarts the node. All mounts, containers and agents end. Directories and files stay, except for the files in
// memory: the files in the /pav of a pod that has its own. If sameBootID is true, the node is a container that restarts
// while the kernel keeps running.
func (n *Node) Reboot(sameBootID bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.starts++
	if !sameBootID {
		n.boots++
	}
	for _, f := range n.stages {
		f.unmount()
	}
	for _, f := range n.pods {
		f.unmount()
		if f.pav != nil {
			f.pav.files = map[string]file{}
		}
	}
	for _, p := range n.places {
		p.layers = nil
	}
	for _, a := range n.agents {
		a.ended = true
	}
	n.agents = nil
	clear(n.runs)
	n.wakeProbes()
}

// unmount removes all mounts in a directory: /pav, the mounts over it, and the mounts at /pav/volume.
func (f *stageDirectory) unmount() {
	if f.pav != nil {
		f.pav.mounted, f.pav.covers, f.pav.volume = false, 0, nil
	}
}

// LoseUnsynced removes all files that PaV does not sync to disk, as a crash of the machine can: the records of targets,
// and the files that pods wrote to the /pav of stages.
func (n *Node) LoseUnsynced() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.stages {
		f.targets = nil
		if f.pav != nil {
			f.pav.files, f.pav.plain = map[string]file{}, nil
		}
	}
}

// Tear truncates the record of a stage, or of a pod that has its own /pav. Then the record cannot be decoded.
func (n *Node) Tear(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, directories := range []map[string]*stageDirectory{n.stages, n.pods} {
		if f := directories[id]; f != nil && f.record != nil {
			f.record = f.record[:len(f.record)/2]
		}
	}
}

// Runs sets whether a container of a pod runs on the node.
func (n *Node) Runs(uid types.UID, runs bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.runs, uid)
	if runs {
		n.runs[uid] = true
	}
}

// KubeletKeeps makes kubelet keep its directory of a PersistentVolume for a pod, or remove that directory.
func (n *Node) KubeletKeeps(uid types.UID, volumeName string, keeps bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	uids := maps.Clone(n.keeps[volumeName])
	if uids == nil {
		uids = map[string]bool{}
	}
	delete(uids, string(uid))
	if keeps {
		uids[string(uid)] = true
	}
	n.keeps[volumeName] = uids
}

// SomebodyMounts mounts something at a path, as a program other than PaV would.
func (n *Node) SomebodyMounts(path, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.places[path] == nil {
		n.places[path] = &place{}
	}
	n.places[path].add(layer{content: &content{volume: Volume{Name: name}}})
}

func (p *place) add(l layer) { p.layers = append(p.layers, l) }

// wakeProbes makes the calls of Probe that wait for a volume look again.
func (n *Node) wakeProbes() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// directoryOf returns the path of a stage's directory.
func (n *Node) directoryOf(stage string) string {
	return filepath.Join(n.kubelet, "plugins", pavv1.Driver, "stages", stage)
}

// volumeOf returns the path at which the volume of a stage is attached.
func (n *Node) volumeOf(stage string) string { return filepath.Join(n.directoryOf(stage), "client") }

// below returns the paths of the places at a path and below it.
func (n *Node) below(path string) []string {
	var all []string
	for at := range n.places {
		if at == path || strings.HasPrefix(at, strings.TrimSuffix(path, "/")+"/") {
			all = append(all, at)
		}
	}
	return all
}

// errEnded is the error of all calls of an agent that has ended.
var errEnded = fmt.Errorf("entering mount namespace: %w", os.ErrClosed)

// errUnmounted is the error of a pod's action if the /pav of the pod is not mounted.
var errUnmounted = errors.New("/pav is not mounted")
