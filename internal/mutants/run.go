package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A testCase is a test, a fuzz target with its seeds, or an example.
type testCase struct {
	Package string            `json:"package"`
	Name    string            `json:"name"`
	Seconds float64           `json:"seconds"`
	Reached map[string][]span `json:"reached"` // by file, relative to the root of the module
}

// A span is a block of statements that a test reached: its first and last line.
type span [2]int

// reaches reports whether t runs the line of m.
func (t *testCase) reaches(m *mutant) bool {
	return slices.ContainsFunc(t.Reached[m.file.name], func(s span) bool { return s[0] <= m.line && m.line <= s[1] })
}

// A suite is the packages whose tests are to kill mutants.
type suite struct {
	folder  string // of binaries and results
	module  string
	mutated []*goPackage
	tested  []*goPackage
}

func (s *suite) binary(path, kind string) string {
	return filepath.Join(s.folder, strings.ReplaceAll(strings.TrimPrefix(path, s.module+"/"), "/", "-")+"."+kind)
}

// build compiles the tests of a package; kind names the binary.
func (s *suite) build(p *goPackage, kind string, flags ...string) error {
	arguments := append([]string{"test", "-c", "-vet=off", "-o", s.binary(p.ImportPath, kind)}, flags...)
	cmd := exec.Command("go", append(arguments, p.ImportPath)...) //nolint:gosec,noctx // a tool
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", p.ImportPath, err, output)
	}
	return nil
}

