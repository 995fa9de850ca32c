package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// client is an actor that calls the services.
type client struct {
	*connection

	studies  dparetov1.StudyServiceClient
	releases dparetov1.ReleaseServiceClient
	number   int // among the actors
	said     int // values, reasons and request ids
	past     []func()
}

func newClient(c *connection) *client {
	return &client{
		connection: c, number: len(c.world.actors),
		studies: dparetov1.NewStudyServiceClient(c), releases: dparetov1.NewReleaseServiceClient(c),
	}
}

// value returns an error that nobody else reports.
func (c *client) value() float64 {
	c.said++
	return float64(c.said*16+c.number) / (1 << 16)
}

// id returns a request id, or now and then none.
func (c *client) id() string {
	if c.said++; c.chance(0.4) {
		return ""
	}
	return fmt.Sprintf("%s-%d-%d", c.principal.Name, c.number, c.said)
}

// send makes a call until it is answered or the client loses patience. A request with an id may
// come again, much later.
func send[Q proto.Message, R any](ctx context.Context, c *client, req Q, method func(context.Context, Q) (R, error)) (resp R, err error) {
	for range 4 {
		resp, err = method(ctx, req)
		if !retryable(err) {
			break
		}
		c.pause(3 * time.Second)
	}
	field := req.ProtoReflect().Descriptor().Fields().ByName("request_id")
	if field != nil && req.ProtoReflect().Get(field).String() != "" {
		c.past = append(c.past, func() { _, _ = method(ctx, req) })
	}
	return resp, err
}

// retryable reports whether a client repeats a call that failed.
func retryable(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.Aborted
}

// again repeats one of the requests of the past.
func (c *client) again() {
	if len(c.past) > 0 {
		c.past[c.below(len(c.past))]()
	}
}

// The methods without their options.

func (c *client) suggest(ctx context.Context, r *dparetov1.SuggestTrialsRequest) (*dparetov1.SuggestTrialsResponse, error) {
	return c.studies.SuggestTrials(ctx, r)
}

func (c *client) report(ctx context.Context, r *dparetov1.AddMeasurementRequest) (*dparetov1.AddMeasurementResponse, error) {
	return c.studies.AddMeasurement(ctx, r)
}

func (c *client) renew(ctx context.Context, r *dparetov1.RenewLeasesRequest) (*dparetov1.RenewLeasesResponse, error) {
	return c.studies.RenewLeases(ctx, r)
}

func (c *client) complete(ctx context.Context, r *dparetov1.CompleteTrialRequest) (*dparetov1.CompleteTrialResponse, error) {
	return c.studies.CompleteTrial(ctx, r)
}

func (c *client) release(ctx context.Context, r *dparetov1.ReleaseTrialRequest) (*dparetov1.ReleaseTrialResponse, error) {
	return c.studies.ReleaseTrial(ctx, r)
}

// worker asks for trials and does something to them.
type worker struct {
	*client

	worker string
}

func newWorker(c *connection, id string) *worker { return &worker{newClient(c), id} }

// work goes on for some rounds.
func (w *worker) work(ctx context.Context) {
	for range 7 {
		w.pause(6 * time.Second)
		if w.chance(0.15) {
			w.again()
		}
		w.round(ctx, pick(w.source, open, open, open, fixed, private))
	}
}

// round asks for a trial of a study.
func (w *worker) round(ctx context.Context, study string) {
	request := &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: w.worker, Count: 1, RequestId: w.id()}
	if study == fixed && request.GetRequestId() == "" {
		request.RequestId = fmt.Sprint("fixed-", w.number, "-", w.said) // a second hand-out forbids releases
	}
	resp, err := send(ctx, w.client, request, w.suggest)
	if status.Code(err) == codes.PermissionDenied || status.Code(err) == codes.FailedPrecondition { // the id is another's
		w.worker = fmt.Sprint(w.principal.Name, "-", w.number)
	}
	if err != nil || len(resp.GetTrials()) == 0 {
		return
	}
	trial := resp.GetTrials()[0]
	if study == open && !w.train(ctx, trial) {
		return
	}
	w.finish(ctx, study, trial)
}

// train reports measurements of a run, and returns false if the lease is lost.
func (w *worker) train(ctx context.Context, trial *dparetov1.Trial) bool {
	for step := range w.below(4) {
		w.pause(lease * 3 / 4)
		if w.chance(0.3) {
			_, _ = send(ctx, w.client, &dparetov1.RenewLeasesRequest{
				Parent: open, LeaseTokens: map[string]string{trial.GetName(): trial.GetLease().GetToken()}, RequestId: w.id(),
			}, w.renew)
		}
		_, err := send(ctx, w.client, &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: measured(int64(step+1), w.value()), RequestId: w.id(),
		}, w.report)
		if err != nil && w.chance(0.6) { // others do not look
			return false
		}
	}
	return true
}

