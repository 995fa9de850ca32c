package trainer

// Declaration describes the studies that a trainer can run: the parameters that it takes,
// the metrics that it measures, and the mechanism that gives a run its privacy.
// Expressions are in the Common Expression Language over the parameters' names, as in a
// study.
type Declaration struct {
	// Parameters that Train requires, in the order to show them.
	Parameters []ParameterDeclaration
	// Metrics that Train measures, the objective first.
	Metrics []MetricDeclaration
	// Privacy of one run. Nil for a trainer without privacy.
	Privacy *PrivacyDeclaration
	// CheckpointParameter names a parameter T such that the measurement after t steps
	// belongs to the same configuration with T = t; empty if there is none.
	CheckpointParameter string
	// Constants are results that can be had without any run. Empty where the data are not read.
	Constants []ConstantDeclaration
}

// ConstantDeclaration is a model that does not depend on the training examples, so that it costs
// ε = 0. Its value on the examples that measure it is a number of these examples.
type ConstantDeclaration struct {
	Name  string
	Usage string // one line: the model, and the examples of its values
	// Values of the objectives among Declaration.Metrics, by name.
	Values map[string]float64
}

// ParameterDeclaration is a numeric parameter with the domain to search by default.
type ParameterDeclaration struct {
	Name  string
	Usage string // one line: meaning and unit
	// Integer marks int64 parameters; others are float64.
	Integer bool
	// Min and Max are the ends of the closed domain; whole for integers.
	Min, Max float64
	// Logarithmic means that distances are taken between logarithms. Min must then be
	// positive.
	Logarithmic bool
	// Design is the distribution of the first points of a search, truncated to the
	// domain.
	Design Distribution
}

// DistributionKind is a kind of distribution.
type DistributionKind int

// The kinds of distributions.
const (
	// DistributionDefault is uniform on the parameter's scale.
	DistributionDefault DistributionKind = iota
	// DistributionUniform is uniform on the domain, before integers are rounded.
	DistributionUniform
	// DistributionNormal is Gaussian.
	DistributionNormal
	// DistributionShiftedExponential is a shift plus an exponential variable.
	DistributionShiftedExponential
)

// Distribution is a probability distribution. Only the fields of its kind have a meaning.
type Distribution struct {
	Kind                    DistributionKind
	Mean, StandardDeviation float64 // of DistributionNormal, in the parameter's unit
	Rate, Shift             float64 // of DistributionShiftedExponential; the mean is Shift + 1/Rate
}

// Transform is a scale on which a metric is modelled.
type Transform string

// The transforms, by their names in a study file.
const (
	TransformIdentity Transform = "IDENTITY"
	TransformLog      Transform = "LOG"
	TransformLogit    Transform = "LOGIT" // for values in [0, 1]
)

// MetricDeclaration is a metric that a trainer measures.
type MetricDeclaration struct {
	Name  string
	Usage string // one line: meaning
	Unit  string // such as "ratio"
	// Objective marks the metric to minimise. Others are only recorded.
	Objective bool
	// Transform and Reference, the anti-ideal value, of an objective. A Reference of 0 follows from the
	// results.
	Transform Transform
	Reference float64
	// SampleSize is the number of examples behind an objective that is a fraction of
	// them, or has the resolution of one, and 0 otherwise.
	SampleSize int
	// Average says that the metric is an average, over SampleSize test records, of a
	// number in [0, 1] for each, so that replacing a record changes it by at most
	// 1/SampleSize. Noise that protects test records relies on it.
	Average bool
}

// PrivacyDeclaration is the privacy of one run, in the terms of a study file.
type PrivacyDeclaration struct {
	// Mechanism is the name of one of the mechanisms of a study, such as "dp_sgd".
	Mechanism string
	// Fields of the mechanism by name: expressions over the parameters, or the name
	// of an enum's value, such as "POISSON".
	Fields map[string]string
	// Lists are fields that hold numbers.
	Lists map[string][]float64
	// Delta in [0, 1).
	Delta float64
	// Adjacency, Accountant and Conversion are names of enum values, such as
	// "REPLACE_ONE", "RDP" and "IMPROVED". An empty Accountant is the tightest;
	// Conversion is empty for accountants other than RDP.
	Adjacency, Accountant, Conversion string
}
