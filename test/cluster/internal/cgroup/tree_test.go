package cgroup

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestMakeDirectories_WhileAnotherRemovesTheParent(t *testing.T) {
	above := filepath.Join(t.TempDir(), parent)
	made := filepath.Join(above, "cluster", "node")
	stop := make(chan struct{})
	remover := sync.WaitGroup{}
	remover.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Remove(above) // It fails unless it is empty.
			}
		}
	})
	defer remover.Wait()
	defer close(stop)
	for range 500 {
		if err := makeDirectories(made); err != nil {
			t.Fatal(err)
		}
		for _, directory := range []string{made, filepath.Dir(made)} {
			if err := os.Remove(directory); err != nil {
				t.Fatal(err)
			}
		}
	}
}
