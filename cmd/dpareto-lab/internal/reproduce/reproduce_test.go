package reproduce_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/internal/require"
)

func TestDraw(t *testing.T) {
	curves := &plot.Curves{Curves: []plot.Series{{
		Name: "line", X: []float64{0, 1}, Y: []float64{1, 2}, Lower: []float64{1, 2}, Upper: []float64{1, 2},
	}}}
	two := []reproduce.Figure{{Name: "first", Picture: curves}, {Name: "second", Picture: curves}}
	one := two[:1]
	for _, tt := range []struct {
		figures []reproduce.Figure
		path    string
		want    []string
	}{
		{one, "new/folder", []string{"new/folder/first.svg"}},
		{two, "new/folder", []string{"new/folder/first.svg", "new/folder/second.svg"}},
		{one, "picture.png", []string{"picture.png"}},
		{two, "picture.svg", []string{"picture-first.svg", "picture-second.svg"}},
	} {
		folder := t.TempDir()
		if err := reproduce.CheckPath(tt.path); err != nil {
			t.Errorf("%s: %v", tt.path, err)
		}
		drawer := reproduce.NewDrawer(filepath.Join(folder, filepath.FromSlash(tt.path)), nil)
		for _, f := range tt.figures {
			require.NoError(t, drawer.Draw(f))
		}
		got := drawer.Files()
		for i, path := range got {
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", path, err)
			}
			relative, err := filepath.Rel(folder, path)
			require.NoError(t, err)
			got[i] = filepath.ToSlash(relative)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%d figures to %s (-want +got):\n%s", len(tt.figures), tt.path, diff)
		}
	}
	if err := reproduce.CheckPath("picture.pdf"); err == nil {
		t.Error("a PDF is taken for a format")
	}
	if err := reproduce.NewDrawer(filepath.Join(t.TempDir(), "missing", "picture.svg"), nil).Draw(one[0]); err == nil {
		t.Error("a figure was drawn into a folder that does not exist")
	}
}

func TestMissing(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("adult: %w", &dataset.DownloadError{URL: "https://example.org", Err: errors.New("no route")}), true},
		{fmt.Errorf("gisette: %w", fs.ErrNotExist), true},
		{errors.New("a file is broken"), false},
		{context.Canceled, false},
	} {
		line, ok := reproduce.Missing("Table 1", tt.err)
		if ok != tt.want || ok && (!strings.HasPrefix(line, "Table 1 was not run") || strings.Contains(line, "\n")) {
			t.Errorf("%v: %q, %v", tt.err, line, ok)
		}
	}
}
