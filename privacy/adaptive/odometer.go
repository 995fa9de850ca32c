package adaptive

import (
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/dpareto/dpareto/privacy"
)

// Odometer keeps a running account of mechanisms that are chosen one after another, each
// possibly from the outputs of the earlier ones, parameters included, without a budget
// declared in advance. With probability 1 − δ the privacy loss is at most ε of
// [Odometer.Guarantee] simultaneously at all times (Rogers, Roth, Ullman and Vadhan, "Privacy
// odometers and filters", 2016). Hence stopping before ε exceeds a value fixed in advance
// gives (that value, δ)-DP.
//
// With s_j the divergences at order α_j added up so far, and L the loss, Σ_j
// w_j·e^{(α_j−1)(L−s_j)} is a nonnegative supermartingale that starts at Σ_j w_j = 1, so that
// it exceeds 1/δ at any time with probability at most δ (Ville's inequality; Whitehouse,
// Ramdas, Rogers and Wu, "Fully-adaptive composition in differential privacy", 2023, use such
// mixtures; Lécuyer, "Practical privacy filters and odometers with Rényi differential
// privacy", 2021, has the same at the price of a grid of budgets). ε is the loss at which it
// does, usually 5 to 40 percent larger than by Rényi divergences for parameters fixed in advance.
// An Odometer is safe for concurrent use.
type Odometer struct {
	guarantee privacy.Guarantee
	orders    []float64 // rising

	mu    sync.Mutex // guards spent and steps
	spent []float64  // ρ at each order, +Inf where it no longer matters
	steps int64
}

// NewOdometer returns an odometer for a δ in (0, 1). The Rényi orders > 1 weigh
// the same; the default is 1 + 2^{k/2} for k = −14, ..., 20, which serves ε from 0.02 to
// thousands. Fewer orders around the best one give a smaller ε. The errors are FieldErrors for
// "delta", "adjacency" and "orders".
func NewOdometer(delta float64, adjacency privacy.Adjacency, orders ...float64) (*Odometer, error) {
	errs := []error{privacy.CheckDelta(delta), privacy.CheckAdjacency(adjacency)}
	for _, order := range orders {
		if !(order > 1) || math.IsInf(order, 1) {
			errs = append(errs, privacy.FieldErrorf("orders", "must exceed 1 and be finite, one is %g", order))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	o := &Odometer{orders: slices.Sorted(slices.Values(orders))}
	if len(orders) == 0 {
		for k := -14.0; k <= 20; k++ {
			o.orders = append(o.orders, 1+math.Exp2(k/2))
		}
	}
	o.spent = make([]float64, len(o.orders))
	o.guarantee = privacy.Guarantee{
		Delta: delta, Adjacency: adjacency, Accountant: "rdp_odometer",
		Assumptions: []privacy.Assumption{privacy.PremiseAdmission.Assume("every access to the data was recorded by the odometer before it happened")},
	}
	return o, nil
}

// Spend records steps >= 1 runs of m and returns the guarantee with them. Call it before they
// run. The errors are m's validation error, FieldErrors for "mechanism", "steps" and "adjacency",
// and the *UnsupportedError of [privacy.Renyi]; then nothing is recorded.
func (o *Odometer) Spend(m privacy.Mechanism, steps int64) (privacy.Guarantee, error) {
	if err := privacy.CheckRuns(o.guarantee, m, steps); err != nil {
		return privacy.Guarantee{}, err
	}
	curve, err := privacy.Renyi(m)
	if err != nil {
		return privacy.Guarantee{}, err
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	o.spend(curve, steps)
	o.steps += steps
	return o.current(), nil
}

// spend adds steps runs to the orders that can matter. Divergences rise with the order, at every
// step. An order whose divergence exceeds the ε of a lower order therefore exceeds it for good, and
// so do all higher orders, whose divergences take the longest to compute. They add next to nothing
// to the mixture. Leaving them out can only raise ε.
func (o *Odometer) spend(curve privacy.RenyiCurve, steps int64) {
	const negligible = 50 // minus the logarithm of a term of the mixture
	target := o.target()
	epsilon := math.Inf(1)
	for j, order := range o.orders {
		if !math.IsInf(o.spent[j], 1) {
			o.spent[j] += float64(steps) * curve.RDP(order)
		}
		epsilon = math.Min(epsilon, o.spent[j]+target/(order-1))
		if (order-1)*(o.spent[j]-epsilon) > negligible {
			for k := j; k < len(o.orders); k++ {
				o.spent[k] = math.Inf(1)
			}
			return
		}
	}
}

// Guarantee returns the bound on the loss of the runs recorded so far.
func (o *Odometer) Guarantee() privacy.Guarantee {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.current()
}

// current returns the guarantee; o.mu must be held.
func (o *Odometer) current() privacy.Guarantee {
	g := o.guarantee
	g.Steps = o.steps
	if o.steps == 0 {
		return g
	}
	g.Epsilon, g.Order = o.epsilon()
	if math.IsInf(g.Epsilon, 1) {
		return g.Warn(privacy.WarnVacuous, "epsilon is infinite: nothing is guaranteed")
	}
	return g
}

// target returns log(1/(w·δ)), w being the weight of an order.
func (o *Odometer) target() float64 {
	return math.Log(float64(len(o.orders))) - math.Log(o.guarantee.Delta)
}

// epsilon returns the ε with Σ_j w_j·e^{(α_j−1)(ε−s_j)} = 1/δ, from above, and the order of its
// largest term.
func (o *Odometer) epsilon() (epsilon, order float64) {
	const rounding = 1e-12 // bounds the relative rounding error of divergences, sums and Newton's method
	target := o.target()
	epsilon = math.Inf(1) // at most where one term alone suffices
	for j, a := range o.orders {
		if e := o.spent[j] + target/(a-1); e < epsilon {
			epsilon, order = e, a
		}
	}
	if math.IsInf(epsilon, 1) {
		return epsilon, 0
	}
	// The logarithm of the sum is convex and rises: Newton's iterates come from
	// above.
	for range 100 {
		var sum, slope float64
		for j, a := range o.orders {
			term := math.Exp((a-1)*(epsilon-o.spent[j]) - target)
			sum += term
			slope += (a - 1) * term
		}
		next := epsilon - math.Log(sum)*sum/slope
		if !(next < epsilon*(1-1e-14)) {
			break
		}
		epsilon = next
	}
	return math.Max(0, epsilon*(1+rounding)), order
}