// finish ends the worker's hold of a trial. Fixed designs are treated well.
func (w *worker) finish(ctx context.Context, study string, trial *dparetov1.Trial) {
	w.pause(lease / 2)
	request := &dparetov1.CompleteTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), RequestId: w.id()}
	request.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: measured(9, w.value())}
	switch fate := w.number64(); {
	case study == fixed:
	case fate < 0.10: // it vanishes
		return
	case fate < 0.16:
		_, _ = send(ctx, w.client, &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: request.GetLeaseToken(), RequestId: w.id()}, w.release)
		return
	case fate < 0.30: // it is late
		time.Sleep(lease + w.upTo(lease))
	case fate < 0.36:
		request.Outcome = &dparetov1.CompleteTrialRequest_UseLastMeasurement{UseLastMeasurement: new(dparetov1.UseLastMeasurement)}
	case fate < 0.41:
		request.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: w.reason()}}
	case fate < 0.52:
		request.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: w.reason(), Retryable: fate < 0.48}}
	}
	_, err := send(ctx, w.client, request, w.complete)
	if err == nil && w.chance(0.15) { // another outcome is never taken for the one that was
		other := proto.CloneOf(request)
		other.RequestId, other.Outcome = w.id(), &dparetov1.CompleteTrialRequest_Measurement{Measurement: measured(9, w.value())}
		_, _ = send(ctx, w.client, other, w.complete)
	}
}

// number64 returns a number in [0, 1).
func (c *client) number64() float64 { return c.source.number() }

// reason returns a reason that nobody else gives.
func (c *client) reason() string {
	c.said++
	return fmt.Sprintf("%s %d says %d", c.principal.Name, c.number, c.said)
}

// operator creates studies and ledgers, meddles with them, and publishes.
type operator struct {
	*client

	paid bool // the private study pays from ledgers
}

func newOperator(c *connection) *operator {
	return &operator{client: newClient(c), paid: c.chance(0.6)}
}

// prepare creates everything before the history begins.
func (o *operator) prepare(ctx context.Context) {
	for _, ledger := range []struct {
		name    string
		epsilon float64
	}{{tests, 4}, {training, 45}} {
		_, err := o.releases.CreateLedger(ctx, &dparetov1.CreateLedgerRequest{LedgerId: ledger.name[len("ledgers/"):], Ledger: newLedger(ledger.epsilon)})
		must(err)
	}
	for _, study := range []struct {
		name string
		spec *dparetov1.StudySpec
	}{{open, openSpec()}, {fixed, fixedSpec()}} {
		_, err := o.studies.CreateStudy(ctx, &dparetov1.CreateStudyRequest{StudyId: study.name[len("studies/"):], Study: &dparetov1.Study{Spec: study.spec}})
		must(err)
	}
	if !o.createPrivate(ctx) && !o.paid { // it must name ledgers
		o.paid = true
		o.createPrivate(ctx)
	}
}

// must panics if the calm server refuses what it must do.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// createPrivate creates the private study, and reports whether it exists.
func (o *operator) createPrivate(ctx context.Context) bool {
	_, err := send(ctx, o.client, &dparetov1.CreateStudyRequest{
		StudyId: private[len("studies/"):], Study: &dparetov1.Study{Spec: privateSpec(o.paid)}, RequestId: o.id(),
	}, func(ctx context.Context, r *dparetov1.CreateStudyRequest) (*dparetov1.CreateStudyResponse, error) {
		return o.studies.CreateStudy(ctx, r)
	})
	return err == nil
}

// operate does some of what operators do.
func (o *operator) operate(ctx context.Context) {
	for range 9 {
		o.pause(15 * time.Second)
		pick(o.source, o.extend, o.extend, o.grow, o.pauseStudy, o.stop, o.create, o.recreate, o.publish, o.choose, o.look)(ctx)
		if o.chance(0.15) {
			o.again()
		}
	}
}

// update changes fields of a study's spec.
func (o *operator) update(ctx context.Context, study, path string, change func(*dparetov1.StudySpec)) {
	got, err := o.studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: study})
	if err != nil {
		return
	}
	spec := got.GetStudy().GetSpec()
	change(spec)
	_, _ = send(ctx, o.client, &dparetov1.UpdateStudyRequest{
		Study:      &dparetov1.Study{Name: study, Spec: spec, Etag: got.GetStudy().GetEtag()},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{path}}, RequestId: o.id(),
	}, func(ctx context.Context, r *dparetov1.UpdateStudyRequest) (*dparetov1.UpdateStudyResponse, error) {
		return o.studies.UpdateStudy(ctx, r)
	})
}

