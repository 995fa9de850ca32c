package experiment

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// Names of the metrics, which the package comment explains.
const (
	MetricError     = "error"      // fraction of the validation examples classified wrongly; of numbers, the RMSE over the width of their range
	MetricLoss      = "loss"       // mean loss on the validation examples
	MetricTestError = "test_error" // the same on the test examples
	MetricTestLoss  = "test_loss"  // mean loss on the test examples

	// MetricGap and MetricTestGap are the gap of equal opportunity between women and men, of
	// models of Adult.
	MetricGap     = "equal_opportunity_gap"
	MetricTestGap = testPrefix + MetricGap

	// MetricErrorGap is the largest difference of the errors of two groups, of models of a user's own data. On the test
	// examples it has the prefix test_.
	MetricErrorGap = "error_gap"
)

// ratio is the unit of fractions.
const ratio = "ratio"

// Metrics declares the metrics of models trained on the parts of a dataset, with the
// error as the objective. lossUnit is the unit of the loss, empty if it has none.
func Metrics(parts *dataset.Parts, lossUnit string) []trainer.MetricDeclaration {
	first, where := parts.Validation, "validation"
	if first == nil {
		first, where = parts.Test, "test"
	}
	errorMetric := trainer.MetricDeclaration{
		Name: MetricError, Usage: "root mean squared error on the " + where + " examples, over the width of the range of labels", Unit: ratio,
		Objective: true, Transform: trainer.TransformLogit,
	}
	testUsage := "root mean squared error on the test examples, over the width of the range of labels"
	if !first.Numeric() {
		testUsage = "fraction of the test examples classified wrongly"
		errorMetric = trainer.MetricDeclaration{
			Name: MetricError, Usage: "fraction of the " + where + " examples classified wrongly", Unit: ratio,
			Objective: true, Transform: trainer.TransformLogit, SampleSize: first.Rows, Average: true,
		}
	}
	metrics := []trainer.MetricDeclaration{
		errorMetric,
		{Name: MetricLoss, Usage: "mean loss on the " + where + " examples", Unit: lossUnit},
	}
	metrics = appendGap(metrics, "", parts, first)
	if parts.Validation == nil {
		return metrics
	}
	metrics = append(metrics,
		trainer.MetricDeclaration{Name: MetricTestError, Usage: testUsage, Unit: ratio},
		trainer.MetricDeclaration{Name: MetricTestLoss, Usage: "mean loss on the test examples", Unit: lossUnit})
	return appendGap(metrics, testPrefix, parts, parts.Test)
}

// Constants declares the classifier that predicts the class of most of the examples that the error is
// measured on, or the mean of numbers, whatever the features. It depends on no training example, so that it is 0-DP for
// them; it does depend on the labels of the examples that measure it, as the error of every run
// does. There is none for outlines, whose labels are made up.
func Constants(parts *dataset.Parts, options trainer.Options) []trainer.ConstantDeclaration {
	first, where := parts.Validation, "validation"
	if first == nil {
		first, where = parts.Test, "test"
	}
	if options.Outline || first == nil || first.Rows == 0 {
		return nil
	}
	if first.Numeric() {
		var sum, squares float64
		for _, label := range first.Labels {
			sum += float64(label)
			squares += float64(label) * float64(label)
		}
		mean := sum / float64(first.Rows)
		deviation := math.Sqrt(max(0, squares/float64(first.Rows)-mean*mean))
		return []trainer.ConstantDeclaration{{
			Name: "mean", Usage: fmt.Sprintf("always predict the mean of the %d %s examples", first.Rows, where),
			Values: map[string]float64{MetricError: deviation / 2},
		}}
	}
	counts := make(map[float32]int)
	most := first.Labels[0]
	for _, label := range first.Labels {
		counts[label]++
		if n := counts[label]; n > counts[most] || n == counts[most] && label < most {
			most = label
		}
	}
	class := fmt.Sprintf("class %g", most)
	if names := first.ClassNames; len(names) == 2 {
		class = strconv.Quote(names[int(most+1)/2])
	} else if names != nil {
		class = strconv.Quote(names[int(most)])
	}
	return []trainer.ConstantDeclaration{{
		Name:   "majority",
		Usage:  fmt.Sprintf("always predict %s, the class of most of the %d %s examples", class, first.Rows, where),
		Values: map[string]float64{MetricError: float64(first.Rows-counts[most]) / float64(first.Rows)},
	}}
}

