package trial

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// importLabel is the label of imported trials: what they were made from.
const importLabel = "import"

func importCommand(env *command.Env) *cobra.Command {
	return remote.Action(env, &cobra.Command{
		Use:   "import STUDY FILE",
		Short: "Create trials from results of other tools",
		Long: `Creates a completed trial for every line of a CSV file with a header, or of a file of JSON
objects, one per line; "-" is standard input. Names are the ids of the study's parameters and
reported metrics:

    cutoff,noise_scale,error
    3,2.5,0.125

    {"cutoff": 3, "noise_scale": 2.5, "error": [0.1, 0.15]}

A JSON list holds the values of repeated runs. An empty cell has no value. Computed metrics,
such as ε, follow from the parameters.

Every trial gets the label "import" with a digest of its line. Lines whose trial exists are
skipped, so an interrupted command can be repeated.`,
		Example: "  dpareto trial import svt results.csv",
		Args:    cobra.ExactArgs(2),
	}, func(ctx context.Context, call *remote.Call) error {
		path := call.Args[1]
		content, err := env.ReadFile(path)
		if err != nil {
			return err
		}
		results, err := readResults(content)
		if err != nil {
			return fmt.Errorf("%s: %w", command.SourceName(path), err)
		}
		return Import(ctx, call.Client, env.Logger, call.Handle(call.Args[0]), command.SourceName(path), results)
	})
}

// Import creates a completed trial for each result that has none yet. source names the
// results in errors.
func Import(ctx context.Context, client *dpareto.Client, logger *slog.Logger, handle *dpareto.Study, source string, results []Result) error {
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	// No trial is created before all results are read.
	trials := make([]*dparetov1.Trial, len(results))
	occurrences := make(map[string]int)
	for i, result := range results {
		if trials[i], err = result.trial(study.GetSpec()); err != nil {
			return fmt.Errorf("%s:%d: %w", source, result.Line, err)
		}
		digest := result.digest()
		occurrences[digest]++ // two equal lines are two results
		trials[i].Labels = map[string]string{importLabel: digest + "-" + strconv.Itoa(occurrences[digest])}
	}
	existing := make(map[string]bool)
	for trial, err := range handle.Trials(ctx) {
		if err != nil {
			return err
		}
		existing[trial.GetLabels()[importLabel]] = true
	}
	created := 0
	for i, trial := range trials {
		if existing[trial.GetLabels()[importLabel]] {
			continue
		}
		if _, err := client.Studies.CreateTrial(ctx, &dparetov1.CreateTrialRequest{Parent: handle.Name(), Trial: trial}); err != nil {
			return &remote.CallError{Action: fmt.Sprintf("%s:%d: after %d trials", source, results[i].Line, created), Err: err}
		}
		created++
	}
	logger.Info("imported", "study", handle.Name(), "trials", created, "existed", len(trials)-created)
	return nil
}

// Result is a line of a file of results.
type Result struct {
	Line int
	// Values are the parameters and metrics by name: numbers, strings, or lists of numbers.
	Values map[string]any
}

// readResults reads CSV or JSON lines.
func readResults(content []byte) ([]Result, error) {
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		return readJSONLines(content)
	}
	reader := csv.NewReader(bytes.NewReader(content))
	header, err := reader.Read()
	if err != nil {
		return nil, fmt.Errorf("no header: %w", err)
	}
	var results []Result
	for {
		cells, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return results, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := reader.FieldPos(0)
		values := make(map[string]any)
		for i, cell := range cells {
			if cell != "" {
				values[header[i]] = cell
			}
		}
		results = append(results, Result{line, values})
	}
}

func readJSONLines(content []byte) ([]Result, error) {
	var results []Result
	line := 0
	for text := range bytes.Lines(content) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber() // integers of 64 bits
		values := make(map[string]any)
		if err := decoder.Decode(&values); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if decoder.More() {
			return nil, fmt.Errorf("line %d: more than one object", line)
		}
		results = append(results, Result{line, values})
	}
	return results, nil
}

// digest identifies the result.
func (r Result) digest() string {
	encoded, err := json.Marshal(r.Values) // with its keys in order
	if err != nil {
		panic(err) // it holds numbers and strings
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:16])
}

// trial returns the result as a completed trial.
func (r Result) trial(spec *dparetov1.StudySpec) (*dparetov1.Trial, error) {
	trial := &dparetov1.Trial{
		Parameters:       make(map[string]*dparetov1.Value),
		FinalMeasurement: &dparetov1.Measurement{Metrics: make(map[string]*dparetov1.MetricValue)},
	}
	for name, value := range r.Values {
		if i := slices.IndexFunc(spec.GetParameters(), func(p *dparetov1.ParameterSpec) bool { return p.GetId() == name }); i >= 0 {
			parameter, err := view.ParameterValue(spec.GetParameters()[i], value)
			if err != nil {
				return nil, fmt.Errorf("parameter %s: %w", name, err)
			}
			trial.Parameters[name] = parameter
			continue
		}
		if !slices.ContainsFunc(spec.GetMetrics(), func(m *dparetov1.MetricSpec) bool { return m.GetId() == name }) {
			return nil, fmt.Errorf("%q is neither a parameter nor a metric of the study", name)
		}
		metric, err := metricValue(value)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", name, err)
		}
		trial.FinalMeasurement.Metrics[name] = metric
	}
	return trial, nil
}

// metricValue returns the value of one run, or the values of several.
func metricValue(value any) (*dparetov1.MetricValue, error) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	numbers := make([]float64, len(list))
	for i, element := range list {
		var err error
		if numbers[i], err = strconv.ParseFloat(strings.TrimSpace(fmt.Sprint(element)), 64); err != nil {
			return nil, fmt.Errorf("must be a number, is %q", fmt.Sprint(element))
		}
	}
	if ok {
		return &dparetov1.MetricValue{Runs: numbers}, nil
	}
	return &dparetov1.MetricValue{Value: &numbers[0]}, nil
}
