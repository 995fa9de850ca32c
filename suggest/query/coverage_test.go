package query_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/query"
	"github.com/dpareto/dpareto/suggest/space"
)

// roughError draws an error rate over [0, 1]²: the logistic function of a Gaussian process
// with a Matérn 5/2 kernel of length scale 0.4 and variance 1, by random features (Rahimi
// and Recht, "Random features for large-scale kernel machines", 2007).
func roughError(rng *rand.Rand) func(u, v float64) float64 {
	const features = 400
	var frequency [features][2]float64
	var phase [features]float64
	for i := range frequency {
		chi := 0.0 // the spectrum is a multivariate t of 5 degrees of freedom
		for range 5 {
			z := rng.NormFloat64()
			chi += z * z
		}
		scale := math.Sqrt(5/chi) / 0.4
		frequency[i] = [2]float64{scale * rng.NormFloat64(), scale * rng.NormFloat64()}
		phase[i] = 2 * math.Pi * rng.Float64()
	}
	return func(u, v float64) float64 {
		sum := 0.0
		for i, w := range frequency {
			sum += math.Cos(w[0]*u + w[1]*v + phase[i])
		}
		return 1 / (1 + math.Exp(0.5-math.Sqrt(2.0/features)*sum))
	}
}

// The value that is to hold with a probability of 0.9 holds about as often for the
// configuration that was chosen for its value, among those that were run once. A model for searching, which expects little noise, chooses lucky ones, and is right
// less often.
func TestConfidenceHoldsForWhatIsChosen(t *testing.T) {
	const studies, trials, noise, confidence = 100, 60, 0.4, 0.9
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "epsilon", Kind: space.Double, Min: 0.1, Max: 10, Scale: space.Log},
			{Name: "x", Kind: space.Double, Min: 0, Max: 1},
		}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10, Known: func(q space.Point) float64 { return q[0] }},
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1, SampleSize: 1000},
		},
	}
	held := make(map[bool]int) // by ForReading
	for study := range studies {
		rng := rand.New(rand.NewPCG(uint64(study), 7))
		rough := roughError(rng)
		truth := func(q space.Point) float64 { return rough(math.Log(q[0]/0.1)/math.Log(100), q[1]) }
		h := new(suggest.History)
		for range trials {
			q := p.Space.Sample(rng)
			odds := truth(q) / (1 - truth(q)) * math.Exp(noise*rng.NormFloat64())
			h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: q, Values: []float64{q[0], math.Round(1000*odds/(1+odds)) / 1000}})
		}
		for _, forReading := range []bool{false, true} {
			m, err := model.Fit(t.Context(), p, h, model.Options{ForReading: forReading})
			require.NoError(t, err)
			q := query.Query{Optimize: 1, Bounds: []float64{2, unbounded}, Confidence: confidence}
			measured, ok := q.Measured(m)
			if !ok {
				t.Fatal("nothing was measured")
			}
			if truth(measured.Point) <= measured.Reached[1] {
				held[forReading]++
			}
		}
	}
	if held[true] < 0.8*studies || held[true] <= held[false] {
		t.Errorf("held for %d of %d, %d with a model for searching", held[true], studies, held[false])
	}
}
