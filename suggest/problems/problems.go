package problems

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/space"
)

// Problem is a test problem. It is immutable and safe for concurrent use.
type Problem struct {
	suggest.Problem

	// Name is the problem's stable lower-case identifier.
	Name string

	// Evaluate returns the exact objectives, then the constraints, at a point of the
	// space.
	Evaluate func(space.Point) []float64

	// Noise holds the standard deviation of the noise of each value, or is nil where
	// there is none.
	Noise []float64

	// MaxHypervolume is the hypervolume of the true front, or the largest that is
	// known where no closed form is. NaN if unknown.
	MaxHypervolume float64
}

// Reference returns the anti-ideal point.
func (p *Problem) Reference() []float64 {
	reference := make([]float64, len(p.Objectives))
	for j := range reference {
		reference[j] = p.Objectives[j].Reference
	}
	return reference
}

// Observe evaluates q once. Noise is Gaussian and drawn from rng, which is not used
// without noise; its standard deviations are known and reported.
func (p *Problem) Observe(q space.Point, rng *rand.Rand) suggest.Evaluation {
	e := suggest.Evaluation{Point: q, Values: p.Evaluate(q), Runs: 1}
	e.StdErrors = make([]float64, len(e.Values))
	for j, sd := range p.Noise {
		e.Values[j] += sd * rng.NormFloat64()
		e.StdErrors[j] = sd
	}
	return e
}

// WithNoise returns the problem with Gaussian noise in every value. Its standard deviations are
// a share of the standard deviations of the values over the space, which 1024 points of it
// estimate.
func (p *Problem) WithNoise(share float64) *Problem {
	const points = 1024
	sequence := sample.NewHalton(len(p.Space.Parameters), 1)
	u := make([]float64, len(p.Space.Parameters))
	var values [][]float64 // by metric
	for k := range uint64(points) {
		sequence.At(u, k)
		for j, v := range p.Evaluate(sample.At(p.Space, u)) {
			if j == len(values) {
				values = append(values, nil)
			}
			values[j] = append(values[j], v)
		}
	}
	noisy := *p
	noisy.Noise = make([]float64, len(values))
	for j := range values {
		noisy.Noise[j] = share * stat.StdDev(values[j], nil)
	}
	return &noisy
}

// Acceptable reports whether values, as Evaluate returns them, meet the constraints.
func (p *Problem) Acceptable(values []float64) bool {
	for i := range p.Constraints {
		c := &p.Constraints[i]
		if v := values[len(p.Objectives)+i]; !(c.Lower <= v && v <= c.Upper) {
			return false
		}
	}
	return true
}

// constructors makes the problems by name, in the order of Names.
var constructors = []struct {
	name string
	make func() *Problem
}{
	{"branin_currin", BraninCurrin},
	{"noisy_branin_currin", NoisyBraninCurrin},
	{"zdt1", func() *Problem { return ZDT1(4) }},
	{"zdt2", func() *Problem { return ZDT2(4) }},
	{"zdt3", func() *Problem { return ZDT3(4) }},
	{"dtlz2", func() *Problem { return DTLZ2(6, 2) }},
	{"vehicle_safety", VehicleSafety},
	{"dh1", func() *Problem { return DH1(2) }},
	{"dtlz7", func() *Problem { return DTLZ7(4) }},
	{"poloni", Poloni},
	{"fonseca", func() *Problem { return Fonseca(4) }},
	{"fonseca20", func() *Problem { return Fonseca(20) }},
	{"kursawe", Kursawe},
	{"dent", Dent},
	{"bowls", Bowls},
	{"constrained_branin_currin", ConstrainedBraninCurrin},
	{"c2_dtlz2", func() *Problem { return C2DTLZ2(4, 2) }},
	{"constr", Constr},
	{"bnh", BNH},
	{"srn", SRN},
	{"osy", OSY},
}

