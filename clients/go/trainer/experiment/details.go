package experiment

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
)

// Names of the metrics of models of a user's own data, beside the error and the loss. On the test examples they have
// the prefix test_.
const (
	MetricAUC              = "auc"               // area under the ROC curve, of two classes
	MetricBalancedAccuracy = "balanced_accuracy" // mean over the classes of the fraction that is classified rightly
	MetricF1               = "f1"                // of the second of two classes, or the mean over more
	MetricCalibrationError = "calibration_error" // mean distance of confidence and accuracy, in ten bins (Guo et al. 2017)
	MetricRMSE             = "rmse"              // root mean squared error, in units of the label
	MetricMAE              = "mae"               // mean absolute error, in units of the label
	MetricR2               = "r2"                // 1 − squared error over the mean's

	// MetricSeconds and MetricBytes are costs of a model, which have no value of test examples.
	MetricSeconds = "seconds" // of training, without the time for measuring
	MetricBytes   = "bytes"   // of the weights in a file, 8 each
)

const testPrefix = "test_"

var detailUsages = map[string]string{
	MetricAUC:              "area under the ROC curve",
	MetricBalancedAccuracy: "mean over the classes of the fraction classified rightly",
	MetricF1:               "harmonic mean of precision and recall of the second class, or the mean over several",
	MetricCalibrationError: "mean distance of confidence and accuracy, in ten bins",
	MetricRMSE:             "root mean squared error",
	MetricMAE:              "mean absolute error",
	MetricR2:               "1 - squared error over the mean's",
}

// detailNames returns the names of the details of a model on a user's own data, nil on other data: studies of the paper
// stay as they are.
func detailNames(d *dataset.Dataset, spec model.Spec) []string {
	switch {
	case d.FeatureNorm == 0:
		return nil
	case d.Numeric():
		return []string{MetricRMSE, MetricMAE, MetricR2}
	}
	names := []string{MetricBalancedAccuracy, MetricF1}
	if d.Classes == 2 {
		names = append(names, MetricAUC)
	}
	if spec.Kind != model.LinearSVM && spec.Kind != model.HuberSVM {
		names = append(names, MetricCalibrationError)
	}
	return names
}

// DetailMetrics declares the details, none of which is an objective.
func DetailMetrics(parts *dataset.Parts, spec model.Spec) []trainer.MetricDeclaration {
	var metrics []trainer.MetricDeclaration
	prefix, where := "", ""
	for _, part := range []*dataset.Dataset{parts.Validation, parts.Test} {
		if part == nil {
			continue
		}
		for _, name := range detailNames(part, spec) {
			unit := ratio
			if part.Numeric() && name != MetricR2 {
				unit = ""
			}
			metrics = append(metrics, trainer.MetricDeclaration{Name: prefix + name, Usage: detailUsages[name] + where, Unit: unit})
		}
		prefix, where = testPrefix, ", on the test examples"
	}
	return metrics
}

// hasCosts reports whether seconds and bytes are measured: for models of a user's own data, like details.
func hasCosts(parts *dataset.Parts) bool { return parts.Train.FeatureNorm > 0 }

// CostMetrics declares the costs that [Train] measures.
func CostMetrics(parts *dataset.Parts) []trainer.MetricDeclaration {
	if !hasCosts(parts) {
		return nil
	}
	return []trainer.MetricDeclaration{
		{Name: MetricSeconds, Usage: "time of training on this machine, without measuring", Unit: "s"},
		{Name: MetricBytes, Usage: "size of the weights in a file", Unit: "B"},
	}
}

// details are measured on a part.
type details struct {
	data  *dataset.Dataset
	names []string // as they are reported
	spec  model.Spec
}

// WithDetails returns an evaluator that also measures the details of a model, as far as another was declared with them.
func (e Evaluator[E]) WithDetails(parts *dataset.Parts, spec, declared model.Spec) Evaluator[E] {
	e.details = nil
	prefix := ""
	for _, part := range []*dataset.Dataset{parts.Validation, parts.Test} {
		if part == nil || part.FeatureNorm == 0 {
			continue
		}
		d := details{data: part, spec: spec}
		for _, name := range detailNames(part, spec) {
			if slices.Contains(detailNames(part, declared), name) {
				d.names = append(d.names, prefix+name)
			}
		}
		e.details = append(e.details, d)
		prefix = testPrefix
	}
	return e
}

