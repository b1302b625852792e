package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// Publish implements csi.Directories.
func (d *Directories) Publish(ctx context.Context, stage, target string) error {
	return d.agent.do(ctx, "Publish "+stage+" "+target, d.publish(d.agent.node.stages, stage, target)...)
}

// publish returns the steps that mount the /pav of a directory at the target of a pod.
func (d *Directories) publish(all map[string]*stageDirectory, id, target string) []func() error {
	n, done := d.agent.node, false
	return []func() error{
		func() error {
			if done = n.isMounted(target); !done {
				makeDirectory(all, id).create()
			}
			return nil
		},
		func() error {
			if done {
				return nil
			}
			return n.makePlace(target, false, false)
		},
		func() error {
			if f := all[id]; f != nil && !done {
				f.given = true
			}
			return nil
		},
		func() error {
			f := all[id]
			if done || n.isMounted(target) {
				return nil
			}
			if f == nil || f.pav == nil || !f.pav.mounted || n.places[target] == nil {
				return fmt.Errorf("binding %q: %w", id, mount.ErrNotMounted)
			}
			n.places[target].add(layer{content: &content{pav: f.pav}})
			return nil
		},
	}
}

// Unpublish implements csi.Directories.
func (d *Directories) Unpublish(ctx context.Context, target string) (stage string, err error) {
	err = d.agent.do(ctx, "Unpublish "+target, append(
		[]func() error{func() error {
			stage = d.agent.node.stageAt(target)
			return nil
		}}, d.unpublish(target)...)...)
	if err != nil {
		return "", err
	}
	return stage, nil
}

// stageAt returns the name of the stage whose /pav is mounted at target, or "".
func (n *Node) stageAt(target string) string {
	for id, f := range n.stages {
		if slices.Contains(n.users(f), target) {
			return id
		}
	}
	return ""
}

// unpublish returns the steps that unmount a /pav from the target of a pod, and remove the target.
func (d *Directories) unpublish(target string) []func() error {
	n := d.agent.node
	return []func() error{
		func() error {
			for _, directories := range []map[string]*stageDirectory{n.stages, n.pods} {
				for _, f := range directories {
					// A mount over /pav is unmounted together with all mounts below it, in all pods with this /pav.
					if slices.Contains(n.users(f), target) && f.pav.covers > 0 {
						f.pav.covers, f.pav.volume = 0, nil
					}
				}
			}
			n.unmount(target)
			return nil
		},
		func() error {
			if at := n.places[target]; at != nil && len(at.layers) == 0 {
				delete(n.places, target)
			}
			return nil
		},
	}
}

