package list_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/servertest"
)

// numbers returns the numbers of trials.
func numbers(trials []*dparetov1.Trial) []int64 {
	out := []int64{}
	for _, t := range trials {
		out = append(out, t.GetNumber())
	}
	return out
}

// varied fills a study with 60 trials in all states.
func varied(f *servertest.Fixture) (study string, trials []*dparetov1.Trial) {
	f.T.Helper()
	study = f.Create("varied", servertest.ChoiceSpec())
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		f.Clock.Advance(time.Second / 2)
		trial := f.One(study, fmt.Sprint("w", i))
		var err error
		switch random.IntN(5) {
		case 0: // stays active
		case 1:
			_, err = f.Studies.StopTrial(f.T.Context(), &dparetov1.StopTrialRequest{Name: trial.GetName(), Reason: "a \"reason\""})
		case 2:
			_, err = f.Studies.CompleteTrial(f.T.Context(), &dparetov1.CompleteTrialRequest{
				Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
				Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "diverges"}},
			})
		default:
			result := servertest.ChoiceMeasurement(trial)
			loss := float64(random.IntN(5)) / 8 // with ties
			result.Metrics["error"] = &dparetov1.MetricValue{Value: &loss}
			_, err = f.Studies.CompleteTrial(f.T.Context(), &dparetov1.CompleteTrialRequest{
				Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
				Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: result},
			})
		}
		if err == nil && i%3 == 0 {
			_, err = f.Studies.UpdateTrial(f.T.Context(), &dparetov1.UpdateTrialRequest{
				Trial:      &dparetov1.Trial{Name: trial.GetName(), Labels: map[string]string{"team": fmt.Sprint("t", i%2)}},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels"}},
			})
		}
		require.NoError(f.T, err)
	}
	trials, _ = f.Pages(&dparetov1.ListTrialsRequest{Parent: study, PageSize: 1000})
	return study, trials
}

// metricOf returns the value of a metric of a trial, and whether it has one.
func metricOf(t *dparetov1.Trial, id string) (float64, bool) {
	value := t.GetFinalMeasurement().GetMetrics()[id]
	if value == nil {
		value = t.GetComputedMetrics()[id]
	}
	return value.GetValue(), value != nil
}