// extend gives a study another trial.
func (o *operator) extend(ctx context.Context) {
	o.update(ctx, pick(o.source, open, fixed), "spec.budget.max_trials", func(s *dparetov1.StudySpec) { s.Budget.MaxTrials++ })
}

// grow widens a domain.
func (o *operator) grow(ctx context.Context) {
	o.update(ctx, pick(o.source, open, fixed), "spec.parameters", func(s *dparetov1.StudySpec) { s.Parameters[0].GetDoubleDomain().Max *= 2 })
}

// pauseStudy pauses the open study for a while.
func (o *operator) pauseStudy(ctx context.Context) {
	_, _ = o.studies.PauseStudy(ctx, &dparetov1.PauseStudyRequest{Name: open})
	o.pause(lease)
	o.resumeStudy(ctx)
}

func (o *operator) resumeStudy(ctx context.Context) {
	_, _ = send(ctx, o.client, &dparetov1.ResumeStudyRequest{Name: open}, func(ctx context.Context, r *dparetov1.ResumeStudyRequest) (*dparetov1.ResumeStudyResponse, error) {
		return o.studies.ResumeStudy(ctx, r)
	})
}

// stop stops a trial of the open study.
func (o *operator) stop(ctx context.Context) {
	_, _ = send(ctx, o.client, &dparetov1.StopTrialRequest{
		Name: fmt.Sprint(open, "/trials/", 1+o.below(trials)), Reason: o.reason(), RequestId: o.id(),
	}, func(ctx context.Context, r *dparetov1.StopTrialRequest) (*dparetov1.StopTrialResponse, error) {
		return o.studies.StopTrial(ctx, r)
	})
}

// create queues a trial of the open study. It has an id, since a repetition would be another one.
func (o *operator) create(ctx context.Context) {
	note := o.reason()
	_, _ = send(ctx, o.client, &dparetov1.CreateTrialRequest{Parent: open, RequestId: note, Trial: &dparetov1.Trial{
		Note: note, Parameters: map[string]*dparetov1.Value{"sigma": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1 + 30*o.number64()}}},
	}}, func(ctx context.Context, r *dparetov1.CreateTrialRequest) (*dparetov1.CreateTrialResponse, error) {
		return o.studies.CreateTrial(ctx, r)
	})
}

// recreate deletes the private study and creates it anew.
func (o *operator) recreate(ctx context.Context) {
	_, err := send(ctx, o.client, &dparetov1.DeleteStudyRequest{Name: private, RequestId: o.id()},
		func(ctx context.Context, r *dparetov1.DeleteStudyRequest) (*dparetov1.DeleteStudyResponse, error) {
			return o.studies.DeleteStudy(ctx, r)
		})
	if err == nil || status.Code(err) == codes.NotFound {
		o.createPrivate(ctx)
	}
}

// publish releases the best trial of the fixed study.
func (o *operator) publish(ctx context.Context) {
	_, _ = send(ctx, o.client, &dparetov1.ReleaseBestRequest{Name: fixed, Metric: "error", Epsilon: 0.3, RequestId: o.reason()},
		func(ctx context.Context, r *dparetov1.ReleaseBestRequest) (*dparetov1.ReleaseBestResponse, error) {
			return o.releases.ReleaseBest(ctx, r)
		})
}

// choose selects one of two candidates at a ledger's expense.
func (o *operator) choose(ctx context.Context) {
	_, _ = send(ctx, o.client, &dparetov1.SelectPrivatelyRequest{Utilities: []float64{1, 2}, Sensitivity: 1, Epsilon: 0.2, Ledger: tests, RequestId: o.reason()},
		func(ctx context.Context, r *dparetov1.SelectPrivatelyRequest) (*dparetov1.SelectPrivatelyResponse, error) {
			return o.releases.SelectPrivately(ctx, r)
		})
}

// look reads.
func (o *operator) look(ctx context.Context) {
	_, _ = o.studies.ListTrials(ctx, &dparetov1.ListTrialsRequest{Parent: pick(o.source, open, fixed, private)})
	_, _ = o.releases.GetLedger(ctx, &dparetov1.GetLedgerRequest{Name: pick(o.source, tests, training)})
}

