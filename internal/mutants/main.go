package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed reasons.txt
var reasonsText string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	o := options{out: log.New(os.Stdout, "", 0)}
	flag.StringVar(&o.folder, "folder", ".bin/mutants", "folder of binaries and results")
	flag.StringVar(&o.mutated, "mutate", "", "packages to mutate, as go list takes them")
	flag.StringVar(&o.tested, "test", "", "packages whose tests are to kill, besides those")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the draw")
	flag.IntVar(&o.count, "count", 300, "number of mutants")
	flag.BoolVar(&o.again, "again", false, "try survivors without a reason again, after tests were added")
	flag.Float64Var(&o.seconds, "seconds", 300, "time of the tests that are run against a mutant, as they take without it")
	flag.Parse()
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type options struct {
	folder, mutated, tested string
	seed                    uint64
	count                   int
	again                   bool
	seconds                 float64
	out                     *log.Logger
}

// run draws mutants, tries those without a result, and prints what became of all.
func (o *options) run(ctx context.Context) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	packages, err := goList(strings.Fields(o.mutated)...)
	if err != nil {
		return err
	}
	tested, err := goList(strings.Fields(o.mutated + " " + o.tested)...)
	if err != nil {
		return err
	}
	tested = slices.DeleteFunc(tested, func(p *goPackage) bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 })
	if len(packages) == 0 {
		return fmt.Errorf("no packages to mutate: %q", o.mutated)
	}
	module := strings.TrimSuffix(packages[0].ImportPath, "/"+relative(root, packages[0].Dir))
	name := strings.NewReplacer("/...", "", "./", "", "/", "-", " ", "+").Replace(o.mutated)
	s := &suite{folder: filepath.Join(o.folder, name), module: module, mutated: packages, tested: tested}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	sample, err := o.draw(root, packages)
	if err != nil {
		return err
	}
	path := filepath.Join(o.folder, fmt.Sprintf("%s-%d.jsonl", name, o.seed))
	known, err := results(path)
	if err != nil {
		return err
	}
	reasons := parseReasons(reasonsText)
	waiting := slices.ContainsFunc(sample, func(m *mutant) bool { return o.wants(m, known, reasons) })
	if waiting {
		if err := o.try(ctx, s, sample, known, reasons, path); err != nil {
			return err
		}
	}
	return o.report(sample, known, reasons)
}

func relative(root, path string) string {
	short, err := filepath.Rel(root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(short)
}

// wants reports whether m is to be tried.
func (o *options) wants(m *mutant, known map[string]result, reasons map[string]string) bool {
	r, ok := known[m.key]
	return !ok || o.again && reasons[m.key] == "" && (r.isAlive())
}

// draw returns count mutants that compile. Each mutant has its place in the draw by its key and the seed,
// so that a change elsewhere does not change the sample.
func (o *options) draw(root string, packages []*goPackage) ([]*mutant, error) {
	var all []*mutant
	for _, p := range packages {
		files, err := parse(root, p)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			all = append(all, mutantsOf(f)...)
		}
	}
	seen := map[string]int{}
	for _, m := range all {
		seen[m.key]++
		if n := seen[m.key]; n > 1 {
			m.key += fmt.Sprintf(" #%d", n)
		}
	}
	rank := map[*mutant]string{}
	for _, m := range all {
		hash := sha256.Sum256(fmt.Appendf(nil, "%d %s", o.seed, m.key))
		rank[m] = string(hash[:])
	}
	slices.SortFunc(all, func(a, b *mutant) int { return strings.Compare(rank[a], rank[b]) })
	exports := map[string]string{}
	dependencies, err := goList(append([]string{"-export", "-deps", "os", "strconv"}, strings.Fields(o.mutated)...)...)
	if err != nil {
		return nil, err
	}
	for _, p := range dependencies {
		exports[p.ImportPath] = p.Export
	}
	o.out.Printf("%d mutants to draw from", len(all))
	for {
		sample := all[:min(o.count, len(all))]
		bad := map[*mutant]bool{}
		for p, variants := range schema(sample) {
			of, err := invalid(p, variants, exports)
			if err != nil {
				return nil, err
			}
			maps.Copy(bad, of)
		}
		if len(bad) == 0 {
			return sample, nil
		}
		all = slices.DeleteFunc(all, func(m *mutant) bool { return bad[m] })
	}
}