// Filters choose what a program over all trials chooses.
func TestListTrialsFilter(t *testing.T) {
	f := servertest.Start(t)
	study, all := varied(f)
	moment := all[30].GetCreateTime().AsTime()
	succeeded := func(t *dparetov1.Trial) bool { return t.GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED }
	for source, want := range map[string]func(*dparetov1.Trial) bool{
		"state = SUCCEEDED":                  succeeded,
		"state != SUCCEEDED":                 func(t *dparetov1.Trial) bool { return !succeeded(t) },
		"state = ACTIVE OR state = STOPPING": func(t *dparetov1.Trial) bool { return t.GetLease() != nil },
		"worker = w1*":                       func(t *dparetov1.Trial) bool { return strings.HasPrefix(t.GetWorkerId(), "w1") },
		"number > 10 number <= 20":           func(t *dparetov1.Trial) bool { return t.GetNumber() > 10 && t.GetNumber() <= 20 },
		"metrics.error < 0.3": func(t *dparetov1.Trial) bool {
			x, ok := metricOf(t, "error")
			return ok && x < 0.3
		},
		"metrics.epsilon >= 1":          func(t *dparetov1.Trial) bool { x, _ := metricOf(t, "epsilon"); return x >= 1 },
		"metrics:error":                 func(t *dparetov1.Trial) bool { return t.GetFinalMeasurement() != nil },
		`parameters.optimizer = "lam*"`: func(t *dparetov1.Trial) bool { return t.GetParameters()["optimizer"].GetStringValue() == "lamb" },
		"parameters:beta":               func(t *dparetov1.Trial) bool { return t.GetParameters()["beta"] != nil },
		"parameters.layers = 1":         func(t *dparetov1.Trial) bool { return t.GetParameters()["layers"].GetIntValue() == 1 },
		"parameters.width < 20": func(t *dparetov1.Trial) bool {
			return t.GetParameters()["width"] != nil && t.GetParameters()["width"].GetDoubleValue() < 20
		},
		"labels.team = t1":          func(t *dparetov1.Trial) bool { return t.GetLabels()["team"] == "t1" },
		"-labels:team":              func(t *dparetov1.Trial) bool { return len(t.GetLabels()) == 0 },
		`state_reason:"\"reason\""`: func(t *dparetov1.Trial) bool { return strings.Contains(t.GetStateReason(), `"reason"`) },
		`end_time > "` + moment.Format(time.RFC3339Nano) + `"`:     func(t *dparetov1.Trial) bool { return t.GetEndTime() != nil && t.GetEndTime().AsTime().After(moment) },
		`create_time <= "` + moment.Format(time.RFC3339Nano) + `"`: func(t *dparetov1.Trial) bool { return !t.GetCreateTime().AsTime().After(moment) },
		"attempt = 2":                           func(*dparetov1.Trial) bool { return false },
		"origin = SUGGESTED algorithm = random": func(*dparetov1.Trial) bool { return true },
		"revision > 100":                        func(t *dparetov1.Trial) bool { return t.GetRevision() > 100 },
	} {
		expected := []int64{}
		for _, trial := range all {
			if want(trial) {
				expected = append(expected, trial.GetNumber())
			}
		}
		for _, size := range []int32{1, 7, 1000} {
			got, _ := f.Pages(&dparetov1.ListTrialsRequest{Parent: study, PageSize: size, Filter: source})
			if d := gocmp.Diff(expected, numbers(got)); d != "" {
				t.Errorf("%s, pages of %d: %s", source, size, d)
			}
		}
		if len(expected) == 0 && source != "attempt = 2" {
			t.Errorf("%s chooses nothing", source)
		}
	}
}

// Orders are those that a program over all trials makes, ties by number.
func TestListTrialsOrder(t *testing.T) {
	f := servertest.Start(t)
	study, all := varied(f)
	less := func(a, b *dparetov1.Trial) int {
		x, hasX := metricOf(a, "error")
		y, hasY := metricOf(b, "error")
		switch {
		case hasX && hasY:
			return cmp.Compare(x, y)
		case hasX:
			return -1
		case hasY:
			return 1
		default:
			return 0
		}
	}
	more := func(a, b *dparetov1.Trial) int {
		if a.GetFinalMeasurement() != nil && b.GetFinalMeasurement() != nil {
			return less(b, a)
		}
		return less(a, b)
	}
	byNumber := func(a, b *dparetov1.Trial) int { return cmp.Compare(a.GetNumber(), b.GetNumber()) }
	for order, compare := range map[string]func(a, b *dparetov1.Trial) int{
		"":                               byNumber,
		"number":                         byNumber,
		" number  desc":                  func(a, b *dparetov1.Trial) int { return -byNumber(a, b) },
		"create_time desc":               func(a, b *dparetov1.Trial) int { return -byNumber(a, b) },
		"metrics.error":                  less,
		"metrics.error asc, number desc": func(a, b *dparetov1.Trial) int { return cmp.Or(less(a, b), -byNumber(a, b)) },
		"metrics.error desc":             more,
		"state,parameters.optimizer desc": func(a, b *dparetov1.Trial) int {
			return cmp.Or(cmp.Compare(a.GetState(), b.GetState()),
				-cmp.Compare(a.GetParameters()["optimizer"].GetStringValue(), b.GetParameters()["optimizer"].GetStringValue()))
		},
	} {
		expected := slices.SortedStableFunc(slices.Values(all), compare)
		for _, size := range []int32{1, 9, 1000} {
			got, _ := f.Pages(&dparetov1.ListTrialsRequest{Parent: study, PageSize: size, OrderBy: order})
			if d := gocmp.Diff(numbers(expected), numbers(got)); d != "" {
				t.Errorf("order %q, pages of %d: %s", order, size, d)
			}
		}
	}
	got, _ := f.Pages(&dparetov1.ListTrialsRequest{Parent: study, PageSize: 2, Filter: "metrics:error", OrderBy: "metrics.error desc"})
	if !slices.IsSortedFunc(got, more) || got[0].GetFinalMeasurement() == nil {
		t.Errorf("filtered and ordered: %v", numbers(got))
	}
}

