package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadyTooEarly(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   place
	}{
		"right after it":              {"mkdir -p /pav/volume\nmount-s3 -f b /pav/volume &\ntouch /pav/ready\nwait", place{3, 1}},
		"on the same line":            {"s3fs b /pav/volume -f & touch /pav/ready; wait", place{1, 25}},
		"after a pause":               {"s3fs b /pav/volume -f &\nsleep 5\ntouch /pav/ready", place{3, 1}},
		"by a redirection":            {"s3fs b /pav/volume -f &\n: > /pav/ready", place{2, 3}},
		"over several lines":          {"s3fs b /pav/volume \\\n  -f 2>&1 | tee /log &\ntouch /pav/ready", place{3, 1}},
		"where a comment has a check": {"s3fs b /pav/volume -f & # mountpoint?\ntouch /pav/ready", place{2, 1}},
		"in a subshell":               {"(s3fs b /pav/volume -f) &\ntouch /pav/ready", place{2, 1}},

		"after mountpoint":               {source: "s3fs b /pav/volume -f &\nuntil mountpoint -q /pav/volume; do sleep 0.1; done\ntouch /pav/ready"},
		"after a loop":                   {source: "s3fs b /pav/volume -f &\nwhile ! grep -q /pav/volume /proc/mounts; do sleep 1; done; touch /pav/ready"},
		"after a test":                   {source: "s3fs b /pav/volume -f &\nsleep 1; [ -e /pav/volume/.ok ] || exit 1\ntouch /pav/ready"},
		"a mount in the foreground":      {source: "s3fs b /pav/volume\ntouch /pav/ready"},
		"it waits in the background":     {source: "(until mountpoint -q /pav/volume; do sleep 1; done; touch /pav/ready) &\nexec s3fs b /pav/volume -f"},
		"something else runs there":      {source: "mount -t tmpfs x /pav/volume\nlogger -f /log &\ntouch /pav/ready"},
		"output goes to another one":     {source: "mount -t tmpfs x /pav/volume 2>&1\ntouch /pav/ready"},
		"one and the other":              {source: "mount -t tmpfs x /pav/volume && touch /pav/ready"},
		"before it":                      {source: "touch /pav/ready\ns3fs b /pav/volume -f &"},
		"not at all":                     {source: "s3fs b /pav/volume -f &\nwait"},
		"an address with an ampersand":   {source: "s3fs b /pav/volume -o 'url=http://a?b&c'\ntouch /pav/ready"},
		"what sleeps behind it is other": {source: "mount x /pav/volume; touch /pav/ready; sleep infinity & wait"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := readyTooEarly(test.source)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(place{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.source, diff)
			}
		})
	}
}

func TestResultAfterReady(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   place
	}{
		"on the next line":             {"touch /pav/ready\necho -n h > /pav/handle", place{2, 11}},
		"on the same line":             {": > /pav/ready; printf %s 1Gi >/pav/capacity", place{1, 31}},
		"one before and one after it":  {"echo -n h > /pav/handle\ntouch /pav/ready\necho 1Gi > '/pav/capacity'", place{3, 10}},
		"after further commands":       {"touch /pav/ready\nmkfs.ext4 /img && echo h > /pav/handle", place{2, 26}},
		"with a template":              {"touch /pav/ready\necho -n {{ pvc.metadata.uid }} > /pav/handle", place{2, 32}},
		"before it":                    {source: "echo -n h > /pav/handle\ntouch /pav/ready"},
		"in another branch":            {source: "case $1 in\na) touch /pav/ready ;;\nb) echo -n h > /pav/handle ;;\nesac"},
		"in another function":          {source: "a() { touch /pav/ready; }\nb() { echo -n h > /pav/handle; }\nb; a"},
		"a function before it":         {source: "a() { touch /pav/ready; }\necho -n h > /pav/handle\na"},
		"it is in a trap":              {source: "trap 'touch /pav/ready' EXIT\necho -n h > /pav/handle"},
		"one or the other":             {source: "a && touch /pav/ready || echo -n h > /pav/handle"},
		"in a function in brackets":    {source: "f() ( touch /pav/ready )\necho -n h > /pav/handle\nf"},
		"in a text":                    {source: "x='touch /pav/ready'\necho -n h > /pav/handle\n$x"},
		"in a here-document":           {source: "cat > /run.sh <<END\ntouch /pav/ready\nEND\necho -n h > /pav/handle"},
		"in a macro":                   {source: "{% macro end() %}\ntouch /pav/ready\n{% endmacro %}\necho -n h > /pav/handle\n{{ end() }}"},
		"another file":                 {source: "touch /pav/ready.tmp; echo -n h > /pav/handle; mv /pav/ready.tmp /pav/ready"},
		"a log":                        {source: "touch /pav/ready\necho done > /pav/handle.log"},
		"in a trap":                    {source: "touch /pav/ready\ntrap 'echo h > /pav/handle' EXIT"},
		"it is created in background":  {source: "(sleep 5; touch /pav/ready) &\necho -n h > /pav/handle"},
		"in a comment":                 {source: "touch /pav/ready\n# echo -n h > /pav/handle"},
		"without /pav/ready":           {source: "echo -n h > /pav/handle"},
		"an error, which may be later": {source: "touch /pav/ready\necho no > /pav/error"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := resultAfterReady(test.source)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(place{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.source, diff)
			}
		})
	}
}

func TestTornCopy(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   place
	}{
		"a copy":                    {"cd /base\ncp -a live snapshot", place{2, 1}},
		"after another command":     {"cd /base && cp live snapshot", place{1, 13}},
		"of each file":              {"for f in *; do cp $f /snapshots; done", place{1, 16}},
		"with reflinks if there is": {"cp --reflink=auto live snapshot", place{1, 1}},
		"after one that is right":   {"cp --reflink=always a b\ncp c d", place{2, 1}},

		"with reflinks":             {source: "cp --reflink=always live snapshot"},
		"with reflinks by default":  {source: "cp -a --reflink live snapshot"},
		"over several lines":        {source: "cp -a \\\n  --reflink=always live snapshot"},
		"of a result":               {source: "cp /tmp/size /pav/snapshotSize"},
		"in a comment":              {source: "# cp live snapshot\nbtrfs subvolume snapshot -r live snapshot"},
		"by another command's name": {source: "scp live host:snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := tornCopy(test.source, anything)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(place{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.source, diff)
			}
		})
	}
}
