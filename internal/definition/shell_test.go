package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuotedWords(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   []place
	}{
		"no quotes":                       {`echo {{ x | tobash }}`, nil},
		"double quotes":                   {`echo "{{ x | tobash }}"`, []place{{1, 7}}},
		"single quotes":                   {`echo 'a {{ x|tobash }}'`, []place{{1, 9}}},
		"another filter last":             {`echo "{{ x | tobash | length }}"`, nil},
		"parentheses":                     {`echo "{{ (x ~ y) | tobash() -}}"`, []place{{1, 7}}},
		"behind quotes":                   {`echo "a"{{ x|tobash }}'b'`, nil},
		"an escaped quote":                {`echo \"{{ x|tobash }}`, nil},
		"an escaped quote in quotes":      {`echo "\"{{ x|tobash }}"`, []place{{1, 9}}},
		"a backslash in single quotes":    {`echo '\'{{ x|tobash }}`, nil},
		"a substitution in quotes":        {`echo "$(cat {{ x|tobash }})"`, nil},
		"quotes in a substitution":        {`echo "$(cat "{{ x|tobash }}")"`, []place{{1, 14}}},
		"a subshell in a substitution":    {`echo "$( (true) ; cat {{ x|tobash }})"`, nil},
		"an apostrophe in a comment":      {"# it's\necho {{ x|tobash }}", nil},
		"a number sign in a word":         {`echo a#'{{ x|tobash }}'`, []place{{1, 9}}},
		"an apostrophe in a document":     {"cat <<EOF\nit's\nEOF\necho {{ x|tobash }}", nil},
		"a document behind a comment":     {"cat <<'EOF' # it's\nit's\nEOF\necho \"{{ x|tobash }}\"", []place{{4, 7}}},
		"a here-string":                   {`cat <<< "{{ x|tobash }}"`, []place{{1, 10}}},
		"quotes in an expression":         {`echo {{ x["it's"] ~ "}}" }} {{ x|tobash }}`, nil},
		"quotes in a statement":           {`{% if x == "'" %}echo {{ x|tobash }}{% endif %}{# it's #}{{ x|tobash }}`, nil},
		"wide characters":                 {"echo é\n echo ü \"é{{ x|tobash }}\"", []place{{2, 11}}},
		"a text that Jinja does not read": {`{% raw %}"{{ x|tobash }}"{% endraw %}`, nil},
		"no end":                          {`echo "{{ x|tobash`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, quotedWords(test.source), cmp.AllowUnexported(place{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.source, diff)
			}
		})
	}
}

func TestScriptOf(t *testing.T) {
	for name, test := range map[string]struct {
		words []any
		want  any
	}{
		"commands":                  {[]any{"-c", "script", "name", "parameter"}, "script"},
		"commands with options":     {[]any{"-e", "-ux", "-c", "script"}, "script"},
		"options in one":            {[]any{"-euxc", "script"}, "script"},
		"an option with a value":    {[]any{"-euo", "pipefail", "-c", "script"}, "script"},
		"a long option":             {[]any{"--norc", "-c", "script"}, "script"},
		"an option behind commands": {[]any{"-c", "-e", "script"}, "script"},
		"an option that is off":     {[]any{"+c", "file"}, nil},
		"a file":                    {[]any{"file", "-c"}, nil},
		"a template":                {[]any{"-c", "{{ x }}"}, "{{ x }}"},
		"nothing":                   {nil, nil},
		"no commands":               {[]any{"-c"}, nil},
		"no text":                   {[]any{"-c", int64(1)}, int64(1)},
	} {
		t.Run(name, func(t *testing.T) {
			var got any
			if script := scriptOf(node{value: test.words}.items()); script != nil {
				got = script.value
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	known := []string{"image", "imagePullPolicy", "name", "restartPolicy", "volumeMounts"}
	for name, want := range map[string]string{
		"imag": "image", "IMAGE": "image", "restartpolicy": "restartPolicy", "volumeMount": "volumeMounts", "naem": "name",
		"pullPolicy": "imagePullPolicy", "policy": "", "x": "", "something": "", "": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}

func TestIsPinned(t *testing.T) {
	for image, want := range map[string]bool{
		"busybox": false, "busybox:latest": false, "busybox:1": true, "localhost:5000/busybox": false, "localhost:5000/busybox:1": true,
		"busybox@sha256:00": true, "busybox:latest@sha256:00": true,
	} {
		if got := isPinned(image); got != want {
			t.Errorf("%q is pinned: %t", image, got)
		}
	}
}
