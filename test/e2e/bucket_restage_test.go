package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The account of a volume that is a bucket is replaced: the node stages the volume again with the new one, a client that follows mounts goes on,
// and then the former account is revoked, although the volume was never unstaged.
func TestRotation_OfAVolume_StagesItAgain(t *testing.T) {
	t.Parallel()
	e := newRotatedExample(t, "bucket-restage", func(text string) string {
		text = strings.Replace(text, "volumeStaging:\n", "volumeStaging:\n    onRotation: Restage\n", 1)
		return strings.Replace(text, "bucketAccessGrant:\n", "bucketAccessGrant:\n    overlap: 0s\n", 1)
	})
	apply(t, e.namespace, claim("data", e.name, "ReadWriteMany"))
	e.run(t, following(clientPod("client", "data", "")))
	e.sh(t, "client", "echo before > /data/file")
	made := read(t, &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(e.namespace, "data")})
	record := &pavv1.PavBucketAccess{ObjectMeta: objectMeta("", "a-"+string(made.UID))}
	first := read(t, record).Status.Current.AccountID

	changeAccess(t, record, age)
	now := time.Now().UTC().Format(pavv1.RetryFormat)
	_, err := kubectl(t.Context(), "", "annotate", "pavbucketaccess", record.Name, pavv1.RotateAnnotation+"="+now)
	must(t, err)
	eventually(t, "the volume's account is replaced, and the former one revoked", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		if status := record.Status; status.Current == nil || status.Current.AccountID == first || len(status.Former) > 0 {
			return fmt.Errorf("the record has the status %+v", status)
		}
		return nil
	})
	second := record.Status.Current
	if got, want := e.accounts(t), "<Access>"+second.AccountID+"\n"; got != want {
		t.Errorf("the server has the accounts %q, want %q", got, want)
	}
	must(t, e.wantStagedWith(t.Context(), volumeName(made), second.Number))
	eventually(t, "the client has the volume again", func(ctx context.Context) error {
		if got, err := inPod(ctx, e.namespace, "client", "cat /data/file && echo after > /data/after"); err != nil || got != "before\n" {
			return fmt.Errorf("it reads %q: %w", got, err)
		}
		return nil
	})
	for _, object := range []string{"data", "client"} {
		eventually(t, object+" has an event of it", func(ctx context.Context) error {
			return wantEvent(ctx, e.namespace, object, "AccountReplaced", "stages the volume again")
		})
	}
	if phase := read(t, &corev1.Pod{ObjectMeta: objectMeta(e.namespace, "client")}).Status; phase.ContainerStatuses[0].RestartCount != 0 {
		t.Error("the client was restarted")
	}
	e.end(t, "client", "s3-admin")
}

// wantStagedWith objects unless all stages of a volume have an account.
func (e *example) wantStagedWith(ctx context.Context, volume string, account int32) error {
	stages := &pavv1.PavStageList{}
	if err := kube.List(ctx, stages); err != nil {
		return err
	}
	found := 0
	for i := range stages.Items {
		stage := &stages.Items[i]
		if stage.Spec.VolumeName != volume {
			continue
		}
		found++
		if has := stage.Status.BucketAccount; has == nil || *has != account {
			return fmt.Errorf("PavStage %s has the status %+v, want account %d", stage.Name, stage.Status, account)
		}
	}
	if found == 0 {
		return fmt.Errorf("volume %s is staged nowhere", volume)
	}
	return nil
}