// Names returns the names of all problems.
func Names() []string {
	names := make([]string, len(constructors))
	for i, c := range constructors {
		names[i] = c.name
	}
	return names
}

// ByName returns the problem of a name in its usual dimension, or false if there is
// none. Case, hyphens and underscores do not matter: BraninCurrin is branin_currin.
func ByName(name string) (*Problem, bool) {
	i := slices.IndexFunc(constructors, func(c struct {
		name string
		make func() *Problem
	},
	) bool {
		return plain(c.name) == plain(name)
	})
	if i < 0 {
		return nil, false
	}
	return constructors[i].make(), true
}

func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// box returns a space of dim doubles x0, x1, ... between lo and hi.
func box(dim int, lo, hi float64) *space.Space {
	s := &space.Space{Parameters: make([]space.Parameter, dim)}
	for i := range s.Parameters {
		s.Parameters[i] = space.Parameter{Name: fmt.Sprintf("x%d", i), Kind: space.Double, Min: lo, Max: hi}
	}
	return s
}

// problem returns the problem of minimising f over s.
func problem(name string, s *space.Space, reference []float64, maximum float64, f func(space.Point) []float64) *Problem {
	p := &Problem{Name: name, Evaluate: f, MaxHypervolume: maximum}
	p.Space = s
	for j, r := range reference {
		p.Objectives = append(p.Objectives, suggest.Objective{Name: fmt.Sprintf("f%d", j+1), Goal: suggest.Minimize, Reference: r})
	}
	return p
}

// atLeast panics if a dimension is too small.
func atLeast(dim, least int) {
	if dim < least {
		panic("problems: dimension too small")
	}
}

// BraninCurrin returns the Branin and Currin functions over [0,1]², Branin's domain
// being scaled to it, with the reference (18, 6): a multi-objective problem of Belakaria,
// Deshwal, Doppa, "Max-value Entropy Search for Multi-Objective Bayesian Optimization"
// (NeurIPS 2019). The maximal hypervolume is BoTorch's, found by a long evolutionary search
// (its test functions, Daulton et al. 2020).
func BraninCurrin() *Problem {
	return problem("branin_currin", box(2, 0, 1), []float64{18, 6}, 59.36011874867746, func(x space.Point) []float64 {
		return []float64{branin(15*x[0]-5, 15*x[1]), currin(x[0], x[1])}
	})
}

// NoisyBraninCurrin is [BraninCurrin] with noise of the known standard deviations 15.19
// and 0.63, a twentieth of the objectives' ranges: the problem of Daulton, Balandat,
// Bakshy, "Parallel Bayesian Optimization of Multiple Noisy Objectives with Expected
// Hypervolume Improvement" (NeurIPS 2021).
func NoisyBraninCurrin() *Problem {
	p := BraninCurrin()
	p.Name = "noisy_branin_currin"
	p.Noise = []float64{15.19, 0.63}
	return p
}

// branin is the function of Branin (1972) over [-5,10] x [0,15].
func branin(u, v float64) float64 {
	const pi = math.Pi
	a := v - 5.1/(4*pi*pi)*u*u + 5*u/pi - 6
	return a*a + 10*(1-1/(8*pi))*math.Cos(u) + 10
}

// currin is the exponential function of Currin et al. (1991) over [0,1]².
func currin(a, b float64) float64 {
	factor := 1 - math.Exp(-1/(2*b)) // 1 at b = 0
	return factor * (2300*a*a*a + 1900*a*a + 2092*a + 60) / (100*a*a*a + 500*a*a + 4*a + 20)
}

