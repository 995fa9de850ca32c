package private

import (
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
)

// clipped reduces a worker's measurement, before it is checked, to what a study with noisy
// values uses: the step, and the mean of every reported metric over its runs, each run clipped
// to [0, 1]. No error reveals a value.
func clipped(spec *dparetov1.StudySpec, path string, m *dparetov1.Measurement) (*dparetov1.Measurement, error) {
	if m == nil {
		return nil, invalid.Field(path, "must be set")
	}
	out := &dparetov1.Measurement{Step: m.GetStep(), Metrics: make(map[string]*dparetov1.MetricValue)}
	isComputed := make(map[string]bool)
	for _, metric := range spec.GetMetrics() {
		isComputed[metric.GetId()] = metric.GetComputed() != nil
	}
	var fields invalid.Fields
	for id, value := range m.GetMetrics() {
		if isComputed[id] {
			continue
		}
		field := fmt.Sprintf("%s.metrics[%q]", path, id)
		runs := value.GetRuns()
		if value.Value != nil && len(runs) > 0 {
			fields.Addf(field, "only one of value and runs may be set")
			continue
		}
		if len(runs) == 0 {
			if value == nil || value.Value == nil {
				fields.Addf(field, "one of value and runs must be set")
				continue
			}
			runs = []float64{value.GetValue()}
		}
		mean := 0.0
		for _, x := range runs {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				fields.Addf(field, "must be finite (report a run that diverged as infeasible)")
				break
			}
			mean += min(max(x, 0), 1) / float64(len(runs))
		}
		mean = min(max(mean, 0), 1)
		out.Metrics[id] = &dparetov1.MetricValue{Value: &mean}
	}
	if err := fields.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// addNoise adds noise of a standard deviation to every reported value of a measurement
// that Measurements.Accept returned, in place and in the order of the metrics, and records the
// deviation as the value's standard error. It returns the number of values.
func addNoise(spec *dparetov1.StudySpec, m *dparetov1.Measurement, standardDeviation float64, noisy func(value float64) float64) int64 {
	count := int64(0)
	for _, metric := range spec.GetMetrics() {
		value := m.GetMetrics()[metric.GetId()]
		if metric.GetComputed() != nil || value == nil {
			continue
		}
		value.Value = new(noisy(value.GetValue()))
		value.StandardError = new(standardDeviation)
		count++
	}
	return count
}
