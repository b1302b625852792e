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

// Node is a node. Its methods may be called by any goroutine; they take effect at once, one after another.
type Node struct {
	name, kubelet string

	mu      sync.Mutex
	boots   int // starts of the kernel
	starts  int // of the node, which may be a container
	stages  map[string]*stageDirectory
	pods    map[string]*stageDirectory
	places  map[string]*place
	runs    map[types.UID]bool
	keeps   map[string]map[string]bool // UIDs of pods, by volume
	agents  []*Agent
	changed chan struct{} // closed when a volume's health changes
}

// New returns a node that is new, with the path of kubelet's directory on it.
func New(name, kubeletDir string) *Node {
	return &Node{
		name: name, kubelet: kubeletDir, boots: 1, starts: 1, stages: map[string]*stageDirectory{}, pods: map[string]*stageDirectory{}, places: map[string]*place{},
		runs: map[types.UID]bool{}, keeps: map[string]map[string]bool{}, changed: make(chan struct{}),
	}
}

// stageDirectory is that of a stage, or of a pod that has a /pav of its own.
type stageDirectory struct {
	pav     *directory        // nil where there is none
	record  []byte            // nil where there is none
	targets map[string][]byte // records of targets
	given   bool              // a pod was given pav
}

// directory is what pods see as /pav. The mount table may have it where the directory that it was in has gone.
type directory struct {
	mounted bool // in its directory
	removed bool
	covers  int // mounts over all of it
	files   map[string]file
	volume  []layer  // what is mounted at /pav/volume, the lowest first
	plain   *content // /pav/volume, where that is a directory of /pav itself
}

func newDirectory() *directory { return &directory{files: map[string]file{}} }

// file is a file or directory of a /pav.
type file struct {
	directory bool
	text      string
	written   time.Time
}

// place is a directory or file that something can be mounted on.
type place struct {
	isFile bool
	client bool     // clients are given their volumes here
	layers []layer  // the lowest first
	disk   *content // the place itself, once it was bound elsewhere
}

// layer is something that is mounted.
type layer struct {
	content *content
	options mount.BindOptions

	// follows says that what is mounted at the source of the bind appears here, too.
	follows bool
}

// content is what can be mounted. Two layers show the same where they have the same one.
type content struct {
	volume Volume
	health Health
	pav    *directory // nil unless it is a /pav
	in     *directory // the /pav of which it is a directory; nil where it is none
}

// isFile reports whether it is mounted on a file, and not on a directory.
func (c *content) isFile() bool { return c.volume.Mode == mount.Block }

// top returns the uppermost layer, or nil.
func top(layers []layer) *layer {
	if len(layers) == 0 {
		return nil
	}
	return &layers[len(layers)-1]
}

// Boot is the present start of the node.
func (n *Node) Boot() pavdir.Boot {
	n.mu.Lock()
	defer n.mu.Unlock()
	return pavdir.Boot{BootID: n.name + "-boot-" + strconv.Itoa(n.boots), NodeStart: strconv.Itoa(n.starts)}
}

// Reboot starts the node again: what is mounted or runs is gone, and with it the agents; directories and files stay, but
// for those in memory, which are those of pods that have a /pav of their own. With the same boot ID, the node is a
// container that was started again.
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

// unmount takes away what is mounted below a directory.
func (f *stageDirectory) unmount() {
	if f.pav != nil {
		f.pav.mounted, f.pav.covers, f.pav.volume = false, 0, nil
	}
}

// LoseUnsynced is for a stop of the machine that loses all that need not have reached the disk: the records of
// targets, and what pods wrote to the /pav of stages.
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

// Tear makes the record of a stage, or of a pod's own /pav, one that cannot be read.
func (n *Node) Tear(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, directories := range []map[string]*stageDirectory{n.stages, n.pods} {
		if f := directories[id]; f != nil && f.record != nil {
			f.record = f.record[:len(f.record)/2]
		}
	}
}

// Runs has a container of a pod run on the node, or end.
func (n *Node) Runs(uid types.UID, runs bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.runs, uid)
	if runs {
		n.runs[uid] = true
	}
}

// KubeletKeeps has kubelet keep its directory of a persistent volume for a pod, or remove it.
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

// SomebodyMounts has someone who is not PaV mount something at a path.
func (n *Node) SomebodyMounts(path, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.places[path] == nil {
		n.places[path] = &place{}
	}
	n.places[path].add(layer{content: &content{volume: Volume{Name: name}}})
}

func (p *place) add(l layer) { p.layers = append(p.layers, l) }

// wakeProbes has those look again that wait for a volume.
func (n *Node) wakeProbes() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// directoryOf is where the directory of a stage is.
func (n *Node) directoryOf(stage string) string {
	return filepath.Join(n.kubelet, "plugins", pavv1.Driver, "stages", stage)
}

// volumeOf is where the volume of a stage is attached.
func (n *Node) volumeOf(stage string) string { return filepath.Join(n.directoryOf(stage), "client") }

// below returns the paths of the places at and below a path.
func (n *Node) below(path string) []string {
	var all []string
	for at := range n.places {
		if at == path || strings.HasPrefix(at, strings.TrimSuffix(path, "/")+"/") {
			all = append(all, at)
		}
	}
	return all
}

// errEnded is what calls of an agent that has ended get.
var errEnded = fmt.Errorf("entering mount namespace: %w", os.ErrClosed)

// errUnmounted is what a pod gets whose /pav is not mounted.
var errUnmounted = errors.New("/pav is not mounted")