// zdt returns a problem of Zitzler, Deb, Thiele, "Comparison of Multiobjective
// Evolutionary Algorithms: Empirical Results", Evolutionary Computation 8(2), 2000: over
// [0,1]^dim, f1 = x0 and f2 = g h(f1, g) with g = 1 + 9 mean(x1, x2, ...). The front is at
// g = 1. The reference is (11, 11).
func zdt(name string, dim int, maximum float64, h func(f1, g float64) float64) *Problem {
	atLeast(dim, 2)
	return problem(name, box(dim, 0, 1), []float64{11, 11}, maximum, func(x space.Point) []float64 {
		sum := 0.0
		for _, v := range x[1:] {
			sum += v
		}
		g := 1 + 9*sum/float64(dim-1)
		return []float64{x[0], g * h(x[0], g)}
	})
}

// ZDT1 returns the problem of Zitzler et al. (2000, Eq. 7), whose front is convex:
// h = 1 - √(f1/g). It panics if dim is less than 2.
func ZDT1(dim int) *Problem {
	return zdt("zdt1", dim, 120+2.0/3, func(f1, g float64) float64 { return 1 - math.Sqrt(f1/g) })
}

// ZDT2 returns the problem of Zitzler et al. (2000, Eq. 8), whose front is concave:
// h = 1 - (f1/g)². It panics if dim is less than 2.
func ZDT2(dim int) *Problem {
	return zdt("zdt2", dim, 120+1.0/3, func(f1, g float64) float64 { return 1 - f1/g*(f1/g) })
}

// ZDT3 returns the problem of Zitzler et al. (2000, Eq. 9), whose front consists of five
// pieces: h = 1 - √(f1/g) - (f1/g) sin(10π f1). The maximal hypervolume is BoTorch's. It
// panics if dim is less than 2.
func ZDT3(dim int) *Problem {
	return zdt("zdt3", dim, 128.77811613069076, func(f1, g float64) float64 {
		return 1 - math.Sqrt(f1/g) - f1/g*math.Sin(10*math.Pi*f1)
	})
}

// DTLZ2 returns the problem of Deb, Thiele, Laumanns, Zitzler, "Scalable
// Multi-Objective Optimization Test Problems" (CEC 2002, §6.2): over [0,1]^dim, a front
// that is the part of the unit sphere with positive coordinates, reached where
// g = Σ (xi - 1/2)² over the last dim - objectives + 1 parameters is 0. The reference is
// 1.1 in every objective. It panics unless 2 <= objectives <= dim.
func DTLZ2(dim, objectives int) *Problem {
	atLeast(objectives, 2)
	atLeast(dim, objectives)
	m := float64(objectives)
	reference := slices.Repeat([]float64{1.1}, objectives)
	ball := math.Pow(math.Pi, m/2) / math.Gamma(m/2+1) / math.Pow(2, m) // the part of the unit ball
	return problem("dtlz2", box(dim, 0, 1), reference, math.Pow(1.1, m)-ball, func(x space.Point) []float64 {
		angles := x[:objectives-1]
		g := 0.0
		for _, v := range x[len(angles):] {
			g += (v - 0.5) * (v - 0.5)
		}
		f := make([]float64, objectives)
		radius := 1 + g
		for i, v := range angles {
			f[objectives-1-i] = radius * math.Sin(v*math.Pi/2)
			radius *= math.Cos(v * math.Pi / 2)
		}
		f[0] = radius
		return f
	})
}

// DTLZ7 returns the problem of Deb et al. (2002, §6.7) in two objectives, whose front consists
// of two pieces: f1 = x0 and f2 = (1 + g) (2 - f1 (1 + sin 3πf1)/(1 + g)) with
// g = 1 + 9 mean(x1, x2, ...), which is 1 on the front. The reference is (15, 15), as in
// Daulton, Balandat, Bakshy (NeurIPS 2020). It panics if dim is less than 2.
func DTLZ7(dim int) *Problem {
	atLeast(dim, 2)
	return problem("dtlz7", box(dim, 0, 1), []float64{15, 15}, 189.4307733, func(x space.Point) []float64 {
		sum := 0.0
		for _, v := range x[1:] {
			sum += v
		}
		g := 1 + 9*sum/float64(dim-1)
		return []float64{x[0], (1+g)*2 - x[0]*(1+math.Sin(3*math.Pi*x[0]))}
	})
}

