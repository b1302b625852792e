package main

import (
	"strings"
	"testing"
)

func TestManifestsCanBeRead_AndOnlyNodesAreReplaced(t *testing.T) {
	w := &world{node: "node2"}
	for name, manifest := range map[string]string{
		"external": externalManifest, "local-path": localPathManifest, "pav": pavManifest, "data": dataManifest, "idle": idleDaemon,
	} {
		text := w.placed(manifest)
		for document := range strings.SplitSeq(text, "\n---\n") {
			object, err := decode(document)
			if err != nil || object.GetName() == "" {
				t.Errorf("%s: %v\n%s", name, err, document)
			}
		}
		if strings.Contains(text, "_NODE") != (name == "local-path") {
			t.Errorf("%s has names of nodes that are not replaced:\n%s", name, text)
		}
	}
	if !strings.Contains(w.placed(localPathManifest), `"DEFAULT_PATH_FOR_NON_LISTED_NODES"`) {
		t.Error("a word of local-path-provisioner is replaced")
	}
}
