package main

import "testing"

func TestMemoryOfAProcessIsRead(t *testing.T) {
	const status = "Name:\tpav\nVmRSS:\t   51200 kB\nRssAnon:\t   20480 kB\nRssFile:\t   30720 kB\n"
	resident, private, err := memoryIn(status)
	if resident != 50 || private != 20 || err != nil {
		t.Errorf("got %v, %v, %v", resident, private, err)
	}
	if _, _, err := memoryIn("Name:\tkthreadd\n"); err == nil {
		t.Error("a process without memory is accepted")
	}
}

func TestCostOfOneProvisioner(t *testing.T) {
	before := cost{resident: 40, files: 10, csiNode: 1000, annotation: 100}
	after := cost{resident: 80, files: 2010, csiNode: 72000, annotation: 33100}
	want := "Each provisioner costs the node agent 41.0 KiB of memory and 2.00 open files, CSINode 71 bytes, and the annotation\n" +
		"`csi.volume.kubernetes.io/nodeid` 33 bytes. All annotations of a node may have 256 KiB, enough for about 7944 such provisioners."
	if got := after.each(before, 1000); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSpeedOfTheOnlyJobIsRead(t *testing.T) {
	speed, err := speedIn([]byte(`{"jobs": [{"jobname": "job", "read": {"bw_bytes": 0}, "write": {"bw_bytes": 1048576}}]}`))
	if speed != 1<<20 || err != nil {
		t.Errorf("got %v, %v", speed, err)
	}
	for _, wrong := range []string{`fio: no such file`, `{"jobs": []}`} {
		if _, err := speedIn([]byte(wrong)); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