// end completes what is open, publishes once more, and compares everything with the model.
func (o *operator) end(ctx context.Context) {
	o.resumeStudy(ctx)
	for _, study := range []string{open, private} {
		o.drain(ctx, study)
	}
	o.publish(ctx)
	m := o.world.model
	for _, study := range []string{open, fixed, private} {
		got, err := o.studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: study})
		if study == private && status.Code(err) == codes.NotFound {
			continue // it could not be created again
		}
		must(err)
		listed, err := o.studies.ListTrials(ctx, &dparetov1.ListTrialsRequest{Parent: study, PageSize: 1000})
		must(err)
		for i, t := range listed.GetTrials() { // the list has no past attempts
			whole, err := o.studies.GetTrial(ctx, &dparetov1.GetTrialRequest{Name: t.GetName()})
			must(err)
			listed.Trials[i] = whole.GetTrial()
		}
		made, err := o.releases.ListReleases(ctx, &dparetov1.ListReleasesRequest{Parent: study})
		must(err)
		m.compareStudy(got.GetStudy(), listed.GetTrials(), made.GetReleases())
	}
	for _, ledger := range []string{tests, training} {
		got, err := o.releases.GetLedger(ctx, &dparetov1.GetLedgerRequest{Name: ledger})
		must(err)
		charges, err := o.releases.ListCharges(ctx, &dparetov1.ListChargesRequest{Parent: ledger, PageSize: 1000})
		must(err)
		m.compareLedger(got.GetLedger(), charges.GetCharges())
	}
}

// drain asks for what is open of a study and completes it. Nobody else renews leases any more, so that
// whoever asks a lease later gets every trial, whichever process renewed it last, or had begun since.
func (o *operator) drain(ctx context.Context, study string) {
	freed := time.Now().Add(lease)
	for missed := false; ; {
		asked := time.Now()
		got, err := o.studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: study})
		if status.Code(err) == codes.NotFound {
			return
		}
		must(err)
		counts := got.GetStudy().GetTrialCounts()
		if counts.GetQueued()+counts.GetActive()+counts.GetStopping() == 0 {
			return
		}
		resp, err := o.suggest(ctx, &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "closer", Count: 20})
		must(err)
		for _, trial := range resp.GetTrials() {
			_, err := o.complete(ctx, &dparetov1.CompleteTrialRequest{
				Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
				Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: measured(9, o.value())},
			})
			must(err)
		}
		if len(resp.GetTrials()) > 0 {
			continue
		}
		if missed {
			o.world.model.faultf("stuck", "%s has open trials that nobody gets, %v after the last lease must have ended", study, asked.Sub(freed))
			return
		}
		missed = asked.After(freed) // stopping trials may have been completed: look again
		time.Sleep(lease / 2)
	}
}

// watcher follows a study by streams that break.
type watcher struct {
	*client

	study string
	after int64
	seen  map[string]*dparetov1.Trial // as it was last
}

func newWatcher(c *connection, study string) *watcher {
	return &watcher{client: newClient(c), study: study, seen: make(map[string]*dparetov1.Trial)}
}

// watch goes on until ctx ends, and then shows the model what it has seen.
func (w *watcher) watch(ctx context.Context) {
	for ctx.Err() == nil {
		lasts := time.Second + w.upTo(30*time.Second)
		if !w.world.rough.Load() {
			lasts = time.Hour // to the end
		}
		some, cancel := context.WithTimeout(ctx, lasts)
		w.follow(some)
		cancel()
		w.pause(time.Second)
	}
	w.world.model.watched(w.study, w.seen)
}

// follow follows the study until the stream breaks.
func (w *watcher) follow(ctx context.Context) {
	stream, err := w.studies.WatchStudy(ctx, &dparetov1.WatchStudyRequest{Name: w.study, AfterRevision: w.after})
	for err == nil {
		var m *dparetov1.WatchStudyResponse
		if m, err = stream.Recv(); err != nil {
			break
		}
		if m.GetRevision() <= w.after {
			w.world.model.faultf("watch", "%s: revision %d came after %d", w.study, m.GetRevision(), w.after)
		}
		w.after = m.GetRevision()
		if trial := m.GetTrial(); trial != nil {
			w.seen[trial.GetName()] = trial
		}
	}
	if !slices.Contains([]codes.Code{codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Unknown}, status.Code(err)) {
		w.world.model.faultf("watch", "%s after %d: %v", w.study, w.after, err)
	}
}

// requestID returns the request_id of a request, or "".
func requestID(req proto.Message) string {
	field := req.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name("request_id"))
	if field == nil {
		return ""
	}
	return req.ProtoReflect().Get(field).String()
}
