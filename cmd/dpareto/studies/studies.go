// Package studies holds complete study specs as files to copy. The demo runs them.
package studies

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Names returns the sorted names of the studies, which are the files without .yaml.
func Names() []string {
	paths, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic("studies: " + err.Error()) // the pattern is constant
	}
	for i := range paths {
		paths[i] = strings.TrimSuffix(paths[i], ".yaml")
	}
	slices.Sort(paths)
	return paths
}

// File returns the file of a study. The error wraps fs.ErrNotExist if there is none of
// that name.
func File(name string) ([]byte, error) {
	return files.ReadFile(name + ".yaml")
}