// users returns the targets at which pods have the /pav of a directory, sorted.
func (n *Node) users(f *stageDirectory) []string {
	if f == nil || f.pav == nil || !f.pav.mounted {
		return nil
	}
	var all []string
	for path, at := range n.places {
		if slices.ContainsFunc(at.layers, func(l layer) bool { return l.content.pav == f.pav }) {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

// Users implements stage.Directories.
func (d *Directories) Users(ctx context.Context, stage string) ([]string, error) {
	n := d.agent.node
	return ask(ctx, d.agent, "Users "+stage, func() ([]string, error) { return n.users(n.stages[stage]), nil })
}

// InUse implements stage.Directories.
func (d *Directories) InUse(ctx context.Context, stage string) (bool, error) {
	n := d.agent.node
	return ask(ctx, d.agent, "InUse "+stage, func() (bool, error) { return len(n.users(n.stages[stage])) > 0, nil })
}

// volumeID matches the IDs that kubelet gives to inline volumes.
var volumeID = regexp.MustCompile(`^csi-[0-9a-f]{64}$`)

func checkID(id string) error {
	if !volumeID.MatchString(id) {
		return fmt.Errorf("%w: %.100q", pavdir.ErrVolumeID, id)
	}
	return nil
}

// PublishPod implements collect.Directories.
func (d *Directories) PublishPod(ctx context.Context, id string, pod pavdir.Pod, target string) error {
	if err := checkID(id); err != nil {
		return err
	}
	pods := d.agent.node.pods
	return d.agent.do(ctx, "PublishPod "+id+" "+target, append([]func() error{
		func() error {
			makeDirectory(pods, id)
			return nil
		},
		func() error { return makeDirectory(pods, id).recordPod(id, pod) },
	}, d.publish(pods, id, target)...)...)
}

// recordPod writes the record of a pod. It returns an error if another pod is already recorded.
func (f *stageDirectory) recordPod(id string, pod pavdir.Pod) error {
	found, err := decode[pavdir.Pod](f.record, id)
	if err != nil {
		return err
	}
	if found != nil && (found.Namespace != pod.Namespace || found.Name != pod.Name || found.UID != pod.UID) {
		return fmt.Errorf("the directory of pod %s/%s is that of pod %s/%s", pod.Namespace, pod.Name, found.Namespace, found.Name)
	}
	f.record, err = json.Marshal(pod)
	if err != nil {
		return fmt.Errorf("encoding the record of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// Pod implements collect.Directories.
func (d *Directories) Pod(ctx context.Context, id string) (pod *pavdir.Pod, exists bool, err error) {
	if err := checkID(id); err != nil {
		return nil, false, err
	}
	err = d.agent.do(ctx, "Pod "+id, func() (err error) {
		f := d.agent.node.pods[id]
		if exists = f != nil; !exists {
			return nil
		}
		pod, err = decode[pavdir.Pod](f.record, id)
		return err
	})
	if err != nil {
		return nil, exists, err
	}
	return pod, exists, nil
}

// Begun implements csi.Directories.
func (d *Directories) Begun(ctx context.Context, id, target string) (bool, error) {
	return ask(ctx, d.agent, "Begun "+id+" "+target, func() (bool, error) {
		n := d.agent.node
		return n.pods[id] != nil || n.places[target] != nil, nil
	})
}

// PodReady implements collect.Directories.
func (d *Directories) PodReady(ctx context.Context, id string, woken func()) (bool, error) {
	if err := checkID(id); err != nil {
		return false, err
	}
	return ask(ctx, d.agent, "PodReady "+id, func() (bool, error) {
		pav, err := d.agent.node.pods[id].open()
		if err != nil {
			return false, err
		}
		if !pav.mounted {
			return false, pavdir.ErrLost
		}
		d.agent.awaited[id] = await{pav, woken}
		_, ready := pav.files["ready"]
		return ready, nil
	})
}

// ReadPod implements collect.Directories.
func (d *Directories) ReadPod(ctx context.Context, id, name string, limit int) (string, error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	text, err := ask(ctx, d.agent, "ReadPod "+id+" "+name, func() (string, error) {
		pav, err := d.agent.node.pods[id].open()
		if err != nil {
			return "", err
		}
		if !pav.mounted {
			return "", pavdir.ErrLost
		}
		return pav.read(name, limit)
	})
	if errors.Is(err, errCovered) {
		return "", fmt.Errorf("reading %q: %w", name, err)
	}
	return text, err
}

// UnpublishPod implements collect.Directories.
func (d *Directories) UnpublishPod(ctx context.Context, id, target string) error {
	if err := checkID(id); err != nil {
		return err
	}
	return d.agent.do(ctx, "UnpublishPod "+id+" "+target, append(d.unpublish(target), d.removePod(id)...)...)
}

// removePod returns the steps that remove the directory of a pod.
func (d *Directories) removePod(id string) []func() error {
	pods := d.agent.node.pods
	return []func() error{
		func() error {
			if f := pods[id]; f != nil {
				f.discard()
			}
			return nil
		},
		func() error {
			if f := pods[id]; f != nil {
				f.record = nil
			}
			return nil
		},
		func() error {
			delete(pods, id)
			return nil
		},
	}
}

// errInUse ends the steps of RemovePod if the /pav is still mounted for a pod.
var errInUse = errors.New("the /pav of the pod is in use")

// RemovePod implements collect.Directories.
func (d *Directories) RemovePod(ctx context.Context, id string) (inUse bool, err error) {
	if err := checkID(id); err != nil {
		return false, err
	}
	n := d.agent.node
	err = d.agent.do(ctx, "RemovePod "+id, append([]func() error{func() error {
		if len(n.users(n.pods[id])) > 0 {
			return errInUse
		}
		return nil
	}}, d.removePod(id)...)...)
	if errors.Is(err, errInUse) {
		return true, nil
	}
	return false, err
}

// Pods implements collect.Directories.
func (d *Directories) Pods(ctx context.Context) ([]string, error) {
	return ask(ctx, d.agent, "Pods", func() ([]string, error) { return slices.Sorted(maps.Keys(d.agent.node.pods)), nil })
}
