package trial

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Columns that results can have beside parameters and metrics. Where an id of the study has the same
// name, they are written with view.TrialPrefix.
const (
	columnTrial        = "trial"        // lines with the same are one curve
	columnStep         = "step"         // of the measurement
	columnState        = "state"        // how the trial ended
	columnReason       = "state_reason" // why
	columnSeconds      = "seconds"      // that the run took
	columnNote         = "note"
	columnMeasurements = "measurements" // a list of objects, in JSON

	// columnOrigin is in exports alone.
	columnOrigin = "origin"
)

var trialColumns = []string{columnTrial, columnStep, columnState, columnReason, columnSeconds, columnNote, columnMeasurements}

// Mapping renames columns of a file to names of the study.
type Mapping struct {
	Rename map[string]string // to ids of the study, or columns of trials
	Ignore []string
}

// tool is a program whose exports are known.
type tool struct {
	name      string
	signature []string          // columns that its exports have, or with * the beginning of one
	rename    map[string]string // columns of trials by their names there
	ignore    []string
	prefixes  []string // before ids of parameters and metrics
	ignored   []string // beginnings of the names of further columns to ignore
	computes  bool     // computed metrics are the server's, and are computed again
}

var tools = []tool{
	{
		name: "dpareto", signature: []string{columnTrial, columnState, columnOrigin}, ignore: []string{columnOrigin, "attempts", "worker", columnNote},
		computes: true,
	},
	{
		name: "Optuna", signature: []string{"params_*"}, rename: map[string]string{"number": columnTrial},
		ignore:   []string{"datetime_start", "datetime_complete", "duration"},
		prefixes: []string{"params_", "values_", "user_attrs_"}, ignored: []string{"user_attrs_", "system_attrs_"},
	},
	{
		name: "Ax", signature: []string{"trial_index", "arm_name"}, rename: map[string]string{"trial_index": columnTrial, "trial_status": columnState, "reason": columnReason},
		ignore: []string{"arm_name", "generation_method", "generation_node", "is_feasible"},
	},
}

// kind is what a column holds.
type kind int

const (
	kindIgnored kind = iota
	kindParameter
	kindMetric
	kindRuns          // the values of the runs of a metric
	kindStandardError // of a metric
	kindTrial         // a column of trials
)

// field is what a name in a file stands for.
type field struct {
	kind kind
	id   string
}

// columns knows what the names in a file stand for.
type columns struct {
	spec    *dparetov1.StudySpec
	mapping Mapping
	tool    *tool
	fields  map[string]field
	owners  map[field]string
	used    map[string]bool // names of the mapping
}

// newColumns returns the columns of a file that has these names, among others.
func newColumns(spec *dparetov1.StudySpec, mapping Mapping, names []string) *columns {
	c := &columns{spec: spec, mapping: mapping, fields: make(map[string]field), owners: make(map[field]string), used: make(map[string]bool)}
	lacks := func(name string) bool {
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			return !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, prefix) && !c.isID(name) })
		}
		return !slices.Contains(names, name) && !slices.Contains(names, view.TrialPrefix+name)
	}
	for i := range tools {
		if !slices.ContainsFunc(tools[i].signature, lacks) {
			c.tool = &tools[i]
			break
		}
	}
	return c
}

// add finds what names stand for. Two cannot be the same.
func (c *columns) add(names []string) error {
	for _, name := range names {
		if _, ok := c.fields[name]; ok {
			continue
		}
		f, err := c.find(name)
		if err != nil {
			return err
		}
		if other, ok := c.owners[f]; ok && f.kind != kindIgnored {
			return fmt.Errorf("columns %q and %q are both %s", other, name, f.key())
		}
		c.owners[f], c.fields[name] = name, f
	}
	return nil
}

// checkUsed refuses a mapping of names that the file does not have.
func (c *columns) checkUsed() error {
	for _, name := range append(slices.Sorted(maps.Keys(c.mapping.Rename)), c.mapping.Ignore...) {
		if !c.used[name] {
			return fmt.Errorf("--map, --ignore: there is no column %q", name)
		}
	}
	return nil
}

