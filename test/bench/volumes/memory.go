package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/test/bench/machine"
	"github.com/albertofaria/pav/test/bench/sample"
)

// memoryCases measure what the processes of all provisioners hold while they have nothing to do.
func memoryCases() []benchCase {
	figures := []figure{{"resident memory", "MiB"}, {"of that not shared with a file", "MiB"}, {"open files", count}}
	var idle, full, costs benchCase
	idle = benchCase{name: "memory", title: "Processes of provisioners without volumes", figures: figures, subjects: processes()}
	idle.prepare = func(ctx context.Context, w *world) error { return w.restartAll(ctx) }
	full = benchCase{name: "memory-100", title: "Processes of provisioners with 100 volumes each, all of them used on one node", figures: figures, subjects: processes()}
	full.prepare = func(ctx context.Context, w *world) error {
		if err := w.restartAll(ctx); err != nil {
			return err
		}
		for _, p := range []provider{external, localPath, staging} {
			claims := w.claims(many, p.className(wait))
			if err := w.create(ctx, objects(claims)...); err != nil {
				return err
			}
			if err := w.started(ctx, w.client(claimed(claims...)...)); err != nil {
				return fmt.Errorf("a client of %s: %w", p.class, err)
			}
		}
		return nil
	}
	var before cost
	costs = benchCase{name: "memory-1000", title: "Processes of provisioners with 1,000 provisioners of PaV that nobody uses", figures: figures, subjects: processes()}
	costs.prepare = func(ctx context.Context, w *world) (err error) {
		if err := w.restartAll(ctx); err != nil {
			return err
		}
		if before, err = w.cost(ctx); err != nil {
			return err
		}
		_, err = w.addProvisioners(ctx, 1000)
		return err
	}
	costs.notes = func(ctx context.Context, w *world) (string, error) {
		after, err := w.cost(ctx)
		return after.each(before, 1000), err
	}
	return []benchCase{idle, full, costs}
}

// process is a process of a provisioner, on the node or elsewhere.
type process struct {
	name             string
	role             role
	namespace, label string // the pods with that label have the process
	value, program   string
}

// agentProcess is that of PaV which serves all volumes of the node.
var agentProcess = process{"PaV's node agent", product, "pav", componentLabel, nodeAgent, "pav"}

// provisionerProcesses are those of all provisioners. The smallest driver is about what any program in Go with a gRPC server takes.
var provisionerProcesses = []process{
	{"the smallest CSI driver", floor, "pav-bench-external", peerLabel, "driver", "driver"},
	{"csi-provisioner, for each driver", peer, "pav-bench-external", peerLabel, "csi-provisioner", "csi-provisioner"},
	{"local-path-provisioner", peer, "local-path-storage", "app", "local-path-provisioner", "local-path-prov"},
	agentProcess,
	{"PaV's controller agent, the larger of two", product, "pav", componentLabel, "controller-agent", "pav"},
}

func processes() []subject {
	var found []subject
	for _, p := range provisionerProcesses {
		found = append(found, subject{p.name, p.role, func(ctx context.Context, w *world) ([]float64, error) {
			held, err := p.usage(ctx, w)
			return held.figures(), err
		}})
	}
	return append(found, subject{"kubelet of that node", reference, func(ctx context.Context, w *world) ([]float64, error) {
		pid, err := w.kubelet(ctx)
		if err != nil {
			return nil, err
		}
		held, err := usageOf(pid)
		return held.figures(), err
	}})
}

// usage is what a process holds, in MiB and as a number of open files.
type usage struct{ resident, private, files float64 }

func (u usage) figures() []float64 { return []float64{u.resident, u.private, u.files} }

// usage returns what the process holds, or that of several which holds most.
func (p process) usage(ctx context.Context, w *world) (usage, error) {
	pods := &corev1.PodList{}
	if err := w.kube.List(ctx, pods, client.InNamespace(p.namespace), client.MatchingLabels{p.label: p.value}); err != nil {
		return usage{}, err
	}
	var largest usage
	for _, pod := range pods.Items {
		if p == agentProcess && pod.Spec.NodeName != w.node {
			continue
		}
		pid, err := pidIn(string(pod.UID), p.program)
		if err != nil {
			return usage{}, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		one, err := usageOf(pid)
		if err != nil {
			return usage{}, err
		}
		if one.resident > largest.resident {
			largest = one
		}
	}
	if largest.resident == 0 {
		return usage{}, fmt.Errorf("%s has no pod", p.name)
	}
	return largest, nil
}

// pidIn returns the process of a program in a pod. The nodes share the machine's kernel, so that their processes are in
// this program's /proc, and the names of their cgroups have the UIDs of pods.
func pidIn(pod, program string) (int, error) {
	directories, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, directory := range directories {
		// A process that ends meanwhile is not the one.
		name, _ := os.ReadFile(directory + "/comm")
		groups, _ := os.ReadFile(directory + "/cgroup")
		if strings.TrimSpace(string(name)) == program && strings.Contains(string(groups), pod) {
			return strconv.Atoi(filepath.Base(directory))
		}
	}
	return 0, fmt.Errorf("no process %s", program)
}

func usageOf(pid int) (usage, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, fmt.Errorf("looking at a process: %w", err)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return usage{}, fmt.Errorf("looking at the files of a process: %w", err)
	}
	resident, private, err := memoryIn(string(status))
	return usage{resident, private, float64(len(files))}, err
}

