package papers

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/proposetest"
)

// proposeTestFlags are the flags of dpareto privacy propose-test.
type proposeTestFlags struct {
	proposetest.Tuning

	budget            float64
	adjacency         string
	validationRecords int64
	utilities         string
	seed              uint64
}

// ProposeTestCommand returns the command privacy propose-test.
func ProposeTestCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	var f proposeTestFlags
	cmd := &cobra.Command{
		Use:   "propose-test",
		Short: "Plan or run propose-test tuning with a cap on its rounds",
		Long: `Plans the tuning of hyperparameters by propose-test with a doubling step (Ding and Wu 2022) in
a version with a rigorous guarantee. A cap on the number of rounds is fixed before the run, by
--cap or as the largest that --budget pays for. It prints what the rounds cost by every
composition theorem; the least cost counts.

With --utilities the search is run: FILE is CSV with a header and a row for every candidate:
its name and then its utility in [0, 1] on each of the parts, or their mean. The search takes
the rows in their order, which must not depend on the data. The noise is drawn from the
operating system's entropy. With --seed it is not, and the result is a simulation.

One call of report-noisy-max or permute-and-flip on the same utilities selects better with
the same ε: see "dpareto-lab reproduce propose-test".`,
		Example: `  dpareto privacy propose-test --budget 1 --parts 100 --round-epsilon 0.1
  dpareto privacy propose-test --cap 7 --parts 1000 --granularity 0.05 --validation-records 16281
  dpareto privacy propose-test --budget 3 --utilities utilities.csv --seed 1`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return proposeTest(out, &f, cmd.Flags().Changed)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Float64Var(&f.budget, "budget", 0, "ε that the whole search may cost; the cap is the largest within it")
	flags.Int64Var(&f.Cap, "cap", 0, "largest number of rounds")
	flags.IntVar(&f.Parts, "parts", 10, "number of disjoint parts of the training set; with a column for each in --utilities, their number")
	flags.Float64Var(&f.Epsilon, "round-epsilon", 0.1, "ε of one round")
	flags.Float64Var(&f.Delta, "delta", 1e-6, "δ of the composition of the rounds")
	flags.Float64Var(&f.Lower, "lower", 0, "utility from which proposals start")
	flags.Float64Var(&f.Granularity, "granularity", 0.01, "least step of a proposal")
	flags.IntVar(&f.Default, "default", 0, "candidate, from 0, to take where no round succeeds")
	flags.StringVar(&f.adjacency, "adjacency", "replace-one", "adjacency of training sets: add-remove or replace-one")
	flags.Int64Var(&f.validationRecords, "validation-records", 0, "number of validation records, for their guarantee")
	flags.StringVar(&f.utilities, "utilities", "", "file of utilities to run the search on")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the noise of a simulation")
	out.AddFlag(cmd)
	return cmd
}

// proposeTest plans a search, and runs it if there are utilities.
func proposeTest(out *command.Printer, f *proposeTestFlags, changed func(string) bool) error {
	tuning, err := f.tuning(changed)
	if err != nil {
		return err
	}
	var names []string
	var utilities []float64
	if f.utilities != "" {
		var columns int
		if names, utilities, columns, err = readUtilities(f.utilities); err != nil {
			return err
		}
		if columns > 1 {
			if changed("parts") && tuning.Parts != columns {
				return command.Usagef("--parts is %d, and %s has utilities on %d parts", tuning.Parts, f.utilities, columns)
			}
			tuning.Parts = columns
		}
	} else if changed("seed") {
		return command.Usage(errors.New("--seed is for simulations, which take --utilities"))
	}
	if f.budget > 0 {
		if tuning, err = tuning.Plan(f.budget); err != nil {
			return fieldsAsFlags(err, proposeTestNames)
		}
	}
	p := searchReport{Tuning: tuning, Budget: f.budget, ValidationRecords: f.validationRecords, Names: names}
	if f.utilities != "" {
		source := noise.System()
		if p.Simulated = changed("seed"); p.Simulated {
			source = noise.Seeded(f.seed)
		}
		if p.Result, err = tuning.Run(source, utilities); err != nil {
			return fieldsAsFlags(err, proposeTestNames)
		}
		if p.Simulated {
			claim, err := tuning.PaperClaim(utilities, p.Result)
			if err != nil {
				return err
			}
			p.Claim = &claim
		}
	}
	report, err := p.Report()
	if err != nil {
		return fieldsAsFlags(err, proposeTestNames)
	}
	return report.Write(out, out.Format)
}

// tuning returns the search that the flags describe, without what the utilities or the
// budget decide.
func (f *proposeTestFlags) tuning(changed func(string) bool) (proposetest.Tuning, error) {
	t := f.Tuning
	switch f.adjacency {
	case "add-remove":
		t.Neighbours = privacy.AddRemove
	case "replace-one":
		t.Neighbours = privacy.ReplaceOne
	default:
		return t, command.Usagef("--adjacency must be add-remove or replace-one, is %q", f.adjacency)
	}
	if changed("budget") == changed("cap") {
		return t, command.Usage(errors.New("one of --budget and --cap is required: the rounds must be limited before the run"))
	}
	if changed("budget") && !(f.budget > 0) {
		return t, command.Usagef("--budget must be positive, is %g", f.budget)
	}
	if changed("cap") && f.Cap < 1 {
		return t, command.Usagef("--cap must be at least 1, is %d", f.Cap)
	}
	if changed("validation-records") && f.validationRecords < 1 {
		return t, command.Usagef("--validation-records must be at least 1, is %d", f.validationRecords)
	}
	return t, nil
}

// readUtilities reads candidates with their mean utilities, and the number of columns that
// these were in.
func readUtilities(path string) (names []string, utilities []float64, columns int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, 0, err
	}
	defer func() { _ = file.Close() }() // read only
	r := csv.NewReader(file)
	header, err := r.Read()
	if err != nil {
		return nil, nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	if columns = len(header) - 1; columns < 1 {
		return nil, nil, 0, fmt.Errorf("%s: every row must have a name and at least one utility", path)
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, 0, fmt.Errorf("%s: %w", path, err)
		}
		sum := 0.0
		for i, text := range row[1:] {
			u, err := strconv.ParseFloat(text, 64)
			if err != nil || !(u >= 0 && u <= 1) {
				line, _ := r.FieldPos(i + 1)
				return nil, nil, 0, fmt.Errorf("%s:%d: column %s: must be in [0, 1], is %q", path, line, header[i+1], text)
			}
			sum += u
		}
		names, utilities = append(names, row[0]), append(utilities, sum/float64(columns))
	}
	if len(names) == 0 {
		return nil, nil, 0, fmt.Errorf("%s: has no candidates", path)
	}
	return names, utilities, columns, nil
}

// proposeTestNames are the flags of fields that have another name.
var proposeTestNames = map[string]string{epsilonColumn: "round-epsilon"}

// fieldsAsFlags turns an error that names fields into one that names flags, some of which
// have other names.
func fieldsAsFlags(err error, names map[string]string) error {
	fields := privacy.FieldErrors(err)
	if len(fields) == 0 {
		return err
	}
	messages := make([]string, len(fields))
	for i, field := range fields {
		name, ok := names[field.Field]
		if !ok {
			name = strings.ReplaceAll(field.Field, "_", "-")
		}
		messages[i] = "--" + name + ": " + field.Message
	}
	return command.Usage(errors.New(strings.Join(messages, "; ")))
}
