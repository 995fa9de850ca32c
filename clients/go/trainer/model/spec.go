package model

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a kind of model.
type Kind string

// The kinds. The loss of the first three is a function φ(u) of the margin u = yz,
// where y = ±1 is the label and z the output.
const (
	// LogisticRegression has φ(u) = log(1 + e^(−u)).
	LogisticRegression Kind = "logistic-regression"
	// LinearSVM has the hinge loss φ(u) = max(0, 1 − u), of slope 0 at the hinge.
	LinearSVM Kind = "linear-svm"
	// HuberSVM has the hinge loss with its corner rounded over |1 − u| <= h
	// (Chaudhuri, Monteleoni and Sarwate, "Differentially private empirical risk
	// minimization", 2011, §3.4.2): φ(u) = (1 + h − u)²/(4h) there.
	HuberSVM Kind = "huber-svm"
	// LinearRegression has the squared loss (z − y)²/2 of a number y in [−1, 1]. Predictions are moved into [−1, 1].
	LinearRegression Kind = "linear-regression"
	// SoftmaxRegression has one linear output per class and the loss −log p of the
	// example's class, p being the softmax of the outputs.
	SoftmaxRegression Kind = "softmax-regression"
	// MLP is SoftmaxRegression behind hidden layers of ReLU units.
	MLP Kind = "mlp"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{LogisticRegression, LinearSVM, HuberSVM, LinearRegression, SoftmaxRegression, MLP}
}

// DefaultHuberWidth is the default h of HuberSVM, from Chaudhuri et al. (2011).
const DefaultHuberWidth = 0.5

// Spec describes a model.
type Spec struct {
	Kind Kind
	// Hidden are the widths of an MLP's hidden layers, from the input on: at least
	// one, each at least 1. Other kinds have none.
	Hidden []int
	// HuberWidth is the h of HuberSVM, in (0, 1]. Zero means DefaultHuberWidth.
	HuberWidth float64
}

// Validate returns an error that names the fault of the spec.
func (s Spec) Validate() error {
	if !slices.Contains(Kinds(), s.Kind) {
		names := make([]string, len(Kinds()))
		for i, kind := range Kinds() {
			names[i] = string(kind)
		}
		return fmt.Errorf("model %q is unknown, want one of %s", s.Kind, strings.Join(names, ", "))
	}
	if (s.Kind == MLP) != (len(s.Hidden) > 0) {
		return fmt.Errorf("model %s has %d hidden layers, want %s", s.Kind, len(s.Hidden),
			map[bool]string{true: "at least one", false: "none"}[s.Kind == MLP])
	}
	for _, width := range s.Hidden {
		if width < 1 {
			return fmt.Errorf("width %d of a hidden layer, want at least 1", width)
		}
	}
	if s.HuberWidth < 0 || s.HuberWidth > 1 {
		return fmt.Errorf("huber width %v is not in (0, 1]", s.HuberWidth)
	}
	return nil
}

// Linear reports whether the model is a hyperplane, for two classes or a number.
func (s Spec) Linear() bool {
	return s.Kind == LogisticRegression || s.Kind == LinearSVM || s.Kind == HuberSVM || s.Kind == LinearRegression
}

// outputs returns the number of classes of a hyperplane, 1 for a number.
func (s Spec) outputs() int {
	if s.Kind == LinearRegression {
		return 1
	}
	return 2
}
