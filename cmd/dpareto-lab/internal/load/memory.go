package load

import (
	"os"
	"strconv"
	"strings"
)

// residentMemory returns the bytes of memory of this process, in all and without the pages
// of files. Both are zero on systems other than Linux.
func residentMemory() (all, anonymous int64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "VmRSS:":
			all = 1024 * kilobytes
		case "RssAnon:":
			anonymous = 1024 * kilobytes
		}
	}
	return all, anonymous
}
