package server

import (
	"cmp"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What takes long leaves one of the processors to calls, where there are several, and lets
// every other thread go before it.
func TestYieldingThreads(t *testing.T) {
	var all, mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	own := nice()
	New(Options{}).yielding(func() {
		if !strings.Contains(string(debug.Stack()), "locked to thread") {
			t.Error("the thread would do other things afterwards")
		}
		ticking.mu.Lock()
		if all.Count() > 1 && ticking.fits < 1 {
			t.Error("the fit has ended for the ticks")
		}
		ticking.mu.Unlock()
		if err := unix.SchedGetaffinity(0, &mine); err != nil {
			t.Error(err)
		}
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil || int(attr.Nice) != min(19, own+fitNice) {
			t.Errorf("scheduled as %+v, %v; others have nice %d", attr, err, own)
		}
	})
	if want := max(1, all.Count()-1); mine.Count() != want {
		t.Errorf("%d of %d processors, want %d", mine.Count(), all.Count(), want)
	}
	for _, p := range list(&mine) {
		if !all.IsSet(p) {
			t.Errorf("processor %d was not this process's", p)
		}
	}
	if text, err := os.ReadFile("/proc/interrupts"); err == nil && len(text) > 0 && len(served()) == 0 {
		t.Errorf("nothing is known from\n%s", text)
	}
	if free := mostInterrupts(&all, served()); all.Count() > 1 && mine.IsSet(free) {
		t.Errorf("processor %d, which serves the devices, was not left to calls", free)
	}
}

// A server whose priority is low already lowers that of its fits further, and one that has two
// processors ticks on the one that fits have, until they end. One that has one does not.
func TestGiveWayOfTwo(t *testing.T) {
	var all, two unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for _, p := range list(&all)[max(0, all.Count()-2):] {
		two.Set(p)
	}
	lockedThread(func() {
		if err := cmp.Or(unix.SchedSetaffinity(0, &two), unix.Setpriority(unix.PRIO_PROCESS, 0, nice()+4)); err != nil {
			t.Error(err)
		}
		own := nice()
		done := giveWay()
		if got := nice(); got != min(19, own+fitNice) {
			t.Errorf("nice %d where others have %d", got, own)
		}
		two.Clear(mostInterrupts(&two, served()))
		ticking.mu.Lock()
		for _, p := range list(&two) {
			if ticking.fits < 1 || ticking.left[p] == 0 {
				t.Errorf("beside %d fits %d ticks are left", ticking.fits, ticking.left[p])
			}
		}
		if all.Count() == 1 && len(ticking.left) > 0 {
			t.Errorf("the only processor has ticks: %v", ticking.left)
		}
		ticking.mu.Unlock()
		done()
	})
}

// lockedThread calls fn on a thread that ends then.
func lockedThread(fn func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		fn()
	}()
	<-ended
}

// The processor that serves the devices is known from what the system says.
func TestMostInterrupts(t *testing.T) {
	const text = `           CPU0       CPU1       CPU3
 24:          1          0          0   IO-APIC   5-edge      ACPI:Ged
 36:          0       1000          3   PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 39:        900          0          0   PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0
 41:          0        100       1098   PCI-MSIX-0000:00:04.0   0-edge      virtio3-rx
NMI:          0          0          0   Non-maskable interrupts
LOC:    5656228    3772475          1   Local timer interrupts
ERR:          7
MIS:          0
`
	// The timers of ARM and RISC-V, and what is per processor on POWER and under Xen.
	const own = `           CPU0       CPU1       CPU2
 11:      14979       5482     206981    GICv3  27 Level     arch_timer
 45:          3       4096          0   ITS-MSI 16384 Edge      virtio0-req.0
  5:        411       1116      91466  RISC-V INTC   5 Edge      riscv-timer
 16:       2311          0      70001  XIVE     0 Edge      IPI-2
 64:          0          0 2844203322  xen-percpu    -virq      timer2
 65:          0          0 4011288744  xen-percpu    -ipi       resched2
IPI0:       117        123      80000       Rescheduling interrupts
Err:          0
`
	set := func(processors ...int) *unix.CPUSet {
		var s unix.CPUSet
		for _, p := range processors {
			s.Set(p)
		}
		return &s
	}
	for _, test := range []struct {
		text string
		set  *unix.CPUSet
		want int
	}{
		{text, set(0, 1, 3), 3},
		{text, set(0, 1), 1},
		{text, set(0, 2), 0}, // 2 was not there
		{text, set(2, 5), 2},
		{"", set(0, 1), 0},
		{"CPU0 CPU1\n 1: 5", set(0, 1), 0},
		{"CPU0 CPU1\n 1: 5 6", set(0, 1), 1},
		{"CPU0 CPU1\n 1: a 6", set(0, 1), 1},
		{"CPU0 CPU1\n 1: 6 0\n 2: 0 5", set(0, 1), 0},
		{"a b\n 1: 5 6", set(0, 1), 0},
		{text, set(1000), 1000},
		{own, set(0, 1, 2), 1},
		{own, set(0, 2), 0},
	} {
		if got := mostInterrupts(test.set, parseInterrupts(test.text)); got != test.want {
			t.Errorf("processor %d of %d, want %d: %s", got, test.set.Count(), test.want, test.text)
		}
	}
}
