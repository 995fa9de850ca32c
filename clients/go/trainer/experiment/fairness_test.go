package experiment

import (
	"context"
	"hash/fnv"
	"math"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/require"
)

// oracle is a learner whose predictions are drawn from a hash of the row, and depend on the sex
// with some weight.
type oracle struct{ bias uint32 }

func (o oracle) Epoch(context.Context) bool { return true }
func (o oracle) Finite() bool               { return true }
func (o oracle) Size() int                  { return 2 }

func (o oracle) predict(indices []int32) float32 {
	h := fnv.New32a()
	for _, i := range indices {
		h.Write([]byte{byte(i)})
	}
	score := h.Sum32() % 100
	if slices.Contains(indices, 72) {
		score += o.bias
	}
	if score >= 60 {
		return 1
	}
	return -1
}

func (o oracle) Evaluate(d *dataset.Dataset) (errorRate, loss float64) {
	for i, label := range d.Labels {
		if indices, _ := d.Row(i); o.predict(indices) != label {
			errorRate++
		}
	}
	return errorRate / float64(d.Rows), 0
}

// confusionGap counts the table of sex, label and prediction and returns the gap of the rates of
// true positives.
func confusionGap(d *dataset.Dataset, o oracle) float64 {
	var found, all [2]float64
	for i, label := range d.Labels {
		indices, _ := d.Row(i)
		for sex, feature := range []int32{71, 72} {
			if label == 1 && slices.Contains(indices, feature) {
				all[sex]++
				if o.predict(indices) == 1 {
					found[sex]++
				}
			}
		}
	}
	return math.Abs(found[0]/all[0] - found[1]/all[1])
}

// adultParts returns generated parts under the name of a dataset.
func adultParts(name string, validation, test int) *dataset.Parts {
	parts := &dataset.Parts{Train: dataset.Generated(10, 1), Test: dataset.Generated(test, 3), Split: dataset.Split{Dataset: name}}
	if validation > 0 {
		parts.Validation = dataset.Generated(validation, 2)
	}
	return parts
}

func TestGap(t *testing.T) {
	parts := adultParts(dataset.NameAdult, 5000, 6000)
	e, err := NewEvaluator(parts, func(d *dataset.Dataset) (*dataset.Dataset, error) { return d, nil })
	require.NoError(t, err)
	for _, bias := range []uint32{0, 20, 100} {
		o := oracle{bias}
		m, err := Train(t.Context(), []Learner[*dataset.Dataset]{o, oracle{0}}, e, 1, nil)
		require.NoError(t, err)
		for name, part := range map[string]*dataset.Dataset{MetricGap: parts.Validation, MetricTestGap: parts.Test} {
			for r, o := range []oracle{o, {0}} {
				if got, want := m.Metrics[name][r], confusionGap(part, o); math.Abs(got-want) > 1e-12 {
					t.Errorf("bias %d: %s is %v, want %v", bias, name, got, want)
				}
			}
		}
		if bias == 100 && m.Metrics[MetricGap][0] < 0.5 {
			t.Errorf("a model that finds all men has gap %v", m.Metrics[MetricGap][0])
		}
	}
}

// The gap is measured, and declared, for Adult alone, and on enough examples. It is declared as
// no average over test records, so that studies that protect these refuse it.
func TestGapIsForEnoughExamples(t *testing.T) {
	for _, tt := range []struct {
		parts       *dataset.Parts
		first, test bool
	}{
		{adultParts(dataset.NameAdult, 0, 5000), true, false},
		{adultParts(dataset.NameAdultRaw, 0, 5000), true, false},
		{adultParts(dataset.NameAdult, 0, 4999), false, false},
		{adultParts(dataset.NameAdult, 4999, 5000), false, true},
		{adultParts(dataset.NameAdult, 5000, 4999), true, false},
		{adultParts(dataset.NameKDDCup99, 5000, 5000), false, false},
	} {
		e, err := NewEvaluator(tt.parts, func(d *dataset.Dataset) (int, error) { return d.Rows, nil })
		require.NoError(t, err)
		measured := e.Metrics(1)
		declared := make(map[string]trainer.MetricDeclaration)
		for _, m := range Metrics(tt.parts, "") {
			declared[m.Name] = m
		}
		for name, want := range map[string]bool{MetricGap: tt.first, MetricTestGap: tt.test} {
			m, isDeclared := declared[name]
			if _, isMeasured := measured[name]; isMeasured != want || isDeclared != want || m.Average || m.Objective {
				t.Errorf("%v: %s is measured: %v, declared: %+v, want %v", tt.parts.Split, name, isMeasured, m, want)
			}
		}
	}
	// An outline has no features: the gap is declared, since the examples will have it.
	outline := adultParts(dataset.NameAdult, 0, 5000)
	empty := *outline.Test
	empty.Indices, empty.RowStart = nil, make([]int, empty.Rows+1)
	outline.Test = &empty
	if _, err := NewEvaluator(outline, func(d *dataset.Dataset) (int, error) { return d.Rows, nil }); err != nil || len(Metrics(outline, "")) != 3 {
		t.Errorf("outline: error %v, metrics %+v", err, Metrics(outline, ""))
	}
}

// Groups of a user's own data are compared by their errors, except small ones and rows of none.
func TestErrorGap(t *testing.T) {
	test := dataset.Generated(1000, 3)
	parts := &dataset.Parts{Train: dataset.Generated(10, 1), Validation: dataset.Generated(200, 2), Test: test, Split: dataset.Split{Dataset: "my.csv"}}
	parts.Validation.Groups = make([]int, 200) // a single group
	o := oracle{30}
	var wrong, all [4]float64
	for i, label := range test.Labels {
		group := min(i%7-1, 2)
		if i > 980 {
			group = 3
		}
		test.Groups = append(test.Groups, group)
		if group < 0 {
			continue
		}
		all[group]++
		if indices, _ := test.Row(i); o.predict(indices) != label {
			wrong[group]++
		}
	}
	rates := []float64{wrong[0] / all[0], wrong[1] / all[1], wrong[2] / all[2]}
	e, err := NewEvaluator(parts, func(d *dataset.Dataset) (*dataset.Dataset, error) { return d, nil })
	require.NoError(t, err)
	m, err := Train(t.Context(), []Learner[*dataset.Dataset]{o}, e, 1, nil)
	require.NoError(t, err)
	name := testPrefix + MetricErrorGap
	if want := slices.Max(rates) - slices.Min(rates); want == 0 || math.Abs(m.Metrics[name][0]-want) > 1e-12 {
		t.Errorf("gap %v of %v, want %v", m.Metrics[name], rates, want)
	}
	declared := make(map[string]bool)
	for _, metric := range Metrics(parts, "") {
		declared[metric.Name] = true
	}
	if _, ok := m.Metrics[MetricErrorGap]; ok || declared[MetricErrorGap] || !declared[name] {
		t.Errorf("one group of the validation examples has a gap: %v, declared %v", m.Metrics, declared)
	}
}
