package accounting

import (
	"cmp"
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/stopping"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
)

// Bounds of nested specs: nothing that is meaningful comes near them.
const (
	maxNested = 1000 // mechanisms within a spec, over all levels
	maxDepth  = 4
)

// mechanism is a compiled mechanism.
type mechanism struct {
	// evaluate evaluates the expressions.
	evaluate func(variables map[string]any) (evaluated, error)
	// withLength is evaluate with another length, in the unit of the mechanism's length
	// field; nil without one.
	withLength func(variables map[string]any, length int64) (evaluated, error)

	dpSGD    *dpSGD // nil for other mechanisms than DP-SGD, also as random allocation
	training *dpSGD // dpSGD, or the dpSGD of a mechanism within, as Training describes; nil for none

	pure     bool // has a pure guarantee
	gaussian bool // is Gaussian noise without sampling
	pair     bool // has a dominating pair
	// is the best of a random number of runs
	selection bool

	publicSize bool // assumes privacy.PublicSizeAssumption
}

// evaluated is a mechanism of package privacy with how it is used.
type evaluated struct {
	mechanism   privacy.Mechanism
	runs        int64              // how often it is applied: steps of training, passes, or once
	datasetSize int64              // 0 where unknown
	lotSize     int64              // of shuffled lots, else 0
	derived     map[string]float64 // as in ComputeEpsilonResponse
}

// compiler collects violations while it compiles.
type compiler struct {
	fields      *invalid.Fields
	environment *expression.Environment
	root        string
	adjacency   privacy.Adjacency // of the whole
	depth       int               // of nested specs
	nested      int               // number of mechanisms within the whole
}

// admit counts further mechanisms within the whole, and reports whether there may be that
// many. It records the violation once.
func (c *compiler) admit(field string, n int) bool {
	if c.nested > maxNested {
		return false
	}
	if c.nested += n; c.nested > maxNested {
		c.addf(field, "bring the mechanisms of the spec to %d over all levels, of at most %d", c.nested, maxNested)
		return false
	}
	return true
}

// addf records a violation of a field below the spec.
func (c *compiler) addf(field, format string, args ...any) {
	c.fields.Addf(join(c.root, field), format, args...)
}

// mechanism compiles the mechanism of a spec at a path below the whole, or returns nil.
func (c *compiler) mechanism(path string, spec *dparetov1.PrivacySpec) *mechanism {
	before := c.fields.Len()
	var compiled *mechanism
	switch m := spec.GetMechanism().(type) {
	case *dparetov1.PrivacySpec_DpSgd:
		compiled = c.dpSGD(join(path, "dp_sgd"), m.DpSgd)
	case *dparetov1.PrivacySpec_SparseVector:
		compiled = c.sparseVector(join(path, "sparse_vector"), m.SparseVector)
	case *dparetov1.PrivacySpec_Gaussian:
		compiled = c.gaussian(join(path, "gaussian"), m.Gaussian)
	case *dparetov1.PrivacySpec_Laplace:
		compiled = c.laplace(join(path, "laplace"), m.Laplace)
	case *dparetov1.PrivacySpec_OutputPerturbation:
		compiled = c.outputPerturbation(join(path, "output_perturbation"), m.OutputPerturbation)
	case *dparetov1.PrivacySpec_ObjectivePerturbation:
		compiled = c.objectivePerturbation(join(path, "objective_perturbation"), m.ObjectivePerturbation)
	case *dparetov1.PrivacySpec_RepeatedSelection:
		compiled = c.repeatedSelection(join(path, "repeated_selection"), m.RepeatedSelection)
	case *dparetov1.PrivacySpec_Composition:
		compiled = c.composition(join(path, "composition"), m.Composition)
	case *dparetov1.PrivacySpec_RandomizedResponse:
		compiled = c.randomizedResponse(join(path, "randomized_response"), m.RandomizedResponse)
	case *dparetov1.PrivacySpec_Selection:
		compiled = c.selection(join(path, "selection"), m.Selection)
	case *dparetov1.PrivacySpec_ZeroConcentrated:
		compiled = c.zeroConcentrated(join(path, "zero_concentrated"), m.ZeroConcentrated)
	case *dparetov1.PrivacySpec_RandomAllocation:
		compiled = c.randomAllocation(join(path, "random_allocation"), m.RandomAllocation)
	case *dparetov1.PrivacySpec_DiscreteGaussian:
		compiled = c.discreteGaussian(join(path, "discrete_gaussian"), m.DiscreteGaussian)
	case *dparetov1.PrivacySpec_DiscreteLaplace:
		compiled = c.discreteLaplace(join(path, "discrete_laplace"), m.DiscreteLaplace)
	case *dparetov1.PrivacySpec_DpFtrl:
		compiled = c.dpFTRL(join(path, "dp_ftrl"), m.DpFtrl)
	default:
		c.addf(join(path, "mechanism"), "must be set")
	}
	if c.fields.Len() != before {
		return nil
	}
	return compiled
}

// replaceOne checks that the adjacency is the one that a mechanism is stated for.
func (c *compiler) replaceOne(what string) {
	if c.adjacency == privacy.AddRemove {
		c.addf("adjacency", "must be ADJACENCY_REPLACE_ONE for %s", what)
	}
}

// number and integer compile a required expression; optional ones are nil when unset.
func (c *compiler) number(field, source string) *expression.Number {
	return c.compile(field, c.environment.Number, source)
}