// The newest trials come first, without those that were deleted before or while the pages are read.
func TestListNewestTrials(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	for i := range 12 {
		f.ImportTrial(study, float64(i+1), 0.5)
	}
	remove := func(number int64) {
		require.NoError(t, require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: resource.TrialName("svt", number)})))
	}
	for _, number := range []int64{1, 5, 6, 12} {
		remove(number)
	}
	req := &dparetov1.ListTrialsRequest{Parent: study, PageSize: 3, OrderBy: "number desc", Filter: "number != 9"}
	resp, err := f.Studies.ListTrials(t.Context(), req)
	require.NoError(t, err)
	if d := gocmp.Diff([]int64{11, 10, 8}, numbers(resp.GetTrials())); d != "" {
		t.Error(d)
	}
	f.ImportTrial(study, 20, 0.5) // newer than the first page
	remove(8)                     // the last on it
	remove(4)
	req.PageToken = resp.GetNextPageToken()
	resp, err = f.Studies.ListTrials(t.Context(), req)
	require.NoError(t, err)
	if d := gocmp.Diff([]int64{7, 3, 2}, numbers(resp.GetTrials())); d != "" {
		t.Error(d)
	}
}

// Trials do not fill an answer beyond what a client of gRPC accepts by default, 4 MiB.
func TestLargeTrials(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	study := f.Create("large", servertest.SVTSpec())
	const trials = 120
	errors := slices.Repeat([]float64{0.5}, 10_000)
	for i := range trials {
		f.ImportTrial(study, 1+float64(i)/trials, errors...)
	}
	for _, req := range []*dparetov1.ListTrialsRequest{{}, {OrderBy: "number desc"}, {OrderBy: "parameters.noise_scale"}, {AfterRevision: 1}} {
		req.Parent, req.PageSize = study, 1000
		var all []int64
		pages := 0
		for req.PageToken = ""; pages == 0 || req.GetPageToken() != ""; pages++ {
			resp, err := f.Studies.ListTrials(t.Context(), req)
			require.NoError(t, err)
			if size := proto.Size(resp); len(resp.GetTrials()) == 0 || size > 4<<20 {
				t.Errorf("%v: a page of %d trials and %d bytes", req, len(resp.GetTrials()), size)
			}
			all = append(all, numbers(resp.GetTrials())...)
			req.PageToken = resp.GetNextPageToken()
		}
		if slices.Sort(all); len(all) != trials || len(slices.Compact(all)) != trials || pages < 2 {
			t.Errorf("%v: %d trials on %d pages", req, len(all), pages)
		}
	}
}

