package experiment

import (
	"math"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
)

// The details of two classes, as scikit-learn has them of the same scores (roc_auc_score, balanced_accuracy_score,
// f1_score).
func TestDetailsOfTwoClasses(t *testing.T) {
	d := &dataset.Dataset{Rows: 8, Classes: 2, Labels: []float32{1, 1, 1, -1, -1, 1, -1, -1}}
	got := classDetails(d, []float64{2, 1, -1, -2, 0.5, 0.5, 1, -0.5}, 1)
	// Confidences .881, .731, .731, .881, .622, .622, .731, .622: the bins from .6, .7 and .8 have accuracies 2/3, 1/3 and 1.
	calibration := (math.Abs(2-3*sigma(0.5)) + math.Abs(1-3*sigma(1)) + math.Abs(2-2*sigma(2))) / 8
	for k, want := range []float64{0.625, 2. * 3 / 9, 0.6875, calibration} {
		if math.Abs(got[k]-want) > 1e-12 {
			t.Errorf("detail %d is %v, want %v", k, got[k], want)
		}
	}
}

func sigma(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Two outputs and their difference are one model.
func TestDetailsOfSeveralClasses(t *testing.T) {
	two := &dataset.Dataset{Rows: 3, Classes: 2, Labels: []float32{1, -1, 1}}
	one, pair := classDetails(two, []float64{2, -1, -0.5}, 1), classDetails(two, []float64{1, 3, 0, -1, 0, -0.5}, 2)
	for k := range one {
		if math.Abs(one[k]-pair[k]) > 1e-12 {
			t.Errorf("details %v and %v", one, pair)
		}
	}
	three := &dataset.Dataset{Rows: 4, Classes: 3, Labels: []float32{0, 1, 1, 2}}
	got := classDetails(three, []float64{9, 0, 0, 9, 0, 0, 0, 9, 0, 0, 9, 0}, 3)
	// Recalls 1, 1/2, 0; F1 2/3, 1/2, 0. Confidence is nearly 1, and half is right.
	for k, want := range []float64{0.5, (2./3 + 0.5) / 3, 0.5 - 2*math.Exp(-9)} {
		if math.Abs(got[k]-want) > 1e-6 {
			t.Errorf("detail %d is %v, want %v", k, got[k], want)
		}
	}
}

func TestDetailsOfNumbers(t *testing.T) {
	d := &dataset.Dataset{Rows: 2, LabelRange: [2]float64{100, 300}, Labels: []float32{-1, 0}}
	// Predictions 100 and 250 of 100 and 200.
	if got, want := numberDetails(d, []float64{-7, 0.5}), []float64{50 / math.Sqrt2, 25, 1 - 2500./5000}; !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Every detail that is declared is measured, and studies without own data have none.
func TestDetailNames(t *testing.T) {
	own := &dataset.Dataset{Classes: 2, FeatureNorm: 1}
	if got := len(DetailMetrics(&dataset.Parts{Test: own, Validation: own}, model.Spec{Kind: model.LogisticRegression})); got != 8 {
		t.Errorf("%d details, want 8", got)
	}
	if got := detailNames(own, model.Spec{Kind: model.LinearSVM}); slices.Contains(got, MetricCalibrationError) {
		t.Errorf("an SVM has %v", got)
	}
	if got := detailNames(&dataset.Dataset{Classes: 2}, model.Spec{Kind: model.LogisticRegression}); got != nil {
		t.Errorf("other data have %v", got)
	}
}