func (c *compiler) integer(field, source string) *expression.Number {
	return c.compile(field, c.environment.Integer, source)
}

func (c *compiler) optional(field, source string) *expression.Number {
	if source == "" {
		return nil
	}
	return c.number(field, source)
}

func (c *compiler) compile(field string, compile func(string) (*expression.Number, error), source string) *expression.Number {
	n, err := compile(source)
	if err != nil {
		c.addf(field, "%v", err)
	}
	return n
}

// dpSGD compiles DP-SGD with any of the samplers.
func (c *compiler) dpSGD(path string, m *dparetov1.DpSgdMechanism) *mechanism {
	d := &dpSGD{
		sampling:        m.GetSampling(),
		adjacency:       c.adjacency,
		path:            path,
		isNamed:         m.GetLearningRate() != "",
		noiseMultiplier: c.number(join(path, "noise_multiplier"), m.GetNoiseMultiplier()),
		countDeviation:  c.optional(join(path, fieldCountDeviation), m.GetClippingCountDeviation()),
	}
	switch d.sampling {
	case dparetov1.Sampling_SAMPLING_FIXED_SIZE, dparetov1.Sampling_SAMPLING_SHUFFLED, dparetov1.Sampling_SAMPLING_POISSON,
		dparetov1.Sampling_SAMPLING_RANDOM_ALLOCATION:
	default:
		c.addf(join(path, "sampling"), "must be SAMPLING_FIXED_SIZE, SAMPLING_POISSON, SAMPLING_SHUFFLED or SAMPLING_RANDOM_ALLOCATION, is %v", m.GetSampling())
	}
	switch length := m.GetLength().(type) {
	case *dparetov1.DpSgdMechanism_Epochs:
		d.unit, d.length = unitEpochs, c.integer(join(path, unitEpochs), length.Epochs)
	case *dparetov1.DpSgdMechanism_Steps:
		d.unit, d.length = unitSteps, c.integer(join(path, unitSteps), length.Steps)
	default:
		c.addf(join(path, "length"), "one of epochs and steps must be set")
	}
	c.lots(d, m)
	if m.GetBands() != "" {
		d.bands = c.integer(join(path, fieldBands), m.GetBands())
		if d.sampling != dparetov1.Sampling_SAMPLING_POISSON {
			c.addf(join(path, fieldBands), "is only for SAMPLING_POISSON")
		}
		for field, isSet := range map[string]bool{
			fieldPhysicalBatch: d.physicalBatch != nil, fieldRecordsPerUser: d.recordsPerUser != nil, fieldCountDeviation: d.countDeviation != nil,
		} {
			if isSet { // nothing is proven for both
				c.addf(join(path, field), "must be unset with bands")
			}
		}
		if d.isNamed { // what follows from it is for independent noise
			c.addf(join(path, "learning_rate"), "must be unset with bands")
		}
	}
	return &mechanism{
		dpSGD:      d,
		training:   d,
		evaluate:   func(variables map[string]any) (evaluated, error) { return d.evaluate(variables, nil) },
		withLength: func(variables map[string]any, length int64) (evaluated, error) { return d.evaluate(variables, &length) },
		gaussian:   d.sampling == dparetov1.Sampling_SAMPLING_SHUFFLED,
		pair:       true,
		publicSize: d.datasetSize != nil && d.adjacency == privacy.AddRemove,
	}
}

// lots compiles the sizes of data and lots, or what Poisson sampling has in their place.
func (c *compiler) lots(d *dpSGD, m *dparetov1.DpSgdMechanism) {
	isPoisson := d.sampling == dparetov1.Sampling_SAMPLING_POISSON
	convention := m.GetConvention()
	if m.GetPhysicalBatchSize() != "" {
		d.physicalBatch = c.integer(join(d.path, fieldPhysicalBatch), m.GetPhysicalBatchSize())
		switch {
		case !isPoisson:
			c.addf(join(d.path, fieldPhysicalBatch), "is only for SAMPLING_POISSON")
		case m.GetDatasetSize() == "":
			c.addf(join(d.path, fieldPhysicalBatch), "must be unset without dataset_size: how often lots are too large follows from it")
		}
	}
	if m.GetRecordsPerUser() != "" {
		d.recordsPerUser = c.integer(join(d.path, fieldRecordsPerUser), m.GetRecordsPerUser())
		switch {
		case !isPoisson || d.adjacency != privacy.AddRemove:
			c.addf(join(d.path, fieldRecordsPerUser), "is only for SAMPLING_POISSON under ADJACENCY_ADD_REMOVE")
		case d.physicalBatch != nil:
			c.addf(join(d.path, fieldRecordsPerUser), "must be unset with physical_batch_size")
		}
	}
	if m.GetSamplingProbability() != "" {
		d.probability = c.number(join(d.path, "sampling_probability"), m.GetSamplingProbability())
		if m.GetDatasetSize() != "" {
			d.datasetSize = c.integer(join(d.path, "dataset_size"), m.GetDatasetSize())
		}
		switch {
		case !isPoisson:
			c.addf(join(d.path, "sampling_probability"), "is only for SAMPLING_POISSON")
		case d.unit == unitEpochs:
			c.addf(join(d.path, unitEpochs), "must be unset with sampling_probability: set steps")
		}
		if m.GetBatchSize() != "" {
			c.addf(join(d.path, "batch_size"), "must be unset with sampling_probability")
		}
		if convention != dparetov1.Convention_CONVENTION_UNSPECIFIED {
			c.addf(join(d.path, "convention"), "must be unset with sampling_probability")
		}
		return
	}
	d.datasetSize = c.integer(join(d.path, "dataset_size"), m.GetDatasetSize())
	d.batchSize = c.integer(join(d.path, "batch_size"), m.GetBatchSize())
	d.convention = conventions[convention]
	switch {
	case isPoisson && d.convention == 0:
		c.addf(join(d.path, "convention"), "must be CONVENTION_ROUNDED, CONVENTION_OPACUS or CONVENTION_TENSORFLOW_PRIVACY for SAMPLING_POISSON, is %v; "+
			"or set the sampling probability", convention)
	case !isPoisson && convention != dparetov1.Convention_CONVENTION_UNSPECIFIED:
		c.addf(join(d.path, "convention"), "is only for SAMPLING_POISSON")
	}
}