// Poloni returns the problem of Poloni, Giurgevich, Onesti, Pediroda, "Hybridization of a
// multi-objective genetic algorithm, a neural network and a classical optimizer for a complex
// design problem in fluid dynamics", Comput. Methods Appl. Mech. Engrg. 186, 2000: over
// [-π,π]², the squared distance of two trigonometric sums from their values at (1, 2), plus 1,
// and from (-3, -1). The front consists of two pieces, of which the larger is a small region.
// The reference is (20, 30). The maximal hypervolume belongs to a front that was found on a
// grid of 3001² points and refined at random.
func Poloni() *Problem {
	sums := func(x, y float64) (a, b float64) {
		return 0.5*math.Sin(x) - 2*math.Cos(x) + math.Sin(y) - 1.5*math.Cos(y),
			1.5*math.Sin(x) - math.Cos(x) + 2*math.Sin(y) - 0.5*math.Cos(y)
	}
	a, b := sums(1, 2)
	return problem("poloni", box(2, -math.Pi, math.Pi), []float64{20, 30}, 536.091, func(x space.Point) []float64 {
		u, v := sums(x[0], x[1])
		return []float64{1 + (a-u)*(a-u) + (b-v)*(b-v), (x[0]+3)*(x[0]+3) + (x[1]+1)*(x[1]+1)}
	})
}

// Fonseca returns the problem of Fonseca, Fleming, "Multiobjective genetic algorithms made easy:
// selection, sharing and mating restriction" (GALESIA 1995): over [-4,4]^dim, 1 - exp(-r²) with the
// distances r from two points that are 2 apart on the diagonal. Far from both points the objectives
// are 1, to the last digit in many dimensions. The reference is (1.1, 1.1). It panics if dim is less
// than 1.
func Fonseca(dim int) *Problem {
	atLeast(dim, 1)
	name := "fonseca"
	if dim != 4 {
		name = fmt.Sprintf("fonseca%d", dim)
	}
	centre := 1 / math.Sqrt(float64(dim))
	return problem(name, box(dim, -4, 4), []float64{1.1, 1.1}, 0.552115332, func(x space.Point) []float64 {
		a, b := 0.0, 0.0
		for _, v := range x {
			a += (v - centre) * (v - centre)
			b += (v + centre) * (v + centre)
		}
		return []float64{-math.Expm1(-a), -math.Expm1(-b)}
	})
}

// Kursawe returns the problem of Kursawe, "A Variant of Evolution Strategies for Vector Optimization"
// (PPSN 1990), over [-5,5]³. Its front consists of a point and three pieces. The reference is (-14, 1).
// The maximal hypervolume was found by a long evolutionary search.
func Kursawe() *Problem {
	return problem("kursawe", box(3, -5, 5), []float64{-14, 1}, 37.31553, func(x space.Point) []float64 {
		a, b := 0.0, 0.0
		for i, v := range x {
			if i > 0 {
				a -= 10 * math.Exp(-0.2*math.Hypot(x[i-1], v))
			}
			b += math.Pow(math.Abs(v), 0.8) + 5*math.Sin(v*v*v)
		}
		return []float64{a, b}
	})
}

// Dent returns the problem of Schütze, Laumanns, Tantar, Coello Coello, Talbi, "Computing Gap Free Pareto
// Front Approximations with Stochastic Search Algorithms", Evolutionary Computation 18(1), 2010: smooth
// functions over [-1.5,1.5]², whose front is concave in the middle. The reference is (4.5, 4.5).
func Dent() *Problem {
	return problem("dent", box(2, -1.5, 1.5), []float64{4.5, 4.5}, 13.1849197577, func(x space.Point) []float64 {
		sum, difference := x[0]+x[1], x[0]-x[1]
		common := 0.5*(math.Sqrt(1+sum*sum)+math.Sqrt(1+difference*difference)) + 0.85*math.Exp(-difference*difference)
		return []float64{common + 0.5*difference, common - 0.5*difference}
	})
}

