package dpsgd

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/parallel"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/internal/require"
)

// The steps that the Python client's tests replay (tests/test_recorded.py). With DPARETO_RECORD=FILE
// TestRecordedSteps writes them there instead; with DPARETO_RECORD_RUNS=N it writes N runs without a fault.
const recordedSteps = "../../../python/tests/fixtures/bundled.json"

// A recording has the settings of runs, their examples, and what each did.
type recording struct {
	Records         int           `json:"records"`
	LotSize         int           `json:"lot_size"`
	Epochs          int           `json:"epochs"`
	NoiseMultiplier float64       `json:"noise_multiplier"`
	ClippingNorm    float64       `json:"clipping_norm"`
	LearningRate    float64       `json:"learning_rate"`
	X               [][]float64   `json:"x"`
	Y               []float64     `json:"y"`
	Runs            []recordedRun `json:"runs"`
}

// A recordedRun has the lots of all steps, and the weights before each and after the last.
type recordedRun struct {
	Fault    string      `json:"fault"`
	Finding  string      `json:"finding"` // of the replay
	Sampling string      `json:"sampling"`
	Seed     uint64      `json:"seed"`
	Lots     [][]int32   `json:"lots"`
	Weights  [][]float64 `json:"weights"`
}

// A recorder is a model that notes what a trainer asks of it. A fault changes what it does.
type recorder struct {
	model.Model[float64]
	fault string
	lot   []int32
	noise *random.Stream
}

func (m *recorder) AccumulateRounded(rows []int32, norm, grid float64) {
	m.lot = append(m.lot, rows...)
	switch m.fault {
	case "clipping to twice the norm":
		m.Model.AccumulateRounded(rows, 2*norm, grid)
	case "noise of each micro-batch":
		m.Model.AccumulateRounded(rows, norm, grid)
		random.AddNoise(m.Sum(), m.noise)
	default:
		m.Model.AccumulateRounded(rows, norm, grid)
	}
}

// longRecords returns examples whose gradients are longer than the clipping norm.
func longRecords(rows, dim int) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(7, 7))
	d := &dataset.Dataset{
		Name: "long", Generated: true, Rows: rows, Dim: dim, Classes: 2,
		Dense: make([]float32, rows*dim), Labels: make([]float32, rows),
	}
	for i := range rows {
		sum := rng.NormFloat64()
		for k := range dim {
			v := float32(math.Round(300*rng.NormFloat64()) / 100)
			d.Dense[i*dim+k] = v
			sum += float64(v)
		}
		d.Labels[i] = float32(math.Copysign(1, sum))
	}
	return d
}

func record(t *testing.T, r *recording, d *dataset.Dataset, run recordedRun) recordedRun {
	t.Helper()
	o, err := Options{Sampling: Sampling(run.Sampling), Adjacency: AddRemove}.normal()
	require.NoError(t, err)
	c := testConfiguration(r.Records, r.LotSize)
	c.stepsPerEpoch = int64(r.Records / r.LotSize)
	c.clippingNorm, c.noiseMultiplier, c.learningRate = r.ClippingNorm, r.NoiseMultiplier, r.LearningRate
	switch run.Fault {
	case "last batch dropped":
		c.stepsPerEpoch--
	case "noise of the mean on the sum":
		c.noiseMultiplier /= float64(r.LotSize)
	}
	m := &recorder{
		Model: model.NewLinear(o.Model, prepare(t, d)), fault: run.Fault, noise: random.Open(new(run.Seed), 0, 1, 1),
	}
	steps, workers := int(c.stepsPerEpoch), parallel.New(1)
	c.stepsPerEpoch = 1
	if o.Sampling == RandomAllocation { // whose epochs are drawn at once
		c.stepsPerEpoch = int64(steps)
	}
	trained, err := newReplicate[float64](m, o, c, new(run.Seed), 0, workers)
	require.NoError(t, err)
	shuffle := rand.New(rand.NewPCG(run.Seed, 3))
	var shuffled []int
	for range r.Epochs {
		for i := range steps {
			if run.Fault == "reused noise" {
				trained.noise[0] = random.Open(new(run.Seed), 0, streamNoise, 0)
			}
			run.Weights = append(run.Weights, rounded(m.Weights()))
			lot := trained.lot(i)
			if run.Fault == "shuffled for Poisson" {
				if i == 0 {
					shuffled = shuffle.Perm(r.Records)
				}
				lot = lot[:0]
				for _, row := range shuffled[i*r.LotSize : (i+1)*r.LotSize] {
					lot = append(lot, int32(row))
				}
			}
			trained.step++
			trained.accumulate(lot)
			workers.Do(blocks(trained.model), trained.updateBlock)
			run.Lots = append(run.Lots, slices.Clone(m.lot))
			m.lot = m.lot[:0]
		}
	}
	run.Weights = append(run.Weights, rounded(m.Weights()))
	return run
}

