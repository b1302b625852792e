package csi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
)

// recorder is a Stager that records its calls and answers with err.
type recorder struct {
	calls    []call
	deadline time.Time // of the last call's context
	stats    stage.Stats
	err      error
}

// call is a call of the Stager.
type call struct {
	Method      string
	Volume      stage.Volume
	Staging     stage.Staging
	Publication stage.Publication
	Path        string
	Capacity    int64
}

func (r *recorder) record(ctx context.Context, c call) error {
	r.deadline, _ = ctx.Deadline()
	r.calls = append(r.calls, c)
	return r.err
}

// Stage implements Stager.
func (r *recorder) Stage(ctx context.Context, v stage.Volume, want stage.Staging) error {
	return r.record(ctx, call{Method: "Stage", Volume: v, Staging: want})
}

// Unstage implements Stager.
func (r *recorder) Unstage(ctx context.Context, v stage.Volume, path string) error {
	return r.record(ctx, call{Method: "Unstage", Volume: v, Path: path})
}

// Publish implements Stager.
func (r *recorder) Publish(ctx context.Context, v stage.Volume, p stage.Publication) error {
	return r.record(ctx, call{Method: "Publish", Volume: v, Publication: p})
}

// Unpublish implements Stager.
func (r *recorder) Unpublish(ctx context.Context, v stage.Volume, target string) error {
	return r.record(ctx, call{Method: "Unpublish", Volume: v, Path: target})
}

// Expand implements Stager.
func (r *recorder) Expand(ctx context.Context, v stage.Volume, capacity int64) error {
	return r.record(ctx, call{Method: "Expand", Volume: v, Capacity: capacity})
}

// Stats implements Stager.
func (r *recorder) Stats(ctx context.Context, v stage.Volume, path string) (stage.Stats, error) {
	return r.stats, r.record(ctx, call{Method: "Stats", Volume: v, Path: path})
}

// capability returns a capability of the mode Filesystem.
func capability(mode csi.VolumeCapability_AccessMode_Mode, flags ...string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: flags}},
	}
}

// device returns a capability of the mode Block, as kubelet makes it.
func device(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	}
}

const writer = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER

// calls returns a function for each RPC, which makes the call with these fields.
func calls(id, staging, target string, c *csi.VolumeCapability) map[string]func(context.Context, *node) error {
	return map[string]func(context.Context, *node) error{
		"Stage": func(ctx context.Context, s *node) error {
			_, err := s.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging, VolumeCapability: c})
			return err
		},
		"Unstage": func(ctx context.Context, s *node) error {
			_, err := s.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging})
			return err
		},
		"Publish": func(ctx context.Context, s *node) error {
			_, err := s.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: c})
			return err
		},
		"Unpublish": func(ctx context.Context, s *node) error {
			_, err := s.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target})
			return err
		},
		"Expand": func(ctx context.Context, s *node) error {
			_, err := s.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
				VolumeId: id, VolumePath: target, StagingTargetPath: staging, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30}, VolumeCapability: c,
			})
			return err
		},
		"Stats": func(ctx context.Context, s *node) error {
			_, err := s.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target, StagingTargetPath: staging})
			return err
		},
	}
}