var conventions = map[dparetov1.Convention]privacy.Convention{
	dparetov1.Convention_CONVENTION_ROUNDED:            privacy.RoundedEpochs,
	dparetov1.Convention_CONVENTION_OPACUS:             privacy.OpacusEpochs,
	dparetov1.Convention_CONVENTION_TENSORFLOW_PRIVACY: privacy.TensorFlowEpochs,
}

// fieldBands is the number of bands of correlated noise.
const fieldBands = "bands"

// Units of the length of a run.
const (
	unitEpochs = "epochs" // passes over the data
	unitSteps  = "steps"
)

// dpSGD evaluates a DpSgdMechanism.
type dpSGD struct {
	sampling                dparetov1.Sampling
	adjacency               privacy.Adjacency
	path, unit              string
	isNamed                 bool // its learning rate and clipping norm are
	noiseMultiplier, length *expression.Number
	// datasetSize and batchSize, with a convention for Poisson sampling; or probability, with
	// datasetSize or without.
	datasetSize, batchSize *expression.Number
	convention             privacy.Convention
	probability            *expression.Number
	physicalBatch          *expression.Number // nil for lots of any size
	recordsPerUser         *expression.Number // nil for guarantees for records
	countDeviation         *expression.Number // nil without an adaptive clipping norm
	stepsPerEpoch          *expression.Number // of a RandomAllocationMechanism, in the place of sizes
	bands                  *expression.Number // nil for independent noise
}

const (
	fieldPhysicalBatch  = "physical_batch_size"
	fieldRecordsPerUser = "records_per_user"
	fieldCountDeviation = "clipping_count_deviation"
)

// evaluate evaluates the mechanism, with a length in place of the spec's if one is given.
func (d *dpSGD) evaluate(variables map[string]any, length *int64) (evaluated, error) {
	e := evaluation{variables: variables}
	sigma := e.float("noise_multiplier", d.noiseMultiplier)
	var total int64
	if length != nil {
		total = *length
	} else {
		total = e.integer(d.unit, d.length)
	}
	if e.err == nil && total < 1 {
		e.failf(d.unit, "must be at least 1, is %d", total)
	}
	accounted := sigma
	if d.countDeviation != nil {
		if count := e.float(fieldCountDeviation, d.countDeviation); e.err == nil {
			accounted, e.err = privacy.JointNoise(sigma, count, d.adjacency)
		}
	}
	var r evaluated
	if d.probability != nil {
		r = d.withRate(&e, accounted, total)
	} else {
		r = d.withLotSize(&e, accounted, total)
	}
	if d.bands != nil {
		d.correlate(&e, &r)
	}
	if e.err == nil {
		e.err = r.mechanism.Validate()
	}
	if e.err != nil {
		names := map[string]string{"physical_batch": fieldPhysicalBatch}
		if d.sampling == dparetov1.Sampling_SAMPLING_RANDOM_ALLOCATION {
			names = map[string]string{"steps": "batch_size", "epochs": d.unit}
		}
		return evaluated{}, below(d.path, names, e.err)
	}
	r.derived["noise_multiplier"] = sigma
	return r, nil
}

// withRate returns the mechanism of Poisson sampling with a given probability.
func (d *dpSGD) withRate(e *evaluation, sigma float64, steps int64) evaluated {
	r := evaluated{runs: steps}
	if d.datasetSize != nil {
		if r.datasetSize = e.integer("dataset_size", d.datasetSize); e.err == nil && r.datasetSize < 1 {
			e.failf("dataset_size", "must be at least 1, is %d", r.datasetSize)
		}
	}
	q := e.float("sampling_probability", d.probability)
	r.mechanism = d.poisson(e, r.datasetSize, q, sigma)
	r.derived = map[string]float64{"sampling_probability": q}
	return r
}

