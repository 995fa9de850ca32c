package server_test

import (
	"fmt"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// infinite returns the name of a number in a message that is not finite, or "".
func infinite(m protoreflect.Message) (found string) {
	check := func(field protoreflect.FieldDescriptor, v protoreflect.Value) {
		switch field.Kind() {
		case protoreflect.DoubleKind:
			if math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0) {
				found = fmt.Sprintf("%s is %g", field.FullName(), v.Float())
			}
		case protoreflect.MessageKind:
			if inner := infinite(v.Message()); inner != "" {
				found = inner
			}
		default:
		}
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsList():
			for i := range v.List().Len() {
				check(field, v.List().Get(i))
			}
		case field.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				check(field.MapValue(), v)
				return true
			})
		default:
			check(field, v)
		}
		return found == ""
	})
	return found
}

// Absurd values do no harm to what is computed from results: there are answers, and all numbers in them are finite.
func TestAbsurdValues(t *testing.T) {
	t.Parallel()
	for name, absurd := range map[string]float64{"large": 1e30, "largest": 1e100, "low": -1e30} {
		for _, given := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, reference given %v", name, given), func(t *testing.T) {
				t.Parallel()
				f := servertest.Start(t)
				asked := servertest.SVTSpec()
				reported := asked.GetMetrics()[1]
				reported.Transform = dparetov1.Transform_TRANSFORM_IDENTITY
				reported.Source = &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}}
				if !given {
					reported.ReferenceValue = nil
				}
				asked.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_DEFAULT
				asked.Budget = &dparetov1.Budget{MaxStagnantTrials: 100}
				study := f.Create("absurd", asked)
				for i := range 12 {
					noise := math.Pow(10, -1.5+float64(i)/4)
					value := servertest.SVTError(noise)
					if i == 0 || i == 7 {
						value = absurd
					}
					require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
						Parameters: servertest.Sparse(int64(1+i*7%12*2), noise), FinalMeasurement: servertest.Measurement(0, value),
					}})))
				}
				answered := func(call string, m proto.Message, err error) {
					t.Helper()
					if err != nil {
						t.Errorf("%s: %v", call, err)
					} else if at := infinite(m.ProtoReflect()); at != "" {
						t.Errorf("%s: %s", call, at)
					}
				}
				ctx := t.Context()
				for _, kind := range []dparetov1.FrontKind{
					dparetov1.FrontKind_FRONT_KIND_POSTERIOR, dparetov1.FrontKind_FRONT_KIND_OBSERVED,
					dparetov1.FrontKind_FRONT_KIND_BEST, dparetov1.FrontKind_FRONT_KIND_WORST,
				} {
					answered(kind.String(), f.Front(study, kind), nil)
				}
				if h := f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR).GetHypervolume(); !(h < 15) {
					t.Errorf("hypervolume %g, the references span 10", h)
				}
				curve, err := f.Fronts.ListHypervolumes(ctx, &dparetov1.ListHypervolumesRequest{Name: study})
				answered("ListHypervolumes", curve, err)
				importance, err := f.Analyses().AnalyzeImportance(ctx, &dparetov1.AnalyzeImportanceRequest{Name: study})
				answered("AnalyzeImportance", importance, err)
				slices, err := f.Analyses().AnalyzeSlices(ctx, &dparetov1.AnalyzeSlicesRequest{Name: study, Points: 3})
				answered("AnalyzeSlices", slices, err)
				validation, err := f.Analyses().CrossValidate(ctx, &dparetov1.CrossValidateRequest{Name: study})
				answered("CrossValidate", validation, err)
				suggested, err := f.Studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w"})
				answered("SuggestTrials", suggested, err)
			})
		}
	}
}