func rounded(weights []float64) []float64 {
	result := make([]float64, len(weights))
	for i, w := range weights {
		result[i] = math.Round(w*1e8) / 1e8
	}
	return result
}

func TestRecordedSteps(t *testing.T) {
	const rows, dim = 120, 8
	d := longRecords(rows, dim)
	got := recording{Records: rows, LotSize: 12, Epochs: 7, NoiseMultiplier: 1.5, ClippingNorm: 0.5, LearningRate: 0.1}
	for i := range rows {
		got.X = append(got.X, row64(d.Dense[i*dim:(i+1)*dim]))
		got.Y = append(got.Y, float64(d.Labels[i]))
	}
	runs := []recordedRun{
		{Sampling: string(Poisson), Seed: 1},
		{Sampling: string(RandomAllocation), Seed: 2},
		{Sampling: string(Poisson), Seed: 3, Fault: "clipping to twice the norm", Finding: "clipping"},
		{Sampling: string(Poisson), Seed: 4, Fault: "noise of the mean on the sum", Finding: "noise"},
		{Sampling: string(Poisson), Seed: 5, Fault: "reused noise", Finding: "reused noise"},
		{Sampling: string(Poisson), Seed: 6, Fault: "shuffled for Poisson", Finding: "sampling"},
		{Sampling: string(Poisson), Seed: 7, Fault: "last batch dropped", Finding: "steps"},
		{Sampling: string(Poisson), Seed: 8, Fault: "noise of each micro-batch", Finding: "noise"},
	}
	if n, err := strconv.ParseUint(os.Getenv("DPARETO_RECORD_RUNS"), 10, 32); err == nil {
		runs = nil
		for seed := range n {
			runs = append(runs, recordedRun{Sampling: string(Poisson), Seed: 1000 + seed})
		}
	}
	for _, run := range runs {
		got.Runs = append(got.Runs, record(t, &got, d, run))
	}
	if file := os.Getenv("DPARETO_RECORD"); file != "" {
		text, err := json.Marshal(got)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, append(text, '\n'), 0o600))
		return
	}
	text, err := os.ReadFile(recordedSteps)
	require.NoError(t, err)
	var want recording
	require.NoError(t, json.Unmarshal(text, &want))
	if len(want.Runs) != len(got.Runs) {
		t.Fatalf("recorded are %d runs, want %d", len(want.Runs), len(got.Runs))
	}
	for i, run := range got.Runs {
		if !reflect.DeepEqual(want.Runs[i].Lots, run.Lots) {
			t.Errorf("%s run %d: the recorded lots are others", run.Sampling, i)
		}
		for k, weights := range run.Weights {
			if !floats.EqualApprox(want.Runs[i].Weights[k], weights, 1e-6) {
				t.Fatalf("%s run %d: the recorded weights of step %d are others", run.Sampling, i, k)
			}
		}
	}
}

func row64(values []float32) []float64 {
	result := make([]float64, len(values))
	for i, v := range values {
		result[i] = math.Round(float64(v)*100) / 100
	}
	return result
}