// withLotSize returns the mechanism of lots whose size is given.
func (d *dpSGD) withLotSize(e *evaluation, sigma float64, total int64) evaluated {
	n, m := e.integer("dataset_size", d.datasetSize), e.integer("batch_size", d.batchSize)
	fixedSize := privacy.FixedSizeGaussian{DatasetSize: n, BatchSize: m, NoiseMultiplier: sigma}
	if e.err == nil {
		e.err = fixedSize.Validate() // the sizes, for any sampler
	}
	if e.err != nil {
		return evaluated{}
	}
	r := evaluated{runs: total, datasetSize: n}
	switch d.sampling {
	case dparetov1.Sampling_SAMPLING_SHUFFLED:
		if d.unit == unitSteps { // a pass has at least ⌊n/m⌋ lots
			r.runs = (total-1)/(n/m) + 1
		}
		r.lotSize = m
		r.mechanism = privacy.ShuffledGaussian{NoiseMultiplier: sigma, Steps: (n-1)/m + 1, EvenSteps: n%m == 0, Neighbours: d.adjacency}
		r.derived = map[string]float64{"passes": float64(r.runs)}
		return r
	case dparetov1.Sampling_SAMPLING_RANDOM_ALLOCATION:
		return d.allocated(e, fixedSize, total)
	case dparetov1.Sampling_SAMPLING_POISSON:
		var q float64
		q, e.err = d.convention.SamplingProbability(n, m)
		r.mechanism = d.poisson(e, n, q, sigma)
		r.derived = map[string]float64{"sampling_probability": q}
	default:
		r.mechanism = fixedSize
		if d.adjacency == privacy.AddRemove {
			r.mechanism = privacy.FixedSizeAddRemoveGaussian{DatasetSize: n, BatchSize: m, NoiseMultiplier: sigma}
		}
		r.derived = map[string]float64{"sampling_ratio": float64(m) / float64(n)}
	}
	convention := cmp.Or(d.convention, privacy.RoundedEpochs)
	if convention != privacy.TensorFlowEpochs { // whose epochs may have different numbers of steps
		perEpoch, err := convention.Steps(n, m, 1)
		r.derived["steps_per_epoch"], e.err = float64(perEpoch), cmp.Or(e.err, err)
	}
	if e.err == nil && d.unit == unitEpochs {
		r.runs, e.err = convention.Steps(n, m, total)
	}
	return r
}

// correlate replaces steps of Poisson sampling by rounds of correlated noise. One band leaves the steps.
func (d *dpSGD) correlate(e *evaluation, r *evaluated) {
	bands := e.integer(fieldBands, d.bands)
	step, ok := r.mechanism.(privacy.PoissonGaussian)
	if e.err != nil || !ok || bands == 1 {
		return
	}
	m := privacy.BandMF{
		Bands: bands, SamplingProbability: step.SamplingProbability, NoiseMultiplier: step.NoiseMultiplier,
		Neighbours: step.Neighbours, PublicSize: step.PublicSize,
	}
	if d.probability == nil && bands > 1 {
		if m.SamplingProbability *= float64(bands); m.SamplingProbability > 1 {
			e.failf(fieldBands, "must be at most the number of lots in the data, %g, is %d", 1/step.SamplingProbability, bands)
			return
		}
		r.derived["sampling_probability"] = m.SamplingProbability
	}
	r.mechanism = m
	r.runs = (r.runs-1)/max(1, bands) + 1
	r.derived["rounds"] = float64(r.runs)
}

// poisson returns a step of Poisson sampling of n records.
func (d *dpSGD) poisson(e *evaluation, n int64, q, sigma float64) privacy.Mechanism {
	if d.physicalBatch != nil {
		return privacy.TruncatedPoissonGaussian{
			DatasetSize: n, PhysicalBatch: e.integer(fieldPhysicalBatch, d.physicalBatch),
			SamplingProbability: q, NoiseMultiplier: d.multiplier(sigma), Neighbours: d.adjacency,
		}
	}
	if d.recordsPerUser != nil {
		return privacy.UserPoissonGaussian{
			RecordsPerUser: e.integer(fieldRecordsPerUser, d.recordsPerUser), SamplingProbability: q, NoiseMultiplier: sigma,
			PublicSize: d.datasetSize != nil,
		}
	}
	return privacy.PoissonGaussian{
		SamplingProbability: q, NoiseMultiplier: d.multiplier(sigma), Neighbours: d.adjacency, PublicSize: d.datasetSize != nil,
	}
}

// allocated returns the mechanism of random allocation. All epochs are one run, whose pair is more precise than the sum
// of the pairs of epochs.
func (d *dpSGD) allocated(e *evaluation, lots privacy.FixedSizeGaussian, total int64) evaluated {
	var perEpoch int64
	perEpoch, e.err = privacy.StepsPerEpoch(lots.DatasetSize, lots.BatchSize)
	if e.err != nil {
		return evaluated{}
	}
	epochs := total
	if d.unit == unitSteps {
		epochs = (total-1)/perEpoch + 1
	}
	return evaluated{
		runs: 1, datasetSize: lots.DatasetSize,
		mechanism: privacy.RandomAllocation{
			Steps: perEpoch, Picks: 1, NoiseMultiplier: d.multiplier(lots.NoiseMultiplier), Epochs: epochs,
			Neighbours: d.adjacency, PublicSize: d.adjacency == privacy.AddRemove,
		},
		derived: map[string]float64{"steps_per_epoch": float64(perEpoch)},
	}
}

// multiplier returns the noise multiplier of the library and of its interpolants. For lots that are drawn under either
// adjacency it is relative to the clipping norm, which is half of the sensitivity when a record is replaced. For lots of a fixed size it is relative to twice that norm: where a record is removed, another one takes its
// place.
func (d *dpSGD) multiplier(sigma float64) float64 {
	isEither := d.sampling == dparetov1.Sampling_SAMPLING_POISSON || d.sampling == dparetov1.Sampling_SAMPLING_RANDOM_ALLOCATION
	switch {
	case isEither && d.adjacency == privacy.ReplaceOne:
		return 2 * sigma
	case d.sampling == dparetov1.Sampling_SAMPLING_FIXED_SIZE && d.adjacency == privacy.AddRemove:
		return 0.5 * sigma
	}
	return sigma
}