// find returns what a name stands for.
func (c *columns) find(name string) (field, error) {
	if slices.Contains(c.mapping.Ignore, name) {
		c.used[name] = true
		return field{}, nil
	}
	if to, ok := c.mapping.Rename[name]; ok {
		c.used[name] = true
		if f, ok := c.own(to); ok {
			return f, nil
		}
		return field{}, fmt.Errorf("--map %s=%s: %q is neither a parameter nor a metric of the study", name, to, to)
	}
	if t := c.tool; t != nil {
		if to, ok := t.rename[name]; ok {
			name = to
		}
		if slices.Contains(t.ignore, strings.TrimPrefix(name, view.TrialPrefix)) && !c.isID(name) {
			return field{}, nil
		}
	}
	if f, ok := c.own(name); ok {
		if c.tool != nil && c.tool.computes && c.isComputed(f) {
			return field{}, nil
		}
		return f, nil
	}
	if t := c.tool; t != nil {
		for _, prefix := range t.prefixes {
			if id, ok := strings.CutPrefix(name, prefix); ok && c.isID(id) {
				f, _ := c.own(id)
				return f, nil
			}
		}
		for _, prefix := range t.ignored {
			if strings.HasPrefix(name, prefix) {
				return field{}, nil
			}
		}
	}
	if index, ok := strings.CutPrefix(name, "Unnamed: "); ok && strings.Trim(index, "0123456789") == "" {
		return field{}, nil // the index of a data frame, as pandas calls it
	}
	argument := name // as a shell takes it
	if strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.:", r)
	}) {
		argument = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return field{}, fmt.Errorf("%q is neither a parameter nor a metric of the study: give it an id of the study (--map %s=ID), or leave it out (--ignore %s)", name, argument, argument)
}

// own returns what a name of the study, or a column of trials, stands for.
func (c *columns) own(name string) (field, bool) {
	bare := strings.TrimPrefix(name, view.TrialPrefix)
	base, detail, _ := strings.Cut(name, ".")
	switch {
	case c.parameter(name) != nil:
		return field{kindParameter, name}, true
	case c.metric(name) != nil:
		return field{kindMetric, name}, true
	case slices.Contains(trialColumns, bare):
		return field{kindTrial, bare}, true
	case detail == view.RunsColumn && c.metric(base) != nil:
		return field{kindRuns, base}, true
	case detail == view.StandardErrorColumn && c.metric(base) != nil:
		return field{kindStandardError, base}, true
	default:
		return field{}, false
	}
}

func (c *columns) parameter(id string) *dparetov1.ParameterSpec {
	for _, p := range c.spec.GetParameters() {
		if p.GetId() == id {
			return p
		}
	}
	return nil
}

func (c *columns) metric(id string) *dparetov1.MetricSpec {
	for _, m := range c.spec.GetMetrics() {
		if m.GetId() == id {
			return m
		}
	}
	return nil
}

func (c *columns) isID(name string) bool { return c.parameter(name) != nil || c.metric(name) != nil }

// isComputed reports whether a field belongs to a metric that the server computes.
func (c *columns) isComputed(f field) bool {
	return f.kind != kindParameter && c.metric(f.id).GetComputed() != nil
}

// isNumber reports whether a column of the file has numbers.
func (c *columns) isNumber(name string) bool {
	switch f := c.fields[name]; f.kind {
	case kindParameter:
		return c.parameter(f.id).GetCategoricalDomain() == nil
	case kindMetric, kindRuns, kindStandardError:
		return true
	case kindTrial:
		return f.id == columnSeconds || f.id == columnStep
	default:
		return false
	}
}

// ignored returns the names that are left out, for the log.
func (c *columns) ignored() []string {
	var names []string
	for name, f := range c.fields {
		if f.kind == kindIgnored {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
