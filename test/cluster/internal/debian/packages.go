package debian

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// need is a package and a file that proves that the package is installed.
type need struct {
	pkg string
	// program is the name of a file in one of the directories below. file is a path. One of the two is empty.
	program string
	file    string
}

// needs are the packages for compiling runc, for running nodes and for creating the images.
var needs = []need{
	{pkg: "gcc", program: "gcc"},
	{pkg: "libc6-dev", file: "/usr/include/stdio.h"},
	{pkg: "pkg-config", program: "pkg-config"},
	{pkg: "libseccomp-dev", file: "/usr/include/seccomp.h"},
	{pkg: "iptables", program: "iptables"},
	{pkg: "iproute2", program: "ip"},
	{pkg: "conntrack", program: "conntrack"},
	{pkg: "socat", program: "socat"},
	{pkg: "util-linux", program: "losetup"},
	{pkg: "mount", program: "mount"},
	{pkg: "e2fsprogs", program: "mkfs.ext4"},
	{pkg: "xfsprogs", program: "mkfs.xfs"},
	{pkg: "busybox-static", program: "busybox"},
	{pkg: "bash-static", program: "bash-static"},
	{pkg: "bindfs", program: "bindfs"},
	{pkg: "fio", program: "fio"},
	{pkg: "dbus-daemon", program: "dbus-daemon"},
	{pkg: "dbus-system-bus-common", file: "/usr/share/dbus-1/system.conf"},
	{pkg: "systemd", file: "/lib/systemd/systemd-logind"},
}

// testNeeds are the packages for tests without a cluster. The installer of the real Jinja2 is in test/jinja/oracle.
var testNeeds = []need{
	{pkg: "git", program: "git"},
	{pkg: "diffutils", program: "diff"},
	{pkg: "shellcheck", program: "shellcheck"},
	{pkg: "curl", program: "curl"},
	{pkg: "jq", program: "jq"},
}

// directories are the directories of the machine's programs. They include the administrator's directories, which the
// caller's PATH may omit.
var directories = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// missing returns the packages that are not installed. exists reports whether a file exists.
func missing(needs []need, exists func(path string) bool) []string {
	var packages []string
	for _, need := range needs {
		found := need.file != "" && exists(need.file)
		for _, directory := range directories {
			found = found || need.program != "" && exists(directory+"/"+need.program)
		}
		if !found {
			packages = append(packages, need.pkg)
		}
	}
	return packages
}

// Find returns the path of a program on the machine.
func Find(program string) (string, error) {
	for _, directory := range directories {
		if exists(directory + "/" + program) {
			return directory + "/" + program, nil
		}
	}
	return "", fmt.Errorf("no program %q in %s", program, strings.Join(directories, ", "))
}

// Ensure installs the missing packages. If it cannot install them, it returns an error with the packages and the
// command that installs them.
func Ensure(ctx context.Context, progress io.Writer) error {
	return ensure(ctx, progress, missing(needs, exists))
}

// EnsureForTests is like Ensure, but includes the packages for tests without a cluster.
func EnsureForTests(ctx context.Context, progress io.Writer) error {
	return ensure(ctx, progress, missing(slices.Concat(needs, testNeeds), exists))
}

// EnsurePackages is like Ensure, but for packages that only some images need.
func EnsurePackages(ctx context.Context, progress io.Writer, packages []string) error {
	var missing []string
	for _, name := range packages {
		if _, err := Files(ctx, name); err != nil {
			missing = append(missing, name)
		}
	}
	return ensure(ctx, progress, missing)
}

// Files returns the paths of the files and directories of an installed package.
func Files(ctx context.Context, name string) ([]string, error) {
	listed, err := exec.CommandContext(ctx, "dpkg-query", "--listfiles", name).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files of Debian package %s: %w", name, err)
	}
	return strings.Fields(string(listed)), nil
}

func ensure(ctx context.Context, progress io.Writer, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	_, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("this machine lacks what these Debian packages contain; run as root: "+
			"apt-get update && apt-get install --yes --no-install-recommends %s", strings.Join(packages, " "))
	}
	// The error is ignored, because a lost line of progress is no reason to stop.
	_, _ = fmt.Fprintf(progress, "installing Debian packages: %s\n", strings.Join(packages, " "))
	if _, err := install(ctx, packages); err == nil {
		return nil
	}
	// The package lists may be missing, or so old that they name files that no longer exist on the server.
	if output, err := apt(ctx, "update"); err != nil {
		return fmt.Errorf("updating the lists of Debian packages: %w\n%s", err, output)
	}
	if output, err := install(ctx, packages); err != nil {
		return fmt.Errorf("installing %s: %w\n%s", strings.Join(packages, " "), err, output)
	}
	return nil
}

func install(ctx context.Context, packages []string) (string, error) {
	return apt(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...)
}

func apt(ctx context.Context, arguments ...string) (string, error) {
	// Another program may be installing packages: another run of the tests, or the machine's own updates.
	command := exec.CommandContext(ctx, "apt-get", append([]string{"--quiet", "--option", "DPkg::Lock::Timeout=600"}, arguments...)...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	output, err := command.CombinedOutput()
	return string(output), err
}