// detailsTo stores the details of one replicate at its index.
func (e Evaluator[E]) detailsTo(metrics map[string][]float64, replicate int, p Predictor[E]) {
	for i, d := range e.details {
		width := 1
		if !d.spec.Linear() {
			width = d.data.Classes
		}
		outputs := make([]float64, width*d.data.Rows)
		p.OutputsTo(outputs, e.parts[i].all)
		var values []float64
		if d.data.Numeric() {
			values = numberDetails(d.data, outputs)
		} else {
			values = classDetails(d.data, outputs, width)
		}
		for k, name := range d.names {
			metrics[name][replicate] = values[k]
		}
	}
}

// numberDetails returns rmse, mae and r2.
func numberDetails(d *dataset.Dataset, outputs []float64) []float64 {
	var squares, absolute, sum, sumSquares float64
	for i, label := range d.Labels {
		y := float64(label)
		e := max(-1, min(outputs[i], 1)) - y
		squares += e * e
		absolute += math.Abs(e)
		sum += y
		sumSquares += y * y
	}
	n := float64(d.Rows)
	unit := (d.LabelRange[1] - d.LabelRange[0]) / 2
	r2 := 0.0
	if total := sumSquares - sum*sum/n; total > 0 {
		r2 = 1 - squares/total
	}
	return []float64{unit * math.Sqrt(squares/n), unit * absolute / n, r2}
}

// classDetails returns balanced accuracy, f1, auc of two classes, and the calibration error.
func classDetails(d *dataset.Dataset, outputs []float64, width int) []float64 {
	const bins = 10
	var accuracy, confidence [bins]float64
	right, of, predicted := make([]float64, d.Classes), make([]float64, d.Classes), make([]float64, d.Classes)
	scores := make([]float64, d.Rows) // of the second of two classes
	for i, label := range d.Labels {
		class := int(label)
		if d.Classes == 2 {
			class = (class + 1) / 2
		}
		z := outputs[i*width : (i+1)*width]
		var best int
		var p float64
		if width == 1 {
			if z[0] > 0 {
				best = 1
			}
			scores[i], p = z[0], 1/(1+math.Exp(-math.Abs(z[0])))
		} else {
			for k := range z {
				if z[k] > z[best] {
					best = k
				}
			}
			var total float64
			for k := range z {
				total += math.Exp(z[k] - z[best])
			}
			scores[i], p = z[1]-z[0], 1/total
		}
		bin := min(int(p*bins), bins-1)
		confidence[bin] += p
		of[class]++
		predicted[best]++
		if best == class {
			right[class]++
			accuracy[bin]++
		}
	}
	var recall, f1, present, calibration float64
	for k := range of {
		if of[k] > 0 {
			present++
			recall += right[k] / of[k]
		}
		if both := of[k] + predicted[k]; both > 0 && (d.Classes > 2 || k == 1) {
			f1 += 2 * right[k] / both
		}
	}
	for bin := range bins {
		calibration += math.Abs(accuracy[bin]-confidence[bin]) / float64(d.Rows)
	}
	if d.Classes > 2 {
		return []float64{recall / present, f1 / float64(d.Classes), calibration}
	}
	return []float64{recall / present, f1, auc(scores, d.Labels), calibration}
}

// auc returns the probability that a random row of the second class has a higher score than one of the first, ties
// counting half; a half if one of the classes has no row.
func auc(scores []float64, labels []float32) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case scores[a] < scores[b]:
			return -1
		case scores[a] > scores[b]:
			return 1
		default:
			return 0
		}
	})
	var above, positives, negatives float64
	for first := 0; first < len(order); {
		end := first
		var p, n float64
		for ; end < len(order) && scores[order[end]] == scores[order[first]]; end++ {
			if labels[order[end]] > 0 {
				p++
			} else {
				n++
			}
		}
		above += p * (negatives + n/2)
		positives += p
		negatives += n
		first = end
	}
	if positives == 0 || negatives == 0 {
		return 0.5
	}
	return above / positives / negatives
}