func TestListTrialsInvalid(t *testing.T) {
	f := servertest.Start(t)
	study, _ := varied(f)
	first, err := f.Studies.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: study, PageSize: 5, Filter: "number > 0"})
	if err != nil || first.GetNextPageToken() == "" || len(first.GetTrials()) != 5 {
		t.Fatal(first, err)
	}
	other := f.Create("other", servertest.ChoiceSpec())
	for _, test := range []struct {
		req   *dparetov1.ListTrialsRequest
		code  codes.Code
		field string
		text  string
	}{
		{&dparetov1.ListTrialsRequest{Parent: study, PageToken: first.GetNextPageToken()}, codes.InvalidArgument, "page_token", "this filter"},
		{&dparetov1.ListTrialsRequest{Parent: study, Filter: "number > 0", OrderBy: "number", PageToken: first.GetNextPageToken()}, codes.InvalidArgument, "page_token", "order"},
		{&dparetov1.ListTrialsRequest{Parent: study, Filter: "number > 0", AfterRevision: 1, PageToken: first.GetNextPageToken()}, codes.InvalidArgument, "page_token", "list"},
		{&dparetov1.ListTrialsRequest{Parent: other, Filter: "number > 0", PageToken: first.GetNextPageToken()}, codes.InvalidArgument, "page_token", "list"},
		{&dparetov1.ListTrialsRequest{Parent: study, PageToken: "%"}, codes.InvalidArgument, "page_token", "list"},
		{&dparetov1.ListTrialsRequest{Parent: study, Filter: "size > 1"}, codes.InvalidArgument, "filter", `"size" is not a field of trials; the fields are number`},
		{&dparetov1.ListTrialsRequest{Parent: study, Filter: "parameters.sigma > 1"}, codes.InvalidArgument, "filter", `no parameter "sigma"`},
		{&dparetov1.ListTrialsRequest{Parent: study, Filter: "metrics:loss"}, codes.InvalidArgument, "filter", `no metric "loss"`},
		{&dparetov1.ListTrialsRequest{Parent: study, Filter: strings.Repeat("(", 100)}, codes.InvalidArgument, "filter", "parentheses"},
		{&dparetov1.ListTrialsRequest{Parent: study, OrderBy: "metrics"}, codes.InvalidArgument, "order_by", "no order"},
		{&dparetov1.ListTrialsRequest{Parent: study, OrderBy: "number", AfterRevision: 1}, codes.InvalidArgument, "order_by", "after_revision"},
		{&dparetov1.ListTrialsRequest{Parent: study, AfterRevision: -1}, codes.InvalidArgument, "after_revision", "negative"},
		{&dparetov1.ListTrialsRequest{Parent: study, AfterRevision: 10_000}, codes.OutOfRange, "", "after_revision is 10000"},
	} {
		_, err := f.Studies.ListTrials(t.Context(), test.req)
		servertest.WantCode(t, err, test.code, test.text)
		if got := servertest.Violated(err); test.field != "" && !slices.Equal(got, []string{test.field}) {
			t.Errorf("%v: violated fields %q", test.req, got)
		}
	}
	again := &dparetov1.ListTrialsRequest{Parent: study, PageSize: 50, Filter: "number > 0", PageToken: first.GetNextPageToken()}
	if rest, err := f.Studies.ListTrials(t.Context(), again); err != nil || rest.GetTrials()[0].GetNumber() != 6 || len(rest.GetTrials()) != 50 {
		t.Errorf("with another page size: %v, %v", numbers(rest.GetTrials()), err)
	}
}

// Whoever reads the changes after the revision that a list shows misses nothing, while
// others go on, and in the end has what is there.
func TestAfterRevision(t *testing.T) {
	f := servertest.Start(t)
	study, _ := varied(f)
	known := make(map[string]*dparetov1.Trial)
	random := rand.New(rand.NewPCG(3, 4))
	disturb := func() {
		trial := f.One(study, fmt.Sprint("x", random.IntN(1000)))
		if random.IntN(2) == 0 {
			require.NoError(t, require.ErrOf(f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()})))
			return
		}
		require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.ChoiceMeasurement(trial)},
		})))
		if random.IntN(2) == 0 {
			require.NoError(t, require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: trial.GetName()})))
		}
	}
	revision := int64(0)
	follow := func(disturbed bool) (changes int) {
		req := &dparetov1.ListTrialsRequest{Parent: study, PageSize: 7, AfterRevision: revision}
		for {
			resp, err := f.Studies.ListTrials(t.Context(), req)
			require.NoError(t, err)
			for _, trial := range resp.GetTrials() {
				known[trial.GetName()] = trial
			}
			for _, name := range resp.GetDeletedTrials() {
				delete(known, name)
			}
			changes += len(resp.GetTrials()) + len(resp.GetDeletedTrials())
			revision = resp.GetRevision()
			if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
				return changes
			}
			if disturbed {
				disturb()
			}
		}
	}
	if got := follow(true); got < 60 {
		t.Errorf("%d trials at first", got)
	}
	for range 5 {
		for range 10 {
			disturb()
		}
		follow(true)
		f.Restart()
	}
	follow(false)
	all, latest := f.Pages(&dparetov1.ListTrialsRequest{Parent: study, PageSize: 1000})
	if latest != revision || len(all) != len(known) {
		t.Errorf("%d trials at revision %d, want %d at %d", len(known), revision, len(all), latest)
	}
	for _, trial := range all {
		if known[trial.GetName()].GetEtag() != trial.GetEtag() {
			t.Errorf("%s is out of date", trial.GetName())
		}
	}
	if n := follow(false); n != 0 {
		t.Errorf("%d changes without a change", n)
	}
}

