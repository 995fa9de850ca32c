package accounting

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/meter"
	"github.com/dpareto/dpareto/server/invalid"
)

// Short requests that took from one to 40 seconds of a processor are refused after at most the work
// of a call, with the field and both numbers.
func TestCostlyCallsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("uses the whole work of a call a few times")
	}
	s := Service{MaxWork: MaxWork}
	lengths := make([]int64, MaxLengths)
	for i := range lengths {
		lengths[i] = int64(100 + i)
	}
	parts := strings.Repeat(`{"mechanism":{"laplace":{"sensitivity":"1","scale":"31.7"}},"count":"3000"},`, 100)
	for name, tc := range map[string]struct {
		spec    string
		lengths []int64
		field   string
	}{
		"many lengths": { // 29 kB, 10 s
			`{"dpSgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","datasetSize":"60000","batchSize":"256","noiseMultiplier":"1.0","steps":"1"},"delta":1e-5` + addRemove + `}`, lengths, "lengths"},
		"search over many orders": { // 82 bytes, 13 s
			`{"repeatedSelection":{"base":{"dpSgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","datasetSize":"25523516157","batchSize":"5073","noiseMultiplier":"0.5379046","steps":"131154"}},"meanRuns":"87.83793","poisson":{}},
			  "delta":1.4769195341559599e-07,"accountant":"ACCOUNTANT_RDP","conversion":"CONVERSION_IMPROVED"` + replaceOne + `}`, nil, "privacy"},
		"large transforms": { // 4 kB, 40 s
			`{"composition":{"parts":[` + strings.TrimSuffix(parts, ",") + `]},"delta":1e-9,"accountant":"ACCOUNTANT_PLD"` + addRemove + `}`, nil, "privacy"},
	} {
		_, err := s.ComputeEpsilon(t.Context(), &dparetov1.ComputeEpsilonRequest{Privacy: spec(t, tc.spec), Lengths: tc.lengths})
		if err == nil {
			t.Errorf("%s: computed", name)
			continue
		}
		if got := violated(t, err); !slices.Equal(got, []string{tc.field}) {
			t.Errorf("%s: %v, want %s", name, err, tc.field)
		}
		if !strings.Contains(err.Error(), "accounting takes at least") || !strings.Contains(err.Error(), fmt.Sprint(MaxWork)) {
			t.Errorf("%s: the error has no estimate and limit: %v", name, err)
		}
	}
	_, err := s.CalibrateMechanism(t.Context(), &dparetov1.CalibrateMechanismRequest{
		Privacy:  spec(t, `{"dpSgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","datasetSize":"2378","batchSize":"731","noiseMultiplier":"sigma","steps":"729219"},"delta":1e-168,"accountant":"ACCOUNTANT_PLD"`+addRemove+`}`),
		SolveFor: "sigma", Min: 0.001, Max: 1000, TargetEpsilon: 50,
	})
	if got := violated(t, err); !slices.Equal(got, []string{"privacy"}) {
		t.Errorf("a costly calibration: %v", err)
	}
}

