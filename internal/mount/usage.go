package mount

import (
	"fmt"
	"math"
	"math/bits"

	"golang.org/x/sys/unix"
)

// Amounts say how much there is of something. Used and Available need not add up
// to Total, for file systems keep some to themselves.
type Amounts struct {
	Total, Available, Used int64
}

// Usage is how full a volume is. Of a block device only Bytes.Total is known;
// file systems that do not count inodes have zeros for them.
type Usage struct {
	Bytes, Inodes Amounts
}

// UsageOf asks the file system that path is on, or the block device that it is,
// which may keep the caller waiting.
func UsageOf(path string) (Usage, error) {
	file, found, err := openMountable(path)
	if err != nil {
		return Usage{}, err
	}
	defer release(file)
	if found.kind == unix.S_IFBLK {
		device, err := openDevice(file, 0)
		if err != nil {
			return Usage{}, err
		}
		defer release(device)
		size, err := deviceSize(device)
		return Usage{Bytes: Amounts{Total: size}}, err
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &st); err != nil {
		return Usage{}, fmt.Errorf("asking %q how full it is: %w", path, err)
	}
	return usage(&st), nil
}

func usage(st *unix.Statfs_t) Usage {
	unit := st.Frsize
	if unit == 0 {
		unit = st.Bsize
	}
	return Usage{
		Bytes:  amounts(st.Blocks, st.Bavail, st.Bfree, uint64(unit)),
		Inodes: amounts(st.Files, st.Ffree, st.Ffree, 1),
	}
}

// amounts counts in the given unit. A file system in user space may answer with
// any numbers; what is too large is cut off.
func amounts(total, available, free, unit uint64) Amounts {
	return Amounts{
		Total:     product(total, unit),
		Available: product(available, unit),
		Used:      product(total-min(free, total), unit),
	}
}

func product(count, unit uint64) int64 {
	high, low := bits.Mul64(count, unit)
	if high != 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}