// memoryIn returns the resident memory, and the part of it that is not of a file, from a process's status, in MiB.
func memoryIn(status string) (resident, private float64, err error) {
	var values [2]float64
	for i, name := range []string{"VmRSS", "RssAnon"} {
		kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(machine.Value(status, name), " kB"), 64)
		if err != nil {
			return 0, 0, fmt.Errorf("reading %s: %w", name, err)
		}
		values[i] = kilobytes / 1024
	}
	return values[0], values[1], nil
}

// kubelet returns the process ID of the node's kubelet.
func (w *world) kubelet(ctx context.Context) (int, error) {
	out, err := command(ctx, w.cluster, "status", "-o", "json")
	if err != nil {
		return 0, err
	}
	var status struct {
		Nodes []struct {
			Name       string
			Components []struct {
				Name    string
				HostPID int
			}
		}
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return 0, fmt.Errorf("reading the status of the cluster: %w", err)
	}
	for _, node := range status.Nodes {
		for _, component := range node.Components {
			if node.Name == w.node && component.Name == "kubelet" && component.HostPID != 0 {
				return component.HostPID, nil
			}
		}
	}
	return 0, errors.New("no kubelet runs")
}

// restartAll replaces the processes of all provisioners with new ones: those that have worked have a larger heap.
func (w *world) restartAll(ctx context.Context) error {
	for _, p := range provisionerProcesses {
		pods := &corev1.PodList{}
		ours := []client.ListOption{client.InNamespace(p.namespace), client.MatchingLabels{p.label: p.value}}
		if err := w.kube.List(ctx, pods, ours...); err != nil {
			return err
		}
		old := map[string]bool{}
		for i := range pods.Items {
			old[string(pods.Items[i].UID)] = true
			if err := w.delete(ctx, &pods.Items[i]); err != nil {
				return err
			}
		}
		err := eventually(ctx, p.name+" is a new process", func(ctx context.Context) error {
			now := &corev1.PodList{}
			if err := w.kube.List(ctx, now, ours...); err != nil {
				return err
			}
			for i := range now.Items {
				if old[string(now.Items[i].UID)] || !ready(&now.Items[i]) {
					return errors.New("one is not")
				}
			}
			if len(now.Items) < len(old) {
				return errors.New("one is missing")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cost is what provisioners cost a node.
type cost struct{ resident, files, csiNode, annotation float64 }

// nodeIDs is kubelet's annotation on the Node with the node ID of each driver, a JSON object.
const nodeIDs = "csi.volume.kubernetes.io/nodeid"

// annotationsLimit is the maximum size of all annotations of an object, in bytes.
const annotationsLimit = 256 << 10

// cost returns the median cost of some looks.
func (w *world) cost(ctx context.Context) (cost, error) {
	var resident, files sample.Sample
	for range 11 {
		held, err := agentProcess.usage(ctx, w)
		if err != nil {
			return cost{}, err
		}
		resident, files = append(resident, held.resident), append(files, held.files)
		if err := pause(ctx); err != nil {
			return cost{}, err
		}
	}
	found := cost{resident: resident.Median(), files: files.Median()}
	drivers, node := &storagev1.CSINode{}, &corev1.Node{}
	key := client.ObjectKey{Name: w.node}
	if err := errors.Join(w.kube.Get(ctx, key, drivers), w.kube.Get(ctx, key, node)); err != nil {
		return cost{}, err
	}
	drivers.ManagedFields = nil
	encoded, err := json.Marshal(drivers)
	found.csiNode, found.annotation = float64(len(encoded)), float64(len(node.Annotations[nodeIDs]))
	return found, err
}

// each returns a sentence about the cost of one of so many provisioners.
func (c cost) each(before cost, count float64) string {
	entry := (c.annotation - before.annotation) / count
	return fmt.Sprintf("Each provisioner costs the node agent %.1f KiB of memory and %.2f open files, CSINode %.0f bytes, and the annotation\n"+
		"`%s` %.0f bytes. All annotations of a node may have %d KiB, enough for about %.0f such provisioners.",
		(c.resident-before.resident)*1024/count, (c.files-before.files)/count, (c.csiNode-before.csiNode)/count,
		nodeIDs, entry, annotationsLimit>>10, annotationsLimit/entry)
}
