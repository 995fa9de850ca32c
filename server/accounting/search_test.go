package accounting

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
)

// searched is a privacy metric whose parameters are epochs, lot and noise, within a box as in
// the bundled studies.
type searched struct {
	name, spec string
	lot        [2]float64
	noise      [2]float64
	epochs     int64
}

var searches = []searched{
	{"adult", `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"32561","batch_size":"lot","noise_multiplier":"noise","epochs":"epochs"},"delta":1e-5` + replaceOne + `}`,
		[2]float64{8, 512}, [2]float64{0.1, 16}, 64},
	{"adult, variance", `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"40000","batch_size":"lot","noise_multiplier":"math.sqrt(noise)","epochs":"epochs"},"delta":1e-6,"accountant":"ACCOUNTANT_RDP","conversion":"CONVERSION_IMPROVED"` + replaceOne + `}`,
		[2]float64{8, 512}, [2]float64{0.1, 16}, 64},
	{"large lots", `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"1000","batch_size":"lot","noise_multiplier":"noise","epochs":"epochs"},"delta":1e-5` + replaceOne + `}`,
		[2]float64{100, 900}, [2]float64{1, 16}, 8},
	{"large lots, Poisson", `{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","dataset_size":"1000","batch_size":"lot","noise_multiplier":"noise","epochs":"epochs"},"delta":1e-5` + replaceOne + `}`,
		[2]float64{100, 900}, [2]float64{1, 16}, 8},
	{"large lots, Opacus", `{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_OPACUS","dataset_size":"1000","batch_size":"lot","noise_multiplier":"noise","epochs":"epochs"},"delta":1e-5` + addRemove + `}`,
		[2]float64{100, 900}, [2]float64{1, 16}, 8},
	{"large lots, TensorFlow Privacy", `{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_TENSORFLOW_PRIVACY","dataset_size":"1000","batch_size":"lot","noise_multiplier":"noise","epochs":"epochs"},"delta":1e-5` + addRemove + `}`,
		[2]float64{100, 900}, [2]float64{1, 16}, 8},
	{"probability", `{"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"1.0 / double(lot)","noise_multiplier":"noise","steps":"epochs * lot"},"delta":1e-5` + addRemove + `}`,
		[2]float64{2, 100}, [2]float64{1, 16}, 8},
	{"mnist", `{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"55000","batch_size":"600","noise_multiplier":"4.0","epochs":"epochs"},"delta":1e-5` + replaceOne + `}`,
		[2]float64{8, 512}, [2]float64{0.1, 16}, 100},
	{"Poisson", `{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","dataset_size":"30000","batch_size":"lot","noise_multiplier":"noise","epochs":"epochs"},"delta":1e-5,"accountant":"ACCOUNTANT_EXACT"` + addRemove + `}`,
		[2]float64{8, 2048}, [2]float64{0.3, 16}, 64},
	{"random allocation by steps", `{"random_allocation":{"steps_per_epoch":"lot","noise_multiplier":"noise","epochs":"epochs"},"delta":1e-5,"accountant":"ACCOUNTANT_EXACT"` + addRemove + `}`,
		[2]float64{40, 90}, [2]float64{0.7, 4}, 8},
	{"random allocation", `{"dp_sgd":{"sampling":"SAMPLING_RANDOM_ALLOCATION","dataset_size":"3000","batch_size":"lot","noise_multiplier":"noise","epochs":"epochs"},"delta":1e-5,"accountant":"ACCOUNTANT_EXACT"` + addRemove + `}`,
		[2]float64{32, 64}, [2]float64{0.7, 4}, 8},
	{"bands", `{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","dataset_size":"30000","batch_size":"lot","noise_multiplier":"noise","epochs":"epochs","bands":"lot > 256 ? 3 : 16"},"delta":1e-5` + addRemove + `}`,
		[2]float64{8, 2048}, [2]float64{0.3, 16}, 64},
}

func (s searched) named(values []float64) map[string]any {
	return map[string]any{"epochs": int64(values[0]), "lot": int64(values[1]), "noise": values[2]}
}

func (s searched) draw(rng *rand.Rand) []float64 {
	between := func(span [2]float64) float64 { return span[0] * math.Pow(span[1]/span[0], rng.Float64()) }
	return []float64{float64(1 + rng.Int64N(s.epochs)), math.Round(between(s.lot)), between(s.noise)}
}

func (s searched) compile(t testing.TB) *Function {
	environment, err := expression.NewEnvironment([]expression.Variable{{Name: "epochs"}, {Name: "lot"}, {Name: "noise", Type: expression.Double}})
	require.NoError(t, err)
	var fields invalid.Fields
	f := Compile("privacy", &fields, environment, spec(t, s.spec))
	require.NoError(t, fields.Err())
	return f
}

// Within 2 % below the limit, and above it where ε is well above.
func TestSearch(t *testing.T) {
	const limit, points = 10, 20
	for _, s := range searches {
		t.Run(s.name, func(t *testing.T) {
			f := s.compile(t)
			_, search := f.Search(s.named, limit)
			rng := rand.New(rand.NewPCG(3, 4))
			for range points {
				x := s.draw(rng)
				g, err := f.Guarantee(s.named(x))
				require.NoError(t, err)
				if got, want := search(x), g.GetEpsilon(); want <= limit && math.Abs(got-want) > 0.02*want || want > 2*limit && got < limit {
					t.Errorf("at %v: %g, exact %g", x, got, want)
				}
			}
		})
	}
}