// ErrNotFinite is returned for a model with an infinite or NaN value or loss.
var ErrNotFinite = errors.New("the model or its loss is not finite")

// Evaluator measures models on the examples that did not train them, in the form E that
// the models take. It is immutable.
type Evaluator[E any] struct {
	parts []judged[E] // for error and loss, then for test_error and test_loss if there are any
	// details of the parts, if they are measured.
	details []details
	costs   bool
}

// judged are examples that a model is measured on.
type judged[E any] struct {
	all E
	// groups are those whose error rates are compared, and gap is the name of the difference, if there are any.
	groups []E
	gap    string
}

// NewEvaluator prepares the validation and the test part. It is an error if there is no
// test part or the number of classes differs from the training part's; it panics if the
// dimensions differ.
func NewEvaluator[E any](parts *dataset.Parts, prepare func(*dataset.Dataset) (E, error)) (Evaluator[E], error) {
	var e Evaluator[E]
	if parts.Test == nil {
		return e, fmt.Errorf("dataset %s has no test examples", parts.Train.Name)
	}
	e.costs = hasCosts(parts)
	for _, part := range []*dataset.Dataset{parts.Validation, parts.Test} {
		if part == nil {
			continue
		}
		if part.Dim != parts.Train.Dim {
			panic("experiment: dimension mismatch")
		}
		if part.Classes != parts.Train.Classes {
			return e, fmt.Errorf("dataset %s has %d classes, want the %d of %s", part.Name, part.Classes, parts.Train.Classes, parts.Train.Name)
		}
		examples, err := prepare(part)
		if err != nil {
			return e, err
		}
		name, rows := compared(parts, part)
		groups, err := groupsOf(part, rows, prepare)
		if err != nil {
			return e, err
		}
		if len(e.parts) > 0 {
			name = testPrefix + name
		}
		e.parts = append(e.parts, judged[E]{examples, groups, name})
	}
	return e, nil
}

// First returns the examples of [MetricError] and [MetricLoss].
func (e Evaluator[E]) First() E { return e.parts[0].all }

// Metrics returns room for the metrics of a number of replicates.
func (e Evaluator[E]) Metrics(replicates int) map[string][]float64 {
	metrics := make(map[string][]float64)
	for i, part := range e.parts {
		for _, name := range metricNames[i] {
			metrics[name] = make([]float64, replicates)
		}
		if part.groups != nil {
			metrics[part.gap] = make([]float64, replicates)
		}
	}
	for _, d := range e.details {
		for _, name := range d.names {
			metrics[name] = make([]float64, replicates)
		}
	}
	return metrics
}

// metricNames are the error and the loss on each part.
var metricNames = [2][2]string{{MetricError, MetricLoss}, {MetricTestError, MetricTestLoss}}

// MeasureTo stores the metrics of one replicate at its index. evaluate returns the error
// rate and the mean loss of its model on examples. Different replicates may be measured
// concurrently. The only error is ErrNotFinite.
func (e Evaluator[E]) MeasureTo(metrics map[string][]float64, replicate int, evaluate func(examples E) (errorRate, loss float64)) error {
	for i, part := range e.parts {
		errorRate, loss := evaluate(part.all)
		if math.IsNaN(loss) || math.IsInf(loss, 0) {
			return ErrNotFinite
		}
		metrics[metricNames[i][0]][replicate], metrics[metricNames[i][1]][replicate] = errorRate, loss
		if part.groups != nil {
			metrics[part.gap][replicate] = gap(part.groups, evaluate)
		}
	}
	return nil
}
