package sshd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ToolsDirectory is the node's directory of programs for SSH sessions only. It is new at each start of a node.
const ToolsDirectory = "/run/pav-cluster/ssh"

// tools are scripts by name. systemctl runs this program. The machine's sudo cannot be used: it would search for
// programs in its own PATH and would find the machine's systemctl.
var tools = map[string]string{
	"systemctl": "#!/bin/sh\nexec " + Program + " systemctl \"$@\"\n",
	"sudo": `#!/bin/sh
case $1 in
--version) echo 'Sudo version 0 (sessions are those of root)' ;;
-*|'') echo "sudo: a command is needed, and no options: $*" >&2; exit 1 ;;
*) exec /usr/bin/env -- "$@" ;;
esac
`,
}

// WriteTools writes systemctl and sudo into a directory.
func WriteTools(directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("making the directory of sessions' programs: %w", err)
	}
	for name, script := range tools {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(script), 0o755); err != nil {
			return fmt.Errorf("writing a program of sessions: %w", err)
		}
	}
	return nil
}

// WithTools returns an environment in which the directory is first in PATH.
func WithTools(environment []string, directory string) []string {
	var changed []string
	for _, variable := range environment {
		if path, found := strings.CutPrefix(variable, "PATH="); found {
			variable = "PATH=" + directory + ":" + path
		}
		changed = append(changed, variable)
	}
	return changed
}