func (c *compiler) sparseVector(path string, m *dparetov1.SparseVectorMechanism) *mechanism {
	cutoff := c.integer(join(path, "cutoff"), m.GetCutoff())
	scale := c.number(join(path, "noise_scale"), m.GetNoiseScale())
	return &mechanism{pure: true, pair: true, evaluate: once(path, nil, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
		svt := privacy.SparseVector{
			Cutoff:     e.integer("cutoff", cutoff),
			NoiseScale: e.float("noise_scale", scale),
			Neighbours: c.adjacency,
		}
		threshold, query := svt.Split()
		return svt, map[string]float64{"threshold_scale": threshold, "query_scale": query}
	})}
}

func (c *compiler) gaussian(path string, m *dparetov1.GaussianMechanism) *mechanism {
	sensitivity := c.number(join(path, "sensitivity"), m.GetSensitivity())
	sigma := c.number(join(path, "standard_deviation"), m.GetStandardDeviation())
	return &mechanism{gaussian: true, pair: true, evaluate: once(path, nil, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
		gaussian := privacy.Gaussian{
			Sensitivity:       e.float("sensitivity", sensitivity),
			StandardDeviation: e.float("standard_deviation", sigma),
			Neighbours:        c.adjacency,
		}
		return gaussian, map[string]float64{"mu": gaussian.GaussianMu()}
	})}
}

func (c *compiler) laplace(path string, m *dparetov1.LaplaceMechanism) *mechanism {
	sensitivity := c.number(join(path, "sensitivity"), m.GetSensitivity())
	scale := c.number(join(path, "scale"), m.GetScale())
	return &mechanism{pure: true, pair: true, evaluate: once(path, nil, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
		return privacy.Laplace{
			Sensitivity: e.float("sensitivity", sensitivity),
			Scale:       e.float("scale", scale),
			Neighbours:  c.adjacency,
		}, nil
	})}
}

func (c *compiler) discreteGaussian(path string, m *dparetov1.DiscreteGaussianMechanism) *mechanism {
	sensitivity := c.integer(join(path, "sensitivity"), m.GetSensitivity())
	sigma := c.number(join(path, "sigma"), m.GetSigma())
	return &mechanism{pair: true, evaluate: once(path, nil, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
		return privacy.DiscreteGaussian{
			Sensitivity: e.integer("sensitivity", sensitivity),
			Sigma:       e.float("sigma", sigma),
			Neighbours:  c.adjacency,
		}, nil
	})}
}

func (c *compiler) discreteLaplace(path string, m *dparetov1.DiscreteLaplaceMechanism) *mechanism {
	sensitivity := c.integer(join(path, "sensitivity"), m.GetSensitivity())
	scale := c.number(join(path, "scale"), m.GetScale())
	return &mechanism{pure: true, pair: true, evaluate: once(path, nil, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
		return privacy.DiscreteLaplace{
			Sensitivity: e.integer("sensitivity", sensitivity),
			Scale:       e.float("scale", scale),
			Neighbours:  c.adjacency,
		}, nil
	})}
}

func (c *compiler) outputPerturbation(path string, m *dparetov1.OutputPerturbationMechanism) *mechanism {
	c.replaceOne("output perturbation")
	size := c.integer(join(path, "dataset_size"), m.GetDatasetSize())
	regularization := c.number(join(path, "regularization"), m.GetRegularization())
	norm := c.number(join(path, "feature_norm"), m.GetFeatureNorm())
	sigma := c.number(join(path, "standard_deviation"), m.GetStandardDeviation())
	radius := c.optional(join(path, "radius"), m.GetRadius())
	names := map[string]string{"lipschitz": "feature_norm"}
	compiled := &mechanism{gaussian: true, pair: true, evaluate: once(path, names, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
		perturbation := privacy.OutputPerturbation{
			DatasetSize:       e.integer("dataset_size", size),
			Regularization:    e.float("regularization", regularization),
			Lipschitz:         e.float("feature_norm", norm),
			StandardDeviation: e.float("standard_deviation", sigma),
		}
		if radius != nil {
			if perturbation.Radius = e.float("radius", radius); e.err == nil && !(perturbation.Radius > 0) {
				e.failf("radius", "must be positive, is %g", perturbation.Radius)
			}
		}
		return perturbation, map[string]float64{"sensitivity": perturbation.L2Sensitivity(), "mu": perturbation.GaussianMu()}
	})}
	return withDatasetSize(compiled)
}

