package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Outside maps the numbers that processes have in the PID namespace of a process to those that the
// caller sees. Processes that end meanwhile are left out.
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

// innermost takes the number in a process's own namespace out of the content of /proc/PID/status.
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
