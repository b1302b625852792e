package csi

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/albertofaria/pav/internal/node/stage"
)

func TestNodeGetVolumeStats_ReturnsWhatIsKnown(t *testing.T) {
	var directory, blockDevice stage.Stats
	directory.Usage.Bytes.Total, directory.Usage.Bytes.Available, directory.Usage.Bytes.Used = 100, 60, 40
	directory.Usage.Inodes.Total, directory.Usage.Inodes.Available, directory.Usage.Inodes.Used = 10, 7, 3
	blockDevice.Usage.Bytes.Total = 100
	full := directory
	full.Usage.Bytes.Available, full.Usage.Bytes.Used = 0, 100
	degraded := directory
	degraded.Abnormal, degraded.Message = true, "the staging pod has ended"

	bytes := &csi.VolumeUsage{Unit: csi.VolumeUsage_BYTES, Total: 100, Available: 60, Used: 40}
	inodes := &csi.VolumeUsage{Unit: csi.VolumeUsage_INODES, Total: 10, Available: 7, Used: 3}
	fine := &csi.VolumeCondition{Message: "the volume is available"}
	ours := cmpopts.IgnoreUnexported(csi.NodeGetVolumeStatsResponse{}, csi.VolumeUsage{}, csi.VolumeCondition{})
	for name, test := range map[string]struct {
		stats stage.Stats
		want  *csi.NodeGetVolumeStatsResponse
	}{
		"a directory": {directory, &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{bytes, inodes}, VolumeCondition: fine}},
		"a device": {blockDevice, &csi.NodeGetVolumeStatsResponse{
			Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: 100}}, VolumeCondition: fine,
		}},
		"a full directory": {full, &csi.NodeGetVolumeStatsResponse{
			Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: 100, Used: 100}, inodes}, VolumeCondition: fine,
		}},
		"a directory that is degraded, but answers": {degraded, &csi.NodeGetVolumeStatsResponse{
			Usage: []*csi.VolumeUsage{bytes, inodes}, VolumeCondition: &csi.VolumeCondition{Abnormal: true, Message: "the staging pod has ended"},
		}},
		"a volume that does not answer": {stage.Stats{Abnormal: true, Message: "it hangs"}, &csi.NodeGetVolumeStatsResponse{
			VolumeCondition: &csi.VolumeCondition{Abnormal: true, Message: "it hangs"},
		}},
		"a volume that is abnormal for no reason": {stage.Stats{Abnormal: true}, &csi.NodeGetVolumeStatsResponse{
			VolumeCondition: &csi.VolumeCondition{Abnormal: true, Message: "the volume is abnormal"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &node{driver: "driver", stager: &recorder{stats: test.stats}}
			got, err := s.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "id", VolumePath: "/target"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, ours); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodeGetVolumeStats_FindsNoVolumeOutsideKubeletsDirectory(t *testing.T) {
	for _, path := range []string{"some/path", "target", "./target", "/a/../target", "/target/"} {
		r := &recorder{}
		s := &node{driver: "driver", stager: r}
		_, err := s.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "id", VolumePath: path})
		if status.Code(err) != codes.NotFound || len(r.calls) > 0 {
			t.Errorf("%s: got %v after the calls %+v, want the code NotFound after none", path, err, r.calls)
		}
	}
}

func TestPublishedAt_LeadsFromKubeletsBindOfADeviceToTheTarget(t *testing.T) {
	const devices = "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/"
	for path, want := range map[string]string{
		devices + "pv/dev/pod-uid":                                      devices + "publish/pv/pod-uid",
		devices + "publish/pv/pod-uid":                                  devices + "publish/pv/pod-uid",
		devices + "publish/dev/pod-uid":                                 devices + "publish/publish/pod-uid", // Kubelet requests its own bind: this path is that of the volume "publish", never the target of the volume "dev".
		"/csi/volumeDevices/pv/dev/uid":                                 "/csi/volumeDevices/publish/pv/uid",
		"/x/volumeDevices/pv/dev/uid":                                   "/x/volumeDevices/pv/dev/uid",
		"/csi/volumeDevices/pv/data/uid":                                "/csi/volumeDevices/pv/data/uid",
		"/var/lib/kubelet/pods/uid/volumes/kubernetes.io~csi/pv/mount":  "/var/lib/kubelet/pods/uid/volumes/kubernetes.io~csi/pv/mount",
		"/var/lib/kubelet/pods/uid/volumes/kubernetes.io~csi/dev/mount": "/var/lib/kubelet/pods/uid/volumes/kubernetes.io~csi/dev/mount",
		"/target": "/target", "/": "/", "/dev/x": "/dev/x",
	} {
		if got := publishedAt(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
