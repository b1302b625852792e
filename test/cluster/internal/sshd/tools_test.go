package sshd

import (
	"os"
	"slices"
	"testing"
)

func TestSessionsFindSudoBeforeTheMachines(t *testing.T) {
	directory := t.TempDir()
	if err := WriteTools(directory); err != nil {
		t.Fatal(err)
	}
	path := WithTools([]string{"PATH=" + os.Getenv("PATH")}, directory)
	for command, want := range map[string]struct {
		output string
		code   int
	}{
		"command -v systemctl":            {output: directory + "/systemctl\n"},
		"command -v sudo":                 {output: directory + "/sudo\n"},
		"sudo --version":                  {output: "Sudo version 0 (sessions are those of root)\n"},
		"sudo sh -c 'echo $NAME; exit 4'": {output: "value\n", code: 4},
		"sudo command-v":                  {code: 127},
		"sudo -n true":                    {code: 1},
		"sudo":                            {code: 1},
		"sudo echo 'a  b' '$c'":           {output: "a  b $c\n"},
	} {
		t.Run(command, func(t *testing.T) {
			_, session := session(t, append([]string{"NAME=value"}, path...)...)
			output, err := session.Output(command)
			if string(output) != want.output || code(err) != want.code {
				t.Errorf("got %q, %v; want %q, %d", output, err, want.output, want.code)
			}
		})
	}
}

func TestOnlyThePathChanges(t *testing.T) {
	got := WithTools([]string{"HOME=/root", "PATH=/a:/b", "XPATH=/c"}, "/tools")
	if want := []string{"HOME=/root", "PATH=/tools:/a:/b", "XPATH=/c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
