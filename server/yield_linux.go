package server

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// fitNice is by how much threads that fit models are nicer than the others, up to 19: they get
// about a tenth of what another thread gets, and all that is left over.
const fitNice = 10

// giveWay lowers the priority of the calling thread for good, and keeps it away from one
// processor. The priority is not enough: where all processors are busy, also with what gives
// way at once, a commit waits for the disk several times as long, above all in virtual machines.
// The processor that is kept free is the one that serves the devices. done is to be called at
// the end of the thread.
func giveWay() (done func()) {
	// It can always be lowered; if it were refused, fits would have the priority of calls.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, nice()+fitNice)
	var processors unix.CPUSet
	if err := unix.SchedGetaffinity(0, &processors); err != nil || processors.Count() < 2 {
		return func() {}
	}
	processors.Clear(mostInterrupts(&processors, served()))
	_ = unix.SchedSetaffinity(0, &processors)
	return ticking.begin(list(&processors), func(p int) { go tickOn(&ticking, p) })
}

// nice returns the nice value of the calling thread.
func nice() int {
	rest, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // what is left to 20
	if err != nil {
		return 0
	}
	return 20 - rest
}

// list returns the processors of a set.
func list(set *unix.CPUSet) (processors []int) {
	for p := range 64 * len(set) {
		if set.IsSet(p) {
			processors = append(processors, p)
		}
	}
	return processors
}

// served tells how many interrupts of devices each processor had served when it was first
// asked. They are few and seldom move.
var served = sync.OnceValue(func() map[int]uint64 {
	text, err := os.ReadFile("/proc/interrupts")
	if err != nil {
		return nil
	}
	return parseInterrupts(string(text))
})

// ownInterrupts are words in the descriptions of interrupts that are of the processors
// themselves but have numbers: timers on ARM and RISC-V, what processors send to each other
// on POWER, and both under Xen. There are far more of them than of those of devices.
var ownInterrupts = []string{"timer", "IPI", "xen-percpu"}

// parseInterrupts adds up the interrupts of devices by processor, from the text of
// /proc/interrupts: a line with the names of the processors, then one for each interrupt,
// with its number, or its name where it is never one of a device, counts and description.
func parseInterrupts(text string) map[int]uint64 {
	sums := make(map[int]uint64)
	var processors []int
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if processors == nil {
			for _, name := range fields {
				number, err := strconv.Atoi(strings.TrimPrefix(name, "CPU"))
				if err != nil {
					return nil
				}
				processors = append(processors, number)
			}
			continue
		}
		if len(fields) <= len(processors) {
			continue // a count of the whole machine
		}
		if _, err := strconv.Atoi(strings.TrimSuffix(fields[0], ":")); err != nil {
			continue
		}
		if slices.ContainsFunc(ownInterrupts, func(word string) bool { return strings.Contains(line, word) }) {
			continue
		}
		for i, p := range processors {
			if count, err := strconv.ParseUint(fields[1+i], 10, 64); err == nil {
				sums[p] += count
			}
		}
	}
	return sums
}

// mostInterrupts returns the processor of a set, which is not empty, that served most, of
// equal ones the first.
func mostInterrupts(set *unix.CPUSet, served map[int]uint64) int {
	most := -1
	for _, p := range list(set) {
		if most < 0 || served[p] > served[most] {
			most = p
		}
	}
	return most
}
