package private

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/tuning"
	"github.com/dpareto/dpareto/server/spec"
)

const (
	// maxDatasetSize bounds the number of training records of a final run.
	maxDatasetSize = 1 << 40
	// maxDraws bounds the draws for an allowed configuration.
	maxDraws = 10_000
	// finalValuesPath is the path of the parameters that the final run fixes.
	finalValuesPath = specPath + ".random_stopping.final_run.values"
)

// subset checks subset_share and final_run by themselves.
func (c stoppingCompiler) subset(stopping *dparetov1.RandomStoppingSpec) {
	share, final := stopping.GetSubsetShare(), stopping.GetFinalRun()
	switch {
	case share == 0 && final == nil:
		return
	case !(share > 0 && share < 1):
		c.addf("random_stopping.subset_share", "must be in (0, 1) with final_run, or both unset, is %g", share)
		return
	case final == nil:
		c.addf("random_stopping.final_run", "must be set with subset_share: after the tuning on a subset one run is made on all training records")
		return
	}
	n := final.GetDatasetSize()
	if size := subsetSize(share, n); n < 1 || n > maxDatasetSize || size < 1 || size == n {
		c.addf("random_stopping.final_run.dataset_size", "must be in [1, 2^40], of which subset_share (%g) is at least one record and not all, is %d", share, n)
	}
	if len(final.GetValues()) == 0 {
		c.addf("random_stopping.final_run.values", "must hold the parameters that the cost of the final run depends on")
	}
	if c.compiled != nil {
		c.compiled.Points.VariablesOf(c.fields, finalValuesPath, final.GetValues())
	}
	const reason = "must be unset with subset_share: the final run shows one value"
	if stopping.GetRelease() == dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_CURVE {
		c.addf("random_stopping.release", reason)
	}
	if stopping.GetPortfolio() > 1 {
		c.addf("random_stopping.portfolio", reason)
	}
}

// finalRun compiles the final run of a study that has no violations so far. again is set for a
// stored study.
func (c stoppingCompiler) finalRun(again bool) {
	asked := c.spec.GetRandomStopping().GetFinalRun()
	if asked == nil {
		return
	}
	id, function := c.compiled.Metrics.Mechanism("")
	if function.Adjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE {
		c.addf("random_stopping.subset_share", "needs ADJACENCY_REPLACE_ONE in %s: a record that is added or removed changes the size of the subset; is %v", id, function.Adjacency())
		return
	}
	n := asked.GetDatasetSize()
	f := &finalRun{subsetSize: subsetSize(c.spec.GetRandomStopping().GetSubsetShare(), n), datasetSize: n, values: asked.GetValues()}
	c.candidateSize(f)
	before := c.fields.Len()
	if f.study = spec.CompileInto(c.fields, specPath, finalSpec(c.spec), again); c.fields.Len() != before {
		return
	}
	_, function = f.study.Metrics.Mechanism("")
	variables, _ := f.study.Points.VariablesOf(c.fields, finalValuesPath, f.values)
	// The mechanism that these values alone determine cannot depend on the tuning.
	var err error
	if f.part, err = function.Part(variables); err == nil {
		err = f.part.Mechanism.Validate()
	}
	if err != nil {
		c.addf("random_stopping.final_run.values", "must hold every parameter that the mechanism of %s depends on, with values that it can have: %v", id, err)
		return
	}
	if f.part, err = repeated(f.part, c.compiled); err != nil {
		c.addf("random_stopping.final_run.values", "%v", err)
		return
	}
	c.compiled.Terms = f
}

// candidateSize checks that the mechanism of a candidate is stated for the subset.
func (c stoppingCompiler) candidateSize(f *finalRun) {
	rng := rand.New(rand.NewPCG(3, 6)) // fixed: a spec is valid or not
	for range maxDraws {
		point := c.compiled.Problem.Space.Sample(rng)
		if c.compiled.Points.CheckAllowed("", point) != nil {
			continue
		}
		part, err := candidateRun(c.compiled, point)
		if err != nil {
			continue
		}
		if err = statedFor(part.Mechanism, f.subsetSize); err == nil {
			err = tuning.SubsetSampled{Base: privacy.Composition{part}, SubsetSize: f.subsetSize, DatasetSize: f.datasetSize}.Validate()
		}
		if err != nil {
			c.addf("random_stopping.subset_share", "does not fit the privacy mechanism of a candidate, which sees %d of %d records: %v", f.subsetSize, f.datasetSize, err)
		}
		return
	}
}

// statedFor returns an error unless every part of a mechanism is stated for a number of records, or for any.
// A rate of sampling does not say for how many records it was computed: with another number ε would be too small.
func statedFor(m privacy.Mechanism, size int64) error {
	of := size
	switch m := m.(type) {
	case privacy.Composition:
		for _, part := range m {
			if err := statedFor(part.Mechanism, size); err != nil {
				return err
			}
		}
	case privacy.FixedSizeGaussian:
		of = m.DatasetSize
	case privacy.OutputPerturbation:
		of = m.DatasetSize
	case privacy.ObjectivePerturbation:
		of = m.DatasetSize
	case privacy.Gaussian, privacy.Laplace:
	default:
		return fmt.Errorf("%s does not state a number of records, as lots of a fixed size do", m.Name())
	}
	if of != size {
		return fmt.Errorf("%s is stated for %d records, not for the %d of the subset", m.Name(), of, size)
	}
	return nil
}

// finalSpec returns the spec in the final run: the spec of a study whose mechanisms are for all
// training records.
func finalSpec(spec *dparetov1.StudySpec) *dparetov1.StudySpec {
	final := proto.CloneOf(spec)
	size := strconv.FormatInt(spec.GetRandomStopping().GetFinalRun().GetDatasetSize(), 10)
	final.RandomStopping.SubsetShare, final.RandomStopping.FinalRun = 0, nil
	final.ParameterConstraints = nil
	for _, m := range final.GetMetrics() {
		if p := m.GetComputed().GetPrivacy(); p != nil {
			setDatasetSize(p.ProtoReflect(), size)
		}
	}
	return final
}

// setDatasetSize sets the number of records of every mechanism in a privacy spec that has one.
func setDatasetSize(m protoreflect.Message, size string) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Name() == "dataset_size" && field.Kind() == protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString(size))
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				setDatasetSize(value.List().Get(i).Message(), size)
			}
		default:
			setDatasetSize(value.Message(), size)
		}
		return true
	})
}
