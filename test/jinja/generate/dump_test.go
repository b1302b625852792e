package generate

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"testing"
)

func TestDump(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("DUMP"))
	if n == 0 {
		t.Skip()
	}
	f, _ := os.Create("/tmp/dump.jsonl")
	w := bufio.NewWriter(f)
	for i := range n {
		c := New(1, uint64(i))
		line, _ := json.Marshal(map[string]any{"template": c.Template, "ctx": json.RawMessage(c.Context)})
		w.Write(append(line, '\n'))
	}
	w.Flush()
	f.Close()
}