func TestListStudiesFilterAndOrder(t *testing.T) {
	f := servertest.Start(t)
	for i, id := range []string{"d", "a", "c", "b"} {
		asked := servertest.SVTSpec()
		if i%2 == 0 {
			asked.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_GRID
		}
		f.Clock.Advance(time.Minute)
		study := &dparetov1.Study{Spec: asked, DisplayName: "Study " + strings.ToUpper(id), Labels: map[string]string{"position": fmt.Sprint(i)}}
		require.NoError(t, require.ErrOf(f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: study})))
		for range i {
			f.Tell(f.One("studies/"+id, "w"), 0.5)
		}
	}
	require.NoError(t, require.ErrOf(f.Studies.PauseStudy(t.Context(), &dparetov1.PauseStudyRequest{Name: "studies/c"})))
	for _, test := range []struct{ filter, order, want string }{
		{"", "", "abcd"},
		{"", "create_time", "dacb"},
		{"", "create_time desc", "bcad"},
		{"algorithm = GRID", "", "cd"},
		{"state = PAUSED", "", "c"},
		{"state = ACTIVE", "labels.position", "dab"},
		{"trial_counts.succeeded >= 2", "trial_counts.succeeded desc", "bc"},
		{`name = "studies/a" OR display_name = "Study D"`, "", "ad"},
		{"labels:position -labels.position = 1", "", "bcd"},
		{"update_time:* trainer = x", "", ""},
		{"", "algorithm desc, name desc", "dcba"},
	} {
		for _, size := range []int32{1, 3, 100} {
			got, token := "", ""
			for {
				resp, err := f.Studies.ListStudies(t.Context(), &dparetov1.ListStudiesRequest{PageSize: size, PageToken: token, Filter: test.filter, OrderBy: test.order})
				require.NoError(t, err)
				if len(resp.GetStudies()) > int(size) {
					t.Errorf("%d studies on a page of %d", len(resp.GetStudies()), size)
				}
				for _, study := range resp.GetStudies() {
					got += strings.TrimPrefix(study.GetName(), "studies/")
				}
				if token = resp.GetNextPageToken(); token == "" {
					break
				}
			}
			if got != test.want {
				t.Errorf("filter %q, order %q, pages of %d: %q, want %q", test.filter, test.order, size, got, test.want)
			}
		}
	}
	_, err := f.Studies.ListStudies(t.Context(), &dparetov1.ListStudiesRequest{Filter: "parameters.x = 1"})
	servertest.WantCode(t, err, codes.InvalidArgument, "is not a field of studies")
	first, err := f.Studies.ListStudies(t.Context(), &dparetov1.ListStudiesRequest{PageSize: 1})
	require.NoError(t, err)
	_, err = f.Studies.ListStudies(t.Context(), &dparetov1.ListStudiesRequest{PageToken: first.GetNextPageToken(), OrderBy: "name"})
	servertest.WantCode(t, err, codes.InvalidArgument, "page_token")
}
