package kube

import "testing"

func TestParseNodes(t *testing.T) {
	nodes, err := parseNodes([]byte(`{"items":[
		{"metadata":{"name":"node1"},"status":{"nodeInfo":{"bootID":"b1"},"conditions":[
			{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True"}]}},
		{"metadata":{"name":"node2"},"status":{"nodeInfo":{"bootID":"b2"},"conditions":[
			{"type":"Ready","status":"Unknown"}]}},
		{"metadata":{"name":"node3"},"status":{}},
		{"metadata":{"name":"node4"},"spec":{"taints":[{"key":"node.kubernetes.io/not-ready"}]},"status":{
			"conditions":[{"type":"Ready","status":"True"}]}},
		{"metadata":{"name":"node5"},"spec":{"taints":[{"key":"example.com/mine"}]},"status":{
			"conditions":[{"type":"Ready","status":"True"}]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Node{
		"node1": {Name: "node1", Ready: true, BootID: "b1"},
		"node2": {Name: "node2", BootID: "b2"},
		"node3": {Name: "node3"},
		"node4": {Name: "node4"},
		"node5": {Name: "node5", Ready: true},
	} {
		if nodes[name] != want {
			t.Errorf("got %+v, want %+v", nodes[name], want)
		}
	}
	if _, err := parseNodes([]byte("<html>")); err == nil {
		t.Error("no error for something else")
	}
}