func (c *compiler) objectivePerturbation(path string, m *dparetov1.ObjectivePerturbationMechanism) *mechanism {
	c.replaceOne("objective perturbation")
	rule := privacy.RankOne
	switch m.GetCalibration() {
	case dparetov1.ObjectiveCalibration_OBJECTIVE_CALIBRATION_UNSPECIFIED, dparetov1.ObjectiveCalibration_OBJECTIVE_CALIBRATION_RANK_ONE:
	case dparetov1.ObjectiveCalibration_OBJECTIVE_CALIBRATION_CHAUDHURI:
		rule = privacy.Chaudhuri
	case dparetov1.ObjectiveCalibration_OBJECTIVE_CALIBRATION_CONTINUOUS:
		rule = privacy.ContinuousChaudhuri
	default:
		c.addf(join(path, "calibration"), "is unknown: %v", m.GetCalibration())
	}
	epsilon := c.number(join(path, "epsilon"), m.GetEpsilon())
	regularization := c.optional(join(path, "regularization"), m.GetRegularization())
	curvature := c.optional(join(path, "curvature"), m.GetCurvature())
	split := c.optional(join(path, "split"), m.GetSplit())
	var size *expression.Number
	if m.GetDatasetSize() != "" {
		size = c.integer(join(path, "dataset_size"), m.GetDatasetSize())
	}
	calibrated := m.GetDatasetSize() != "" && m.GetRegularization() != ""
	if !calibrated && (m.GetDatasetSize() != "" || m.GetRegularization() != "") {
		c.addf(join(path, "dataset_size"), "must be set together with regularization")
	}
	compiled := &mechanism{pure: true, pair: true, evaluate: once(path, nil, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
		// ε does not depend on the rest, which only serves to calibrate the noise.
		perturbation := privacy.ObjectivePerturbation{
			DatasetSize: 1, Regularization: 1, Curvature: 0.25, Calibration: rule,
			Epsilon: e.float("epsilon", epsilon),
		}
		if curvature != nil {
			perturbation.Curvature = e.float("curvature", curvature)
		}
		if split != nil {
			if perturbation.Split = e.float("split", split); e.err == nil && !(perturbation.Split > 0) {
				e.failf("split", "must lie strictly between 0 and 1, is %g", perturbation.Split)
			}
		}
		if !calibrated {
			return perturbation, nil
		}
		perturbation.DatasetSize = e.integer("dataset_size", size)
		perturbation.Regularization = e.float("regularization", regularization)
		if e.err != nil || perturbation.Validate() != nil {
			return perturbation, nil
		}
		beta, tau := perturbation.Calibrate()
		return perturbation, map[string]float64{"beta": beta, "tau": tau}
	})}
	if calibrated {
		return withDatasetSize(compiled)
	}
	return compiled
}

// withDatasetSize adds the number of records to evaluated mechanisms.
func withDatasetSize(m *mechanism) *mechanism {
	inner := m.evaluate
	m.evaluate = func(variables map[string]any) (evaluated, error) {
		r, err := inner(variables)
		switch perturbation := r.mechanism.(type) {
		case privacy.OutputPerturbation:
			r.datasetSize = perturbation.DatasetSize
		case privacy.ObjectivePerturbation:
			r.datasetSize = perturbation.DatasetSize
		}
		return r, err
	}
	return m
}

func (c *compiler) randomizedResponse(path string, m *dparetov1.RandomizedResponseMechanism) *mechanism {
	c.replaceOne("randomised response")
	epsilon := c.number(join(path, "epsilon"), m.GetEpsilon())
	categories := c.integer(join(path, "categories"), m.GetCategories())
	return &mechanism{pure: true, pair: true, evaluate: once(path, nil, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
		return privacy.RandomizedResponse{
			Epsilon:    e.float("epsilon", epsilon),
			Categories: e.integer("categories", categories),
		}, nil
	})}
}

func (c *compiler) selection(path string, m *dparetov1.SelectionMechanism) *mechanism {
	var method privacy.SelectionMethod
	switch m.GetMethod() {
	case dparetov1.SelectionMethod_SELECTION_METHOD_EXPONENTIAL:
		method = privacy.Exponential
	case dparetov1.SelectionMethod_SELECTION_METHOD_PERMUTE_AND_FLIP:
		method = privacy.PermuteAndFlip
	case dparetov1.SelectionMethod_SELECTION_METHOD_REPORT_NOISY_MAX:
		method = privacy.ReportNoisyMax
	default:
		c.addf(join(path, "method"), "must be SELECTION_METHOD_EXPONENTIAL, _PERMUTE_AND_FLIP or _REPORT_NOISY_MAX, is %v", m.GetMethod())
	}
	epsilon := c.number(join(path, "epsilon"), m.GetEpsilon())
	return &mechanism{pure: true, pair: method != privacy.Exponential,
		evaluate: once(path, nil, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
			return privacy.Selection{Method: method, Epsilon: e.float("epsilon", epsilon), Neighbours: c.adjacency}, nil
		})}
}

func (c *compiler) zeroConcentrated(path string, m *dparetov1.ZeroConcentratedMechanism) *mechanism {
	rho := c.number(join(path, "rho"), m.GetRho())
	return &mechanism{evaluate: once(path, nil, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
		return privacy.ZeroConcentrated{Rho: e.float("rho", rho), Neighbours: c.adjacency}, nil
	})}
}