// The work of many lengths is estimated from the first to within a factor of eight, over random
// mechanisms and accountants.
func TestLengthsAreEstimated(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	between := func(a, b float64) float64 { return math.Exp(math.Log(a) + rng.Float64()*math.Log(b/a)) }
	worst := 1.0
	for range 20 {
		n := between(1e3, 1e7)
		sampling, convention := dparetov1.Sampling_SAMPLING_FIXED_SIZE, dparetov1.Convention_CONVENTION_UNSPECIFIED
		if rng.IntN(2) == 0 {
			sampling, convention = dparetov1.Sampling_SAMPLING_POISSON, dparetov1.Convention_CONVENTION_ROUNDED
		}
		var fields invalid.Fields
		variables, environment := bind(&fields, nil, nil)
		f := Compile("privacy", &fields, environment, &dparetov1.PrivacySpec{
			Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
				Sampling: sampling, Convention: convention, DatasetSize: fmt.Sprint(int64(n)), BatchSize: fmt.Sprint(int64(between(1, n))),
				NoiseMultiplier: fmt.Sprintf("%.6f", between(0.8, 10)), Length: &dparetov1.DpSgdMechanism_Epochs{Epochs: "1"},
			}},
			Delta: between(1e-9, 1e-4), Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
			Accountant: []dparetov1.Accountant{dparetov1.Accountant_ACCOUNTANT_TIGHTEST, dparetov1.Accountant_ACCOUNTANT_EXACT}[rng.IntN(2)],
		})
		if f == nil {
			t.Fatal(fields.Err())
		}
		work := new(meter.Work)
		f.accountant = privacy.Within(f.accountant, work)
		lengths := make([]int64, 39)
		for i := range lengths {
			lengths[i] = int64(1 + i)
		}
		spread := []int64{1, 10, 20, 30, 39}
		require.NoError(t, require.ErrOf(f.trajectory(t.Context(), work, variables, spread[:1])))
		first := work.Done()
		require.NoError(t, require.ErrOf(f.trajectory(t.Context(), work, variables, spread[1:])))
		estimate := float64(work.Done() + further(work, first, len(lengths)))
		require.NoError(t, require.ErrOf(f.trajectory(t.Context(), work, variables, lengths)))
		ratio := (estimate + 1) / float64(work.Done()+1)
		worst = max(worst, ratio, 1/ratio)
		if ratio > 8 || ratio < 1.0/8 {
			t.Errorf("%v: estimated %.3g operations, took %d", f.spec, estimate, work.Done())
		}
	}
	t.Logf("off by a factor of %.2f at most", worst)
}

// A call that is cancelled ends at the next pause within one accounting.
func TestAccountingIsCancelled(t *testing.T) {
	errStop := errors.New("stop")
	pauses := 0
	ctx := pause.With(t.Context(), func(context.Context) error {
		if pauses++; pauses > 3 {
			return errStop
		}
		return nil
	})
	costly := spec(t, `{"dpSgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","datasetSize":"2378","batchSize":"731","noiseMultiplier":"0.0002","steps":"52683862"},"delta":1e-95,"accountant":"ACCOUNTANT_PLD"`+replaceOne+`}`)
	if _, err := (Service{}).ComputeEpsilon(ctx, &dparetov1.ComputeEpsilonRequest{Privacy: costly}); !errors.Is(err, errStop) || pauses != 4 {
		t.Errorf("error %v after %d pauses", err, pauses)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Service{}).ComputeEpsilon(cancelled, &dparetov1.ComputeEpsilonRequest{Privacy: costly}); status.Code(err) != codes.Canceled {
		t.Errorf("error %v", err)
	}
}

// A guarantee of a study takes limited work, each anew: what is refused at one configuration leaves
// others as they are.
func TestFunctionIsLimited(t *testing.T) {
	var fields invalid.Fields
	bindings, environment := bind(&fields, map[string]*dparetov1.Value{"noise": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}}}, nil)
	asked := spec(t, `{"dpSgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_ROUNDED","datasetSize":"60000","batchSize":"256","noiseMultiplier":"noise","epochs":"5"},"delta":1e-5`+addRemove+`}`)
	free, limited := Compile("privacy", &fields, environment, asked), Compile("privacy", &fields, environment, asked)
	if !fields.Empty() {
		t.Fatal(fields.Err())
	}
	work := new(meter.Work)
	free.accountant = privacy.Within(free.accountant, work)
	want, err := free.Guarantee(bindings)
	require.NoError(t, err)
	limited.Limit(work.Done())
	for range 3 { // the work of one does not count for the next
		if got, err := limited.Guarantee(bindings); err != nil || !proto.Equal(got, want) {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
	}
	tight := Compile("privacy", &fields, environment, asked)
	tight.Limit(work.Done() / 2)
	if _, err := tight.Guarantee(bindings); !isWorkError(err) {
		t.Errorf("half the work: %v", err)
	}
}

func isWorkError(err error) bool {
	_, ok := errors.AsType[*meter.LimitError](err)
	return ok
}
