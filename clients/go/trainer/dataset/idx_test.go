package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
)

// idx returns a file with the given sizes and elements.
func idx(sizes []int, elements ...byte) string {
	b := []byte{0, 0, 8, byte(len(sizes))}
	for _, size := range sizes {
		b = binary.BigEndian.AppendUint32(b, uint32(size))
	}
	return string(append(b, elements...))
}

// compress returns the text as gzip compresses it.
func compress(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	require.NoError(t, require.ErrOf(w.Write([]byte(text))))
	require.NoError(t, w.Close())
	return b.String()
}

func TestLoadIDX(t *testing.T) {
	folder := t.TempDir()
	images, labels := filepath.Join(folder, "images"), filepath.Join(folder, "labels")
	write(t, images, compress(t, idx([]int{2, 2, 1}, 0, 51, 255, 102)))
	write(t, labels, idx([]int{2}, 0, 2))
	got, err := LoadIDX(images, labels, 3)
	require.NoError(t, err)
	want := &Dataset{
		Name: "images", Rows: 2, Dim: 2, Classes: 3,
		Dense: []float32{0, 0.2, 1, 0.4}, Labels: []float32{0, 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dataset (-want +got):\n%s", diff)
	}

	for _, tt := range []struct{ images, labels, want string }{
		{idx([]int{2, 2}, 1, 2, 3, 4), idx([]int{2}, 0, 3), labels + ": byte 9: label 3, want less than 3"},
		{idx([]int{2, 2}, 1, 2, 3, 4), idx([]int{2, 1}, 0, 1), labels + ": byte 3: 2 dimensions, want 1"},
		{idx([]int{2, 2}, 1, 2, 3, 4), idx([]int{1}, 0), images + " has 2 images, " + labels + " 1 labels"},
	} {
		write(t, images, tt.images)
		write(t, labels, tt.labels)
		if _, err := LoadIDX(images, labels, 3); err == nil || err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", err, tt.want)
		}
	}
	if _, err := LoadIDX(images, labels+".none", 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
}

func TestReadIDXErrors(t *testing.T) {
	cut := func(s string, n int) string { return s[:n] }
	good := idx([]int{2, 2}, 1, 2, 3, 4)
	for _, tt := range []struct{ text, want string }{
		{"", "f: byte 0: the header ends early"},
		{"\x00\x00\x08", "f: byte 3: the header ends early"},
		{cut(good, 9), "f: byte 9: the header ends early"},
		{"text", "f: byte 0: begins with 74 65, want 00 00"},
		{"\x00\x00\x0d\x01", "f: byte 2: elements of type 0x0d, want unsigned bytes (0x08)"},
		{"\x00\x00\x08\x00", "f: byte 3: 0 dimensions, want 1 to 8"},
		{cut(good, 15), "f: byte 15: ends after 3 of 4 elements"},
		{good + "x", "f: byte 16: has more than 4 elements"},
		{idx([]int{1 << 30, 1 << 30}), "f: byte 8: the array has more than 2⁴⁰ elements"},
		// Much is promised, and nothing reserved for it.
		{idx([]int{1 << 20, 1 << 19}), "f: byte 12: ends after 0 of 549755813888 elements"},
		{cut(compress(t, good), 30), "f: byte 16: ends after 4 of 4 elements"},
	} {
		_, _, err := ReadIDX(strings.NewReader(tt.text), "f")
		if _, ok := errors.AsType[*SyntaxError](err); !ok || err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", err, tt.want)
		}
	}
}

func TestReadIDXRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 4).Draw(t, "sizes")
		total := 1
		for _, size := range sizes {
			total *= size
		}
		elements := rapid.SliceOfN(rapid.Byte(), total, total).Draw(t, "elements")
		gotSizes, gotElements, err := ReadIDX(strings.NewReader(idx(sizes, elements...)), "f")
		require.NoError(t, err)
		if !cmp.Equal(sizes, gotSizes) || !bytes.Equal(elements, gotElements) {
			t.Errorf("sizes %v, elements %v, want %v and %v", gotSizes, gotElements, sizes, elements)
		}
	})
}

func FuzzReadIDX(f *testing.F) {
	f.Add(idx([]int{2, 2}, 1, 2, 3, 4))
	f.Add("\x00\x00\x08\x01\x7f\xff\xff\xff")
	f.Add("\x1f\x8b\x08\x00")
	f.Fuzz(func(t *testing.T, text string) {
		sizes, elements, err := ReadIDX(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		total := 1
		for _, size := range sizes {
			total *= size
		}
		if total != len(elements) {
			t.Errorf("%d elements of sizes %v", len(elements), sizes)
		}
	})
}