// randomAllocation compiles random allocation. All epochs are one run, whose pairs are more precise than sums of
// the pairs of epochs. The library's noise multiplier is relative to the clipping norm under either adjacency.
func (c *compiler) randomAllocation(path string, m *dparetov1.RandomAllocationMechanism) *mechanism {
	steps := c.integer(join(path, "steps_per_epoch"), m.GetStepsPerEpoch())
	sigma := c.number(join(path, "noise_multiplier"), m.GetNoiseMultiplier())
	epochs := c.integer(join(path, unitEpochs), m.GetEpochs())
	same := false
	switch m.GetAllocation() {
	case dparetov1.Allocation_ALLOCATION_UNSPECIFIED, dparetov1.Allocation_ALLOCATION_FRESH:
	case dparetov1.Allocation_ALLOCATION_SAME:
		same = true
	default:
		c.addf(join(path, "allocation"), "is unknown: %v", m.GetAllocation())
	}
	var picks *expression.Number
	if m.GetPicks() != "" {
		picks = c.integer(join(path, "picks"), m.GetPicks())
	}
	var d *dpSGD // for Search, of what its interpolants know
	if picks == nil && !same {
		d = &dpSGD{
			sampling: dparetov1.Sampling_SAMPLING_RANDOM_ALLOCATION, adjacency: c.adjacency, path: path,
			unit: unitEpochs, noiseMultiplier: sigma, length: epochs, stepsPerEpoch: steps,
		}
	}
	names := map[string]string{"steps": "steps_per_epoch"}
	return &mechanism{pair: true, dpSGD: d, evaluate: once(path, names, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
		allocation := privacy.RandomAllocation{
			Steps:           e.integer("steps_per_epoch", steps),
			Picks:           1,
			NoiseMultiplier: e.float("noise_multiplier", sigma),
			Epochs:          e.integer(unitEpochs, epochs),
			SameSteps:       same,
			Neighbours:      c.adjacency,
		}
		if picks != nil {
			allocation.Picks = e.integer("picks", picks)
		}
		derived := map[string]float64{"noise_multiplier": allocation.NoiseMultiplier}
		if c.adjacency == privacy.ReplaceOne {
			allocation.NoiseMultiplier *= 2
		}
		return allocation, derived
	})}
}

// fieldMeanRuns is the mean number of runs of a repeated selection.
const fieldMeanRuns = "mean_runs"

func (c *compiler) repeatedSelection(path string, m *dparetov1.RepeatedSelectionMechanism) *mechanism {
	if !c.admit(join(path, "base"), 1) {
		return nil
	}
	base := c.inner(join(path, "base"), m.GetBase())
	mean := c.number(join(path, fieldMeanRuns), m.GetMeanRuns())
	numberOf := c.numberOfRuns(path, m)
	if base == nil {
		return nil
	}
	names := map[string]string{
		"mean": fieldMeanRuns, "gamma": fieldMeanRuns, "tries": "binomial", "success": fieldMeanRuns, "probability": fieldMeanRuns,
		"most": "max_runs", "most_runs": "max_runs",
	}
	return &mechanism{training: base.training, publicSize: base.publicSize, selection: true, evaluate: func(variables map[string]any) (evaluated, error) {
		candidate, err := base.evaluate(variables)
		if err != nil {
			return evaluated{}, err
		}
		e := evaluation{variables: variables}
		runs := e.float(fieldMeanRuns, mean)
		distribution := numberOf(&e, runs)
		if e.err == nil {
			e.err = distribution.Validate()
		}
		if e.err != nil {
			return evaluated{}, below(path, names, e.err)
		}
		r := evaluated{runs: 1, datasetSize: candidate.datasetSize, mechanism: distribution.Mechanism(candidate.mechanism, candidate.runs)}
		if capped, ok := distribution.(stopping.Capped); ok {
			distribution = capped.Of
		}
		if d, ok := distribution.(stopping.TruncatedNegativeBinomial); ok {
			r.derived = map[string]float64{"gamma": d.Gamma}
		}
		return r, below(path, names, r.mechanism.Validate())
	}}
}

// numberOfRuns compiles the distribution of the number of runs. The function that it returns takes the mean.
func (c *compiler) numberOfRuns(path string, m *dparetov1.RepeatedSelectionMechanism) func(e *evaluation, mean float64) stopping.Distribution {
	_, isEta := m.GetDistribution().(*dparetov1.RepeatedSelectionMechanism_Eta)
	if m.GetMaxRuns() != "" && !isEta && m.GetDistribution() != nil {
		c.addf(join(path, "max_runs"), "must be unset: it is only for eta")
	}
	switch d := m.GetDistribution().(type) {
	case *dparetov1.RepeatedSelectionMechanism_Poisson:
		return func(_ *evaluation, mean float64) stopping.Distribution { return stopping.Poisson{Mean: mean} }
	case *dparetov1.RepeatedSelectionMechanism_Binomial:
		tries := c.integer(join(path, "binomial"), d.Binomial)
		return func(e *evaluation, mean float64) stopping.Distribution {
			n := e.integer("binomial", tries)
			if e.err == nil && !(mean > 0 && mean <= float64(n)) {
				e.failf(fieldMeanRuns, "must be above 0 and at most the number of tries, %d, is %g", n, mean)
			}
			return stopping.Binomial{Tries: n, Success: mean / float64(n)}
		}
	case *dparetov1.RepeatedSelectionMechanism_Fixed:
		return func(e *evaluation, mean float64) stopping.Distribution {
			if e.err == nil && !(mean >= 1 && mean <= 1<<53 && mean == math.Trunc(mean)) {
				e.failf(fieldMeanRuns, "must be an integer of at least 1 with fixed, is %g", mean)
			}
			return stopping.Binomial{Tries: int64(mean), Success: 1}
		}
	}
	var eta, most *expression.Number
	if isEta {
		eta = c.number(join(path, "eta"), m.GetEta())
	}
	if m.GetMaxRuns() != "" {
		most = c.integer(join(path, "max_runs"), m.GetMaxRuns())
	}
	return func(e *evaluation, mean float64) stopping.Distribution {
		shape := 1.0 // geometric
		if isEta {
			shape = e.float("eta", eta)
		}
		var unlimited stopping.TruncatedNegativeBinomial
		if e.err == nil {
			unlimited, e.err = stopping.ByMean(shape, mean)
		}
		if most == nil {
			return unlimited
		}
		return stopping.Capped{Of: unlimited, Most: e.integer("max_runs", most)}
	}
}

