package transfer

import (
	"fmt"
	"maps"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// scored checks that a trial of a study with random stopping has values at scored steps only, and one value
// at each: what it claims of the test records depends on their number.
func (i *studyImport) scored(path string, trial *dparetov1.Trial, point space.Point) error {
	if !i.compiled.HasRandomStopping() {
		return nil
	}
	if err := i.scoredSteps(path, trial.GetMeasurements(), point); err != nil {
		return err
	}
	for j, a := range trial.GetPastAttempts() {
		if err := i.scoredSteps(fmt.Sprintf("%s[%d]", attemptsPath, j), a.GetMeasurements(), point); err != nil {
			return err
		}
	}
	final := trial.GetFinalMeasurement()
	if final == nil || !i.compiled.ReleasesCurve() {
		return nil
	}
	if !i.compiled.IsScored(point, final.GetStep()) {
		return invalid.Field(path+".final_measurement.step", "must be a scored step, is %d", final.GetStep())
	}
	for _, m := range trial.GetMeasurements() {
		isSame := maps.EqualFunc(m.GetMetrics(), final.GetMetrics(), func(a, b *dparetov1.MetricValue) bool { return proto.Equal(a, b) })
		if m.GetStep() == final.GetStep() && !isSame {
			return invalid.Field(path+".final_measurement", "must be the measurement at step %d, whose noise is drawn once", m.GetStep())
		}
	}
	return nil
}

// scoredSteps checks the steps of the intermediate measurements of an attempt.
func (i *studyImport) scoredSteps(path string, measurements []*dparetov1.Measurement, point space.Point) error {
	for j, m := range measurements {
		if !i.compiled.ReleasesCurve() || !i.compiled.IsScored(point, m.GetStep()) {
			return invalid.Field(fmt.Sprintf("%s.measurements[%d].step", path, j), "must be a step that random_stopping scores, is %d", m.GetStep())
		}
	}
	return nil
}
