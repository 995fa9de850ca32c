// Command notices prints the licences of everything that a Go program is built from but this module:
// the Go distribution and all modules whose packages it has, for the platform in GOOS and GOARCH, and
// what this module's packages embed, which their embedded files NOTICES.txt list.
//
//	GOOS=windows GOARCH=amd64 notices ./cmd/dpareto
//
// go-licenses does neither: it leaves out Go and embedded files, and fails at two modules whose
// licence texts it does not recognise.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: notices PACKAGE")
	}
	modules, embedded, err := modulesOf(args[0])
	if err != nil {
		return err
	}
	for _, m := range modules {
		files, err := m.licences()
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(m.dir, file))
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(out, "%s\n%s: %s\n\n%s\n\n", strings.Repeat("=", 80), m.name, filepath.ToSlash(file), toUTF8(bytes.TrimSpace(text))); err != nil {
				return err
			}
		}
	}
	for _, file := range embedded {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n\n", bytes.TrimSpace(text)); err != nil {
			return err
		}
	}
	return nil
}

// toUTF8 returns a text that is in UTF-8 or, as a few old ones, in Latin-1.
func toUTF8(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	runes := make([]rune, len(text))
	for i, b := range text {
		runes[i] = rune(b)
	}
	return string(runes)
}

// module is a module of a program.
type module struct {
	name    string   // its path and version
	dir     string   // where its files are
	folders []string // the folders of its packages that the program has, below dir
}

// modulesOf returns the modules of a program, sorted by name, and the paths of the NOTICES.txt that
// its own packages embed.
func modulesOf(program string) (modules []*module, embedded []string, err error) {
	goroot, err := goRoot()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module,EmbedFiles", "--", program) //nolint:gosec,noctx // a package; it ends by itself
	cmd.Stderr = os.Stderr
	listed, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	found := map[string]*module{"Go": {name: "Go " + runtime.Version(), dir: goroot}}
	for decoder := json.NewDecoder(bytes.NewReader(listed)); ; {
		var p struct {
			Dir        string
			Standard   bool
			EmbedFiles []string
			Module     *struct {
				Path    string
				Version string
				Dir     string
				Main    bool
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) { //nolint:musttag // go list names them so
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("go list: %w", err)
		}
		if p.Standard || p.Module == nil {
			continue
		}
		if p.Module.Main {
			for _, file := range p.EmbedFiles {
				if file = filepath.FromSlash(file); filepath.Base(file) == "NOTICES.txt" {
					embedded = append(embedded, filepath.Join(p.Dir, file))
				}
			}
			continue
		}
		m := found[p.Module.Path]
		if m == nil {
			m = &module{name: p.Module.Path + " " + p.Module.Version, dir: p.Module.Dir}
			found[p.Module.Path] = m
		}
		folder, err := filepath.Rel(m.dir, p.Dir)
		if err != nil {
			return nil, nil, err
		}
		m.folders = append(m.folders, folder)
	}
	for _, m := range found {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *module) int { return strings.Compare(a.name, b.name) })
	return modules, embedded, nil
}

func goRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output() //nolint:noctx // it ends by itself
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// legal matches names of files with terms of use.
var legal = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying|notice|patents|third[-_]party[-_]licen[cs]es)([-_.].*)?$`)

// licences returns the files with terms of use that apply to the packages of a module, below its
// folder: in each package's folder and in all folders above it. It is an error if there are none.
func (m *module) licences() ([]string, error) {
	folders := map[string]bool{".": true}
	for _, folder := range m.folders {
		for ; folder != "."; folder = filepath.Dir(folder) {
			folders[folder] = true
		}
	}
	var files []string
	for folder := range folders {
		found, err := legalFiles(m.dir, folder)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no licence", m.name)
	}
	slices.Sort(files)
	return files, nil
}

// legalFiles returns the files with terms of use in a folder, and in folders of such files.
func legalFiles(dir, folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		switch {
		case !legal.MatchString(entry.Name()) || strings.HasSuffix(path, ".go"):
		case !entry.IsDir():
			files = append(files, path)
		default:
			inside, err := os.ReadDir(filepath.Join(dir, path))
			if err != nil {
				return nil, err
			}
			for _, file := range inside {
				if !file.IsDir() {
					files = append(files, filepath.Join(path, file.Name()))
				}
			}
		}
	}
	return files, nil
}