func (c *compiler) composition(path string, m *dparetov1.CompositionMechanism) *mechanism {
	if len(m.GetParts()) == 0 {
		c.addf(join(path, "parts"), "must hold at least one part")
		return nil
	}
	if !c.admit(join(path, "parts"), len(m.GetParts())) {
		return nil
	}
	type part struct {
		path      string
		mechanism *mechanism
		count     *expression.Number // nil for 1
	}
	compiled := &mechanism{pure: true, gaussian: true, pair: true}
	parts := make([]part, len(m.GetParts()))
	for i, p := range m.GetParts() {
		at := join(path, fmt.Sprintf("parts[%d]", i))
		parts[i] = part{path: at, mechanism: c.inner(join(at, "mechanism"), p.GetMechanism())}
		if p.GetCount() != "" {
			parts[i].count = c.integer(join(at, "count"), p.GetCount())
		}
		if inner := parts[i].mechanism; inner != nil {
			compiled.pure = compiled.pure && inner.pure
			compiled.gaussian = compiled.gaussian && inner.gaussian
			compiled.pair = compiled.pair && inner.pair
			compiled.publicSize = compiled.publicSize || inner.publicSize
			if t := inner.training; t != nil && p.GetCount() == "" && (compiled.training == nil || t.isNamed && !compiled.training.isNamed) {
				compiled.training = t
			}
		}
	}
	compiled.evaluate = func(variables map[string]any) (evaluated, error) {
		total := evaluated{runs: 1}
		composed := make(privacy.Composition, len(parts))
		for i, p := range parts {
			r, err := p.mechanism.evaluate(variables)
			if err != nil {
				return evaluated{}, err
			}
			e := evaluation{variables: variables}
			count := int64(1)
			if p.count != nil {
				count = e.integer("count", p.count)
			}
			switch {
			case e.err != nil:
			case count < 1:
				e.failf("count", "must be at least 1, is %d", count)
			case count > math.MaxInt64/r.runs:
				e.failf("count", "%d times %d steps are too many", count, r.runs)
			}
			if e.err != nil {
				return evaluated{}, below(p.path, nil, e.err)
			}
			composed[i] = privacy.Part{Mechanism: r.mechanism, Count: count * r.runs}
			total.datasetSize = max(total.datasetSize, r.datasetSize)
		}
		total.mechanism = composed
		return total, nil
	}
	return compiled
}

// inner compiles a spec within another. Only its mechanism may be set.
func (c *compiler) inner(path string, spec *dparetov1.PrivacySpec) *mechanism {
	if spec == nil {
		c.addf(path, "must be set")
		return nil
	}
	if c.depth == maxDepth {
		c.addf(path, "is nested too deeply: at most %d levels", maxDepth)
		return nil
	}
	for field, set := range map[string]bool{
		"delta":      spec.GetDelta() != 0,
		"adjacency":  spec.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_UNSPECIFIED,
		"accountant": spec.GetAccountant() != dparetov1.Accountant_ACCOUNTANT_UNSPECIFIED,
		"conversion": spec.GetConversion() != dparetov1.Conversion_CONVERSION_UNSPECIFIED,
	} {
		if set {
			c.addf(join(path, field), "must be unset: the outermost spec sets it")
		}
	}
	c.depth++
	defer func() { c.depth-- }()
	return c.mechanism(path, spec)
}

// once returns the evaluation of a mechanism that is applied once. build may ignore e's
// error.
func once(path string, names map[string]string, build func(e *evaluation) (privacy.Mechanism, map[string]float64)) func(map[string]any) (evaluated, error) {
	return func(variables map[string]any) (evaluated, error) {
		e := evaluation{variables: variables}
		m, derived := build(&e)
		if e.err == nil {
			e.err = m.Validate()
		}
		if e.err != nil {
			return evaluated{}, below(path, names, e.err)
		}
		return evaluated{mechanism: m, runs: 1, derived: derived}, nil
	}
}

// evaluation evaluates the expressions of one mechanism and keeps the first error.
type evaluation struct {
	variables map[string]any
	err       error
}

func (e *evaluation) failf(field, format string, args ...any) {
	e.err = &privacy.FieldError{Field: field, Message: fmt.Sprintf(format, args...)}
}

func (e *evaluation) integer(field string, n *expression.Number) int64 {
	if e.err != nil {
		return 0
	}
	x, err := n.Int(e.variables)
	if err != nil {
		e.failf(field, "%v", err)
	}
	return x
}

func (e *evaluation) float(field string, n *expression.Number) float64 {
	if e.err != nil {
		return 0
	}
	x, err := n.Float(e.variables)
	if err != nil {
		e.failf(field, "%v", err)
	}
	return x
}