func TestEachCallReachesTheDomain(t *testing.T) {
	volume := stage.Volume{Driver: "driver", Handle: "id"}
	for mode, capability := range map[corev1.PersistentVolumeMode]*csi.VolumeCapability{
		corev1.PersistentVolumeFilesystem: capability(writer),
		corev1.PersistentVolumeBlock:      device(writer),
	} {
		isDirectory := mode == corev1.PersistentVolumeFilesystem
		want := map[string]call{
			"Stage":   {Method: "Stage", Volume: volume, Staging: stage.Staging{Mode: mode, Path: "/staging"}},
			"Unstage": {Method: "Unstage", Volume: volume, Path: "/staging"},
			"Publish": {Method: "Publish", Volume: volume, Publication: stage.Publication{
				Target: "/target", Mode: mode, Client: pavdir.Client{Target: "/target"},
				Options: mount.BindOptions{NoSuid: isDirectory, NoDev: isDirectory},
			}},
			"Unpublish": {Method: "Unpublish", Volume: volume, Path: "/target"},
			"Expand":    {Method: "Expand", Volume: volume, Capacity: 1 << 30},
			"Stats":     {Method: "Stats", Volume: volume, Path: "/target"},
		}
		for method, do := range calls("id", "/staging", "/target", capability) {
			t.Run(fmt.Sprintf("%s of the mode %s", method, mode), func(t *testing.T) {
				r := &recorder{}
				if err := do(t.Context(), &node{driver: "driver", stager: r}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]call{want[method]}, r.calls); diff != "" {
					t.Errorf("calls of the domain (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestInvalidCallsAreRefused_NameTheField_AndNeverReachTheDomain(t *testing.T) {
	good := capability(writer)
	for name, test := range map[string]struct {
		id, staging, target string
		capability          *csi.VolumeCapability
		words               string
		methods             []string // the methods that refuse the request
	}{
		"without a volume":                 {"", "/s", "/t", good, "volume_id is missing", []string{"Stage", "Unstage", "Publish", "Unpublish", "Expand", "Stats"}},
		"without a staging path":           {"id", "", "/t", good, "staging_target_path is missing", []string{"Stage", "Unstage", "Publish"}},
		"without a target path":            {"id", "/s", "", good, "target_path is missing", []string{"Publish", "Unpublish"}},
		"without a path to look at":        {"id", "/s", "", good, "volume_path is missing", []string{"Expand", "Stats"}},
		"with a relative staging path":     {"id", "s", "/t", good, "staging_target_path is not an absolute path", []string{"Stage", "Unstage", "Publish"}},
		"with a relative target path":      {"id", "/s", "t", good, "target_path is not an absolute path", []string{"Publish", "Unpublish"}},
		"with a target that climbs":        {"id", "/s", "/a/../t", good, "target_path is not an absolute path", []string{"Publish", "Unpublish"}},
		"with a slash behind the target":   {"id", "/s", "/t/", good, "target_path is not an absolute path", []string{"Publish", "Unpublish"}},
		"without a capability":             {"id", "/s", "/t", nil, "volume_capability is missing", []string{"Stage", "Publish"}},
		"without an access type":           {"id", "/s", "/t", &csi.VolumeCapability{AccessMode: good.GetAccessMode()}, "no access type", []string{"Stage", "Publish"}},
		"without an access mode":           {"id", "/s", "/t", &csi.VolumeCapability{AccessType: good.GetAccessType()}, "no access mode", []string{"Stage", "Publish"}},
		"with the access mode 'unknown'":   {"id", "/s", "/t", capability(csi.VolumeCapability_AccessMode_UNKNOWN), "no access mode", []string{"Stage", "Publish"}},
		"for a device of an unknown mode":  {"id", "/s", "/t", device(csi.VolumeCapability_AccessMode_UNKNOWN), "no access mode", []string{"Stage", "Publish"}},
		"for a device without access mode": {"id", "/s", "/t", &csi.VolumeCapability{AccessType: device(writer).GetAccessType()}, "no access mode", []string{"Stage", "Publish"}},
		"for a device, by a relative path": {"id", "s", "t", device(writer), "staging_target_path is not an absolute path", []string{"Stage", "Unstage", "Publish"}},
	} {
		t.Run(name, func(t *testing.T) {
			does := calls(test.id, test.staging, test.target, test.capability)
			for _, method := range test.methods {
				r := &recorder{}
				err := does[method](t.Context(), &node{driver: "driver", stager: r})
				if status.Code(err) != codes.InvalidArgument || !strings.Contains(status.Convert(err).Message(), test.words) {
					t.Errorf("%s: got %v, want the code InvalidArgument with %q", method, err, test.words)
				}
				if len(r.calls) > 0 {
					t.Errorf("%s: the domain was called: %+v", method, r.calls)
				}
			}
		})
	}
}

func TestNodeExpandVolume_NeedsACapacity(t *testing.T) {
	for name, capacity := range map[string]*csi.CapacityRange{"none": nil, "only a limit": {LimitBytes: 1}, "a negative one": {RequiredBytes: -1}} {
		r := &recorder{}
		_, err := (&node{driver: "driver", stager: r}).NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: "id", VolumePath: "/t", CapacityRange: capacity})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(status.Convert(err).Message(), "capacity_range.required_bytes") || len(r.calls) > 0 {
			t.Errorf("%s: got %v, and the calls %+v", name, err, r.calls)
		}
	}
}

func TestWithMargin_EndsTheWorkBeforeTheCallersDeadline(t *testing.T) {
	for name, test := range map[string]struct {
		timeout, want time.Duration
	}{
		"two minutes, as kubelet's":        {2 * time.Minute, 2*time.Minute - 3*time.Second},
		"a little more than four margins":  {15 * time.Second, 12 * time.Second},
		"too little to take anything away": {11 * time.Second, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			outer, stop := context.WithDeadline(t.Context(), began.Add(test.timeout))
			defer stop()
			ctx, cancel := withMargin(outer)
			defer cancel()
			deadline, _ := ctx.Deadline()
			if got := deadline.Sub(began); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	ctx, cancel := withMargin(t.Context())
	if _, limited := ctx.Deadline(); limited {
		t.Error("a call without a deadline gets one")
	}
	cancel()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("the work goes on after its call")
	}
}

func TestEveryCallThatReachesTheDomainHasAMargin(t *testing.T) {
	deadline := time.Now().Add(time.Minute)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	for method, do := range calls("id", "/staging", "/target", capability(writer)) {
		r := &recorder{}
		if err := do(ctx, &node{driver: "driver", stager: r}); err != nil {
			t.Fatal(err)
		}
		if left := deadline.Sub(r.deadline); left != 3*time.Second {
			t.Errorf("%s ends %s before the call", method, left)
		}
	}
}

func TestServices_IdentityAndCapabilities(t *testing.T) {
	s := &node{driver: "driver", nodeID: "node1"}
	info, err := s.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil || info.GetNodeId() != "node1" || info.GetMaxVolumesPerNode() != 0 || info.GetAccessibleTopology() != nil {
		t.Errorf("NodeGetInfo: %v, %v", info, err)
	}
	capabilities, err := s.NodeGetCapabilities(t.Context(), &csi.NodeGetCapabilitiesRequest{})
	var got []string
	for _, c := range capabilities.GetCapabilities() {
		got = append(got, c.GetRpc().GetType().String())
	}
	if diff := cmp.Diff([]string{"STAGE_UNSTAGE_VOLUME", "SINGLE_NODE_MULTI_WRITER", "GET_VOLUME_STATS", "VOLUME_CONDITION", "EXPAND_VOLUME"}, got); err != nil || diff != "" {
		t.Errorf("NodeGetCapabilities: %v, (-want +got):\n%s", err, diff)
	}
	id := &identity{driver: "driver", version: "1.2.3"}
	plugin, err := id.GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	if err != nil || plugin.GetName() != "driver" || plugin.GetVendorVersion() != "1.2.3" {
		t.Errorf("GetPluginInfo: %v, %v", plugin, err)
	}
}