// command returns a test binary with a bounded memory.
func (s *suite) command(ctx context.Context, p *goPackage, kind string, mutant int, flags ...string) *exec.Cmd {
	binary, _ := filepath.Abs(s.binary(p.ImportPath, kind))
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -d 8000000; exec "$0" "$@"`, binary}, flags...)...) //nolint:gosec // a tool
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(mutant))
	cmd.WaitDelay = time.Second
	return cmd
}

// cases runs every test alone, and returns those that pass with what they reach. It keeps what it
// finds until the mutated packages or the tests change.
func (s *suite) cases(ctx context.Context) ([]*testCase, error) {
	var all []*testCase
	var paths []string
	for _, p := range s.mutated {
		paths = append(paths, p.ImportPath)
	}
	for _, p := range s.tested {
		state, err := s.state(p)
		if err != nil {
			return nil, err
		}
		kept := s.binary(p.ImportPath, state+".json")
		var of []*testCase
		if text, err := os.ReadFile(kept); err == nil && json.Unmarshal(text, &of) == nil {
			all = append(all, of...)
			continue
		}
		if err := s.build(p, "cover", "-cover", "-coverpkg="+strings.Join(paths, ",")); err != nil {
			return nil, err
		}
		names, err := s.command(ctx, p, "cover", 0, "-test.list=.").Output()
		if err != nil {
			return nil, err
		}
		for _, name := range regexp.MustCompile(`(?m)^(Test|Fuzz|Example)\w*$`).FindAllString(string(names), -1) {
			t := &testCase{Package: p.ImportPath, Name: name}
			profile := s.binary(p.ImportPath, "profile")
			start := time.Now()
			output, err := s.command(ctx, p, "cover", 0, "-test.short", "-test.run=^"+name+"$", "-test.coverprofile="+mustAbs(profile)).CombinedOutput()
			t.Seconds = time.Since(start).Seconds()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s %s fails without a mutant and is left out:\n%s\n", p.ImportPath, name, tail(output))
				continue
			}
			if t.Reached, err = s.profile(profile); err != nil {
				return nil, err
			}
			if len(t.Reached) > 0 {
				of = append(of, t)
			}
		}
		text, err := json.Marshal(of)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(kept, text, 0o600); err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// state returns a hash of the tests of p and of what is mutated.
func (s *suite) state(p *goPackage) (string, error) {
	hash := sha256.New()
	for _, of := range append(slices.Clone(s.mutated), p) {
		files := slices.Concat(of.GoFiles, of.TestGoFiles, of.XTestGoFiles)
		if of != p {
			files = of.GoFiles
		}
		for _, name := range files {
			text, err := os.ReadFile(filepath.Join(of.Dir, name))
			if err != nil {
				return "", err
			}
			_, _ = fmt.Fprintf(hash, "%s %d %s", name, len(text), text)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}

func mustAbs(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return absolute
}

// profile reads the spans that were reached from a coverage profile.
func (s *suite) profile(path string) (map[string][]span, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reached := map[string][]span{}
	for line := range strings.Lines(string(text)) {
		file, rest, _ := strings.Cut(strings.TrimPrefix(line, s.module+"/"), ":")
		var from, to, column, statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &from, &column, &to, &column, &statements, &count); err == nil && count > 0 {
			reached[file] = append(reached[file], span{from, to})
		}
	}
	return reached, nil
}

// What becomes of a mutant.
const (
	killed    = "killed"
	timedOut  = "timeout"
	survived  = "survived"
	unreached = "unreached" // no test runs its line
)

// A result is what became of a mutant.
type result struct {
	Mutant  string  `json:"mutant"`
	Place   string  `json:"place"`
	Status  string  `json:"status"`
	By      string  `json:"by,omitempty"`
	Seconds float64 `json:"seconds"`
}

func (r result) isAlive() bool { return r.Status == survived || r.Status == unreached }

// try runs the tests that reach m, the quickest first and many at once, until one fails.
// Those beyond seconds together are left out.
func (s *suite) try(ctx context.Context, m *mutant, number int, cases []*testCase, seconds float64) (result, error) {
	r := result{Mutant: m.key, Place: m.place(), Status: unreached}
	reaching := slices.DeleteFunc(slices.Clone(cases), func(t *testCase) bool { return !t.reaches(m) })
	slices.SortStableFunc(reaching, func(a, b *testCase) int { return int(1000 * (a.Seconds - b.Seconds)) })
	start := time.Now()
	for bound := 0.5; len(reaching) > 0 && seconds > 0; bound *= 4 {
		n, sum := 0, 0.0
		for n < len(reaching) && (n == 0 || sum+reaching[n].Seconds <= min(bound, seconds)) {
			sum += reaching[n].Seconds
			n++
		}
		seconds -= sum
		for _, p := range s.tested {
			var names []string
			for _, t := range reaching[:n] {
				if t.Package == p.ImportPath {
					names = append(names, t.Name)
				}
			}
			if len(names) == 0 {
				continue
			}
			status, by := s.kill(ctx, p, number, names, time.Duration((8+6*sum)*float64(time.Second)))
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
			r.Status, r.By = status, by
			r.Seconds = time.Since(start).Seconds()
			if status != survived {
				return r, nil
			}
		}
		reaching = reaching[n:]
	}
	return r, nil
}

// kill runs tests of one package against a mutant.
func (s *suite) kill(ctx context.Context, p *goPackage, number int, names []string, timeout time.Duration) (status, by string) {
	ctx, cancel := context.WithTimeout(ctx, timeout+10*time.Second)
	defer cancel()
	cmd := s.command(ctx, p, "mutants", number, "-test.short", "-test.failfast",
		"-test.timeout="+timeout.String(), "-test.run=^("+strings.Join(names, "|")+")$")
	output, err := cmd.CombinedOutput()
	if err == nil {
		return survived, ""
	}
	if ctx.Err() != nil || bytes.Contains(output, []byte("panic: test timed out")) {
		return timedOut, ""
	}
	if failed := regexp.MustCompile(`(?m)^--- FAIL: (\w+)`).FindSubmatch(output); failed != nil {
		return killed, string(failed[1])
	}
	return killed, p.ImportPath
}

// results reads a file of results; none is no error.
func results(path string) (map[string]result, error) {
	all := map[string]result{}
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err == nil { // the last line can be torn
			all[r.Mutant] = r
		}
	}
	return all, nil
}

func tail(output []byte) []byte { return output[max(0, len(output)-2000):] }
