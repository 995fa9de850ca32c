package linalg

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/dpareto/dpareto/internal/require"
)

// fenced returns n elements between two pages that can be neither read nor written,
// at the end or at the start of what lies between them.
func fenced(t *testing.T, n int, atEnd bool) []float32 {
	t.Helper()
	page := syscall.Getpagesize()
	inner := (4*max(1, n) + page - 1) / page * page
	memory, err := syscall.Mmap(-1, 0, inner+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := syscall.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	for _, fence := range [][]byte{memory[:page], memory[page+inner:]} {
		require.NoError(t, syscall.Mprotect(fence, syscall.PROT_NONE))
	}
	all := unsafe.Slice((*float32)(unsafe.Pointer(&memory[page])), inner/4)
	if atEnd {
		return all[len(all)-n:]
	}
	return all[:n]
}
