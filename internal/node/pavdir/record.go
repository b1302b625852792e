package pavdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// Pod is whose own directory it is. As JSON it is the record in the directory's folder, by which the
// next agent knows the pod.
type Pod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`

	// BootID tells the boot of the node in which the pod got its directory last: what it wrote before
	// that may not have reached the disk.
	BootID string `json:"bootID"`
}

// recordName is the file of the record. A temporary one has a dot before its name.
const recordName = "pod.json"

// recorded returns the pod on record, or nil where none is.
func (p directory) recorded() (*Pod, error) {
	raw, err := os.ReadFile(filepath.Join(p.folder, recordName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of a pod: %w", err)
	}
	pod := &Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return nil, fmt.Errorf("decoding the record of a pod in %q: %w", p.folder, err)
	}
	return pod, nil
}

// record puts the pod on record for good, so that whenever the machine stops, it is on record or not at all.
func (p directory) record(pod Pod) error {
	found, err := p.recorded()
	if err != nil {
		return err
	}
	if found != nil && *found == pod {
		return nil
	}
	if found != nil && (found.Namespace != pod.Namespace || found.Name != pod.Name || found.UID != pod.UID) {
		return fmt.Errorf("the directory of pod %s/%s is that of pod %s/%s", pod.Namespace, pod.Name, found.Namespace, found.Name)
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		return fmt.Errorf("encoding the record of a pod: %w", err)
	}
	temporary := filepath.Join(p.folder, "."+recordName)
	if err := writeSynced(temporary, raw); err != nil {
		return fmt.Errorf("writing the record of a pod: %w", err)
	}
	if err := os.Rename(temporary, filepath.Join(p.folder, recordName)); err != nil {
		return fmt.Errorf("writing the record of a pod: %w", err)
	}
	return syncDir(p.folder)
}

func writeSynced(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncDir makes what was renamed in a directory last.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing a directory: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}