// ε has no jumps where the number of steps per epoch changes.
func TestSearchIsSmooth(t *testing.T) {
	s := searches[0]
	f := s.compile(t)
	search, _ := f.Search(s.named, 10)
	last := search([]float64{10, 400, 2})
	for lot := 401.0; lot <= 512; lot++ {
		epsilon := search([]float64{10, lot, 2})
		if slope := math.Log(epsilon/last) / math.Log(lot/(lot-1)); !(slope > 0.4 && slope < 0.6) { // about √lot
			t.Errorf("lot %g: slope %g", lot, slope)
		}
		last = epsilon
	}
}

// What cannot be computed is infinitely bad, and other mechanisms have no stand-in.
func TestSearchOutside(t *testing.T) {
	s := searches[0]
	f := s.compile(t)
	search, _ := f.Search(s.named, 10)
	for _, x := range [][]float64{{0, 10, 1}, {1, 0, 1}, {1, 1e6, 1}, {1, 10, 0}, {1, 10, -1}, {1, 10, math.NaN()}} {
		if got := search(x); !math.IsInf(got, 1) {
			t.Errorf("at %v: %g", x, got)
		}
	}
	if search, _ := f.Search(s.named, 0); search != nil {
		t.Error("a limit of 0 has a stand-in")
	}
	for _, other := range []string{
		`{"gaussian":{"sensitivity":"1","standard_deviation":"noise"},"delta":1e-5` + replaceOne + `}`,
		`{"dp_sgd":{"sampling":"SAMPLING_SHUFFLED","dataset_size":"32561","batch_size":"lot","noise_multiplier":"noise","epochs":"epochs"},"delta":1e-5` + replaceOne + `}`,
	} {
		s.spec = other
		if search, _ := s.compile(t).Search(s.named, 10); search != nil {
			t.Errorf("%s has a stand-in", other)
		}
	}
}

// BenchmarkSearch compares candidates around one configuration, as a local search does,
// after the interpolant is filled there.
func BenchmarkSearch(b *testing.B) {
	for _, s := range searches {
		b.Run(s.name, func(b *testing.B) {
			search, _ := s.compile(b).Search(s.named, 10)
			rng := rand.New(rand.NewPCG(7, 8))
			points := make([][]float64, 256)
			for i := range points {
				points[i] = s.draw(rng)
				points[i][2] = math.Max(points[i][2], 0.8)
				search(points[i])
			}
			for i := 0; b.Loop(); i++ {
				search(points[i%len(points)])
			}
		})
	}
}

// BenchmarkGuarantee computes ε at the 64 epochs of one run: with the mechanism's curve from
// an earlier call, and without.
func BenchmarkGuarantee(b *testing.B) {
	for _, s := range searches {
		f := s.compile(b)
		at := func(i int) map[string]any { return s.named([]float64{float64(1 + i%int(s.epochs)), s.lot[1] / 2, 2}) }
		run := func(name string, before func()) {
			b.Run(s.name+"/"+name, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					before()
					require.NoError(b, require.ErrOf(f.Guarantee(at(i))))
				}
			})
		}
		run("kept", func() {})
		run("anew", func() { f.curves.Purge() })
	}
}

// Functions that account alike share what the search has computed, and no others do. The oldest are dropped.
func TestInterpolantsAreShared(t *testing.T) {
	s := searches[0]
	one := s.compile(t).interpolant(9)
	if again := s.compile(t).interpolant(9); one == nil || again != one {
		t.Error("two functions of one spec have different interpolants")
	}
	if other := s.compile(t).interpolant(8); other == one {
		t.Error("two limits share an interpolant")
	}
	differs := s
	for _, change := range []struct{ from, to string }{
		{`"delta":1e-5`, `"delta":1e-6`},
		{`"delta":1e-5`, `"delta":1e-5,"accountant":"ACCOUNTANT_RDP","conversion":"CONVERSION_IMPROVED"`},
		{`"SAMPLING_FIXED_SIZE"`, `"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED"`},
	} {
		differs.spec = strings.Replace(s.spec, change.from, change.to, 1)
		if other := differs.compile(t).interpolant(9); other == one {
			t.Errorf("with %s the interpolant is the same", change.to)
		}
	}
	shared := sharedInterpolants{kept: newCache[interpolantKey, *privacy.Interpolant](maxInterpolants)}
	made := 0
	get := func(limit int) {
		shared.get(interpolantKey{limit: float64(limit)}, func() *privacy.Interpolant { made++; return new(privacy.Interpolant) })
	}
	for i := range maxInterpolants + 1 {
		get(i)
	}
	get(1)
	if made != maxInterpolants+1 || shared.kept.Len() != maxInterpolants {
		t.Errorf("%d made, %d kept", made, shared.kept.Len())
	}
	if get(0); made != maxInterpolants+2 {
		t.Error("the oldest is kept")
	}
}