// schema returns the files with the mutants of a sample; mutant i has the number i+1.
func schema(sample []*mutant) map[*goPackage]map[*sourceFile]variant {
	numbers := map[*mutant]int{}
	byFile := map[*sourceFile][]*mutant{}
	for i, m := range sample {
		numbers[m] = i + 1
		byFile[m.file] = append(byFile[m.file], m)
	}
	all := map[*goPackage]map[*sourceFile]variant{}
	for f, mutants := range byFile {
		if all[f.pkg] == nil {
			all[f.pkg] = map[*sourceFile]variant{}
		}
		all[f.pkg][f] = vary(f, mutants, func(m *mutant) int { return numbers[m] })
	}
	return all
}

// overlay writes the files with mutants for the go command.
func (s *suite) overlay(sample []*mutant) (string, error) {
	replace := map[string]string{}
	write := func(original, content string) error {
		path := mustAbs(filepath.Join(s.folder, fmt.Sprintf("overlay%d.go", len(replace))))
		replace[original] = path
		return os.WriteFile(path, []byte(content), 0o600)
	}
	for p, variants := range schema(sample) {
		if err := write(filepath.Join(p.Dir, "mutant.go"), fmt.Sprintf(chooser, p.Name)); err != nil {
			return "", err
		}
		for f, v := range variants {
			if err := write(f.path, v.content); err != nil {
				return "", err
			}
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.folder, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// try runs the tests for all mutants that wait, and appends to the file at path.
func (o *options) try(ctx context.Context, s *suite, sample []*mutant, known map[string]result, reasons map[string]string, path string) error {
	cases, err := s.cases(ctx)
	if err != nil {
		return err
	}
	overlay, err := s.overlay(sample)
	if err != nil {
		return err
	}
	for _, p := range s.tested {
		if err := s.build(p, "mutants", "-overlay="+overlay); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // each line was written
	for i, m := range sample {
		if !o.wants(m, known, reasons) {
			continue
		}
		r, err := s.try(ctx, m, i+1, cases, o.seconds)
		if err != nil {
			return err
		}
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := file.Write(append(line, '\n')); err != nil {
			return err
		}
		known[m.key] = r
		o.out.Printf("%d/%d %s %.1fs %s %s", i+1, len(sample), r.Status, r.Seconds, r.By, m.key)
	}
	return nil
}

// parseReasons reads reasons.txt: the line of a mutant, then indented lines that say why it may survive.
func parseReasons(text string) map[string]string {
	reasons := map[string]string{}
	key := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(line, "#"):
		case line[0] == ' ' || line[0] == '\t':
			reasons[key] = strings.TrimSpace(reasons[key] + " " + trimmed)
		default:
			key = trimmed
		}
	}
	return reasons
}

// report prints what became of a sample. Survivors without a reason are an error.
func (o *options) report(sample []*mutant, known map[string]result, reasons map[string]string) error {
	count := map[string]int{}
	var bare []string
	for _, m := range sample {
		r := known[m.key]
		switch {
		case !r.isAlive():
			count[r.Status]++
		case reasons[m.key] != "":
			count["harmless"]++
		default:
			count[r.Status]++
			bare = append(bare, fmt.Sprintf("%s (%s) %s", m.place(), r.Status, m.key))
		}
	}
	for _, line := range bare {
		o.out.Print(line)
	}
	o.out.Printf("%d drawn: %d killed, %d killed by their time, %d harmless for a reason, %d survived, %d reached by no test",
		len(sample), count[killed], count[timedOut], count["harmless"], count[survived], count[unreached])
	if len(bare) > 0 {
		return fmt.Errorf("%d mutants need a test or a reason in internal/mutants/reasons.txt", len(bare))
	}
	return nil
}