// Bowls returns the squared distances from two points of [0,1]⁵, with other weights of the coordinates in
// each: the smoothest functions that conflict. The reference is (1, 1).
func Bowls() *Problem {
	centres := [2][5]float64{{0.2, 0.7, 0.35, 0.6, 0.45}, {0.75, 0.4, 0.5, 0.15, 0.8}}
	weights := [2][5]float64{{1, 2, 0.5, 1, 0.2}, {2, 0.5, 1, 0.3, 1}}
	return problem("bowls", box(5, 0, 1), []float64{1, 1}, 0.927811922, func(x space.Point) []float64 {
		f := make([]float64, 2)
		for k := range f {
			for i, v := range x {
				f[k] += weights[k][i] * (v - centres[k][i]) * (v - centres[k][i])
			}
		}
		return f
	})
}

// VehicleSafety returns the problem of Liao, Li, Yang, Zhang, Li, "Multiobjective
// optimization for crash safety design of vehicles using stepwise regression model",
// Struct. Multidisc. Optim. 35, 2008: mass, acceleration and intrusion over five
// thicknesses in [1,3] mm, by quadratic response surfaces. It is RE3-5-4 of Tanabe,
// Ishibuchi, "An easy-to-use real-world multi-objective optimization problem suite",
// Applied Soft Computing 89, 2020. The reference and the maximal hypervolume, found by a
// long evolutionary search, are BoTorch's.
func VehicleSafety() *Problem {
	s := box(5, 1, 3)
	reference := []float64{1864.72022, 11.81993945, 0.2903999384}
	return problem("vehicle_safety", s, reference, 246.81607081187002, func(x space.Point) []float64 {
		a, b, c, d, e := x[0], x[1], x[2], x[3], x[4]
		return []float64{
			1640.2823 + 2.3573285*a + 2.3220035*b + 4.5688768*c + 7.7213633*d + 4.4559504*e,
			6.5856 + 1.15*a - 1.0427*b + 0.9738*c + 0.8364*d - 0.3695*a*d + 0.0861*a*e + 0.3628*b*d -
				0.1106*a*a - 0.3437*c*c + 0.1764*d*d,
			-0.0551 + 0.0181*a + 0.1024*b + 0.0421*c - 0.0073*a*b + 0.024*b*c - 0.0118*b*d - 0.0204*c*d -
				0.008*c*e - 0.0241*b*b + 0.0109*d*d,
		}
	})
}

// DH1 returns the problem of Deb, Gupta, "Searching for Robust Pareto-Optimal Solutions
// in Multi-objective Optimization" (EMO 2005, test problem 1): x0 in [0,1] and the others
// in [-1,1], f1 = x0 and f2 = 1 - x0² + s (1/(0.2 + x0) + x0²) with
// s = Σ (10 + xi² - 10 cos 4π xi). The front is at s = 0. The reference is (1.1, 1.1). It
// panics if dim is less than 2.
func DH1(dim int) *Problem {
	atLeast(dim, 2)
	s := box(dim, -1, 1)
	s.Parameters[0].Min = 0
	// ∫₀¹ (1.1 - (1 - x²)) dx below the curve's end, and 0.1 x 1.1 beyond it.
	const maximum = 0.1 + 1.0/3 + 0.11
	return problem("dh1", s, []float64{1.1, 1.1}, maximum, func(x space.Point) []float64 {
		sum := 0.0
		for _, v := range x[1:] {
			sum += 10 + v*v - 10*math.Cos(4*math.Pi*v)
		}
		return []float64{x[0], 1 - x[0]*x[0] + sum*(1/(0.2+x[0])+x[0]*x[0])}
	})
}
