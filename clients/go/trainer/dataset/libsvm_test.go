package dataset

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
)

func TestReadLIBSVM(t *testing.T) {
	const text = "+1 1:0.5 4:2 \n" + // a blank at the end, as in Adult's files
		"\n" +
		"# only a comment\n" +
		"-1\n" +
		"1\t1:1  2:1 3:1e0 # and one here\r\n"
	want := small()
	want.Name = "file"
	for _, dim := range []int{4, 0} {
		got, err := ReadLIBSVM(strings.NewReader(text), "file", dim)
		require.NoError(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("dimension %d (-want +got):\n%s", dim, diff)
		}
	}
}

// Published files are read unchanged, and so are files with the line ends and marks of other systems.
func TestReadLIBSVMHabits(t *testing.T) {
	const plain = "1 21:1 63:.5\n0 1:2\n"
	want, err := ReadLIBSVM(strings.NewReader(plain), "f", 63)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"blank after a colon":  "1 21:1.00 63: .50\n0 1:\t 2\n",
		"byte order mark":      "\ufeff" + plain,
		"CR LF":                strings.ReplaceAll(plain, "\n", "\r\n"),
		"CR":                   strings.ReplaceAll(plain, "\n", "\r"),
		"CR, \" in a comment":  "1 21:1 63:.5 # \" \r0 1:2\r",
		"no end of the last":   strings.TrimSuffix(plain, "\n"),
		"mark and blank lines": "\ufeff\r\n\r\n" + plain + "\n\n",
	} {
		got, err := ReadLIBSVM(strings.NewReader(text), "f", 63)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestReadLIBSVMForcedDimension(t *testing.T) {
	d, err := ReadLIBSVM(strings.NewReader("1 3:1\n"), "file", 10)
	require.NoError(t, err)
	if d.Dim != 10 {
		t.Errorf("dimension %d, want 10", d.Dim)
	}
	empty, err := ReadLIBSVM(strings.NewReader(""), "file", 7)
	require.NoError(t, err)
	if empty.Rows != 0 || empty.Dim != 7 || len(empty.RowStart) != 1 {
		t.Errorf("empty file gives %+v", empty)
	}
}

func TestReadLIBSVMErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"label", "1 1:1\nyes 1:1\n", `f:2:1: label "yes" is not a finite number`},
		{"NaN label", "NaN 1:1\n", `f:1:1: label "NaN" is not a finite number`},
		{"no colon", "1 1:1 2\n", `f:1:7: feature "2" is not of the form index:value`},
		{"index zero", "1 0:1\n", `f:1:3: index "0" is not a whole number between 1 and 2³¹−1`},
		{"index text", "1 a:1\n", `f:1:3: index "a" is not a whole number between 1 and 2³¹−1`},
		{"query id", "1 qid:1 1:1\n", `f:1:3: index "qid" is not a whole number between 1 and 2³¹−1`},
		{"above dimension", "1 4:1 5:1\n", `f:1:7: index 5 is above the dimension 4`},
		{"huge index", "1 99999999999:1\n", `f:1:3: index "99999999999" is not a whole number between 1 and 2³¹−1`},
		{"repeated", "\n\n1 2:1 2:1\n", `f:3:7: index 2 does not increase after 2`},
		{"decreasing", "1 3:1 2:1\n", `f:1:7: index 2 does not increase after 3`},
		{"no value", "1 12:\n", `f:1:3: index 12 is above the dimension 4`},
		{"empty value", "1 2:\n", `f:1:5: value "" is not a finite number`},
		{"infinite value", "1 2:1e99\n", `f:1:5: value "1e99" is not a finite number`},
		{"empty value before a blank", "1 2: \n", `f:1:5: value "" is not a finite number`},
		{"next feature for a value", "1 2: 3:1\n", `f:1:6: value "3:1" is not a finite number`},
		{"blank before the colon", "1 2 :1\n", `f:1:3: feature "2" is not of the form index:value`},
		{"hexadecimal", "1 2:0x1p-1\n", `f:1:5: value "0x1p-1" is not a finite number`},
		{"underscore", "0_1 2:1\n", `f:1:1: label "0_1" is not a finite number`},
		{"decimal comma", "1 2:0,5\n", `f:1:5: value "0,5" is not a finite number`},
		{"two colons", "1 2:1:1\n", `f:1:5: value "1:1" is not a finite number`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadLIBSVM(strings.NewReader(tt.text), "f", 4)
			if _, ok := errors.AsType[*SyntaxError](err); !ok || err.Error() != tt.want {
				t.Errorf("error %v\nwant  %s", err, tt.want)
			}
		})
	}
}

func TestReadLIBSVMReadError(t *testing.T) {
	broken := errors.New("broken")
	r := io.MultiReader(strings.NewReader("1 1:1\n1 2:1\n"), brokenReader{broken})
	if _, err := ReadLIBSVM(r, "f", 4); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestLoadLIBSVMCompressed(t *testing.T) {
	const text = "+1 1:0.5 4:2\n-1\n+1 1:1 2:1 3:1\n"
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	require.NoError(t, require.ErrOf(io.WriteString(w, text)))
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "small")
	write(t, path, compressed.String())
	got, err := LoadLIBSVM(path, 4)
	require.NoError(t, err)
	if diff := cmp.Diff(small(), got); diff != "" {
		t.Errorf("dataset (-want +got):\n%s", diff)
	}

	write(t, path, compressed.String()[:compressed.Len()-9])
	if _, err := LoadLIBSVM(path, 4); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("truncated: error %v, want %v", err, io.ErrUnexpectedEOF)
	}
	if _, err := LoadLIBSVM(path+".none", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: error %v, want %v", err, fs.ErrNotExist)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// FuzzReadLIBSVM checks that whatever is accepted is well formed.
func FuzzReadLIBSVM(f *testing.F) {
	f.Add("+1 1:0.5 4:2 \n-1\n")
	f.Add("1 1:1 # x\n\n")
	f.Add("\x1f\x8b")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ReadLIBSVM(strings.NewReader(text), "f", 9)
		if err != nil {
			return
		}
		checkShape(t, d)
	})
}

// What is written in the format is read as it was.
func TestReadLIBSVMRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const dim = 7
		value := rapid.Float32Range(-1e6, 1e6)
		b := newBuilder(0, 0, false)
		var text strings.Builder
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			label := value.Draw(t, "label")
			fmt.Fprintf(&text, "%v", label)
			var indices []int32
			var values []float32
			for index := range int32(dim) {
				if rapid.Bool().Draw(t, "stored") {
					v := value.Draw(t, "value")
					fmt.Fprintf(&text, " %d:%v", index+1, v)
					indices, values = append(indices, index), append(values, v)
				}
			}
			text.WriteString("\n")
			b.add(label, indices, values)
		}
		got, err := ReadLIBSVM(strings.NewReader(text.String()), "f", dim)
		require.NoError(t, err)
		if diff := cmp.Diff(b.dataset("f", dim), got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text.String(), diff)
		}
	})
}
