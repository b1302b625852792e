package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Outside returns the processes in the PID namespace of the process member. It maps their IDs in that namespace to
// their IDs in the caller's namespace. It omits processes that end during the call.
func Outside(member int) map[int]int {
	numbers := map[int]int{}
	wanted, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", member))
	if err != nil {
		return numbers
	}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/pid") // the pattern is valid
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != wanted {
			continue
		}
		directory := filepath.Dir(filepath.Dir(link))
		status, err := os.ReadFile(filepath.Join(directory, "status"))
		if err != nil {
			continue
		}
		outer, err := strconv.Atoi(filepath.Base(directory))
		if err != nil {
			continue
		}
		if inner, found := innermost(string(status)); found {
			numbers[inner] = outer
		}
	}
	return numbers
}

// innermost returns the process ID in the process's own PID namespace, from the content of /proc/PID/status.
func innermost(status string) (int, bool) {
	for line := range strings.Lines(status) {
		list, found := strings.CutPrefix(line, "NSpid:")
		if !found {
			continue
		}
		fields := strings.Fields(list)
		if len(fields) == 0 {
			return 0, false
		}
		number, err := strconv.Atoi(fields[len(fields)-1])
		return number, err == nil
	}
	return 0, false
}
