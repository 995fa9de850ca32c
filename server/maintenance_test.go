package server

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// A pass over the store finds a damaged record before anybody reads it, and goes on behind it;
// who reads it learns which one it is, and everything else is served.
func TestMaintenanceFindsDamage(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	records, err := store.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	counted := metrics.New("test")
	s := New(Options{Store: records, Metrics: counted, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	t.Cleanup(func() {
		s.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	service := &studyService{Server: s}
	for _, id := range []string{"a", "b", "c"} {
		_, err := service.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: &dparetov1.StudySpec{
			Parameters: []*dparetov1.ParameterSpec{{
				Id: "x", Scale: dparetov1.Scale_SCALE_LINEAR,
				Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Max: 1}},
			}},
			Metrics: []*dparetov1.MetricSpec{{
				Id: "y", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: new(1.0),
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			}},
			Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := service.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/" + id, WorkerId: "w"}); err != nil {
			t.Fatal(err)
		}
	}
	pause := func(_ context.Context, d time.Duration) error {
		if d <= 0 {
			t.Errorf("a pause of %v", d)
		}
		return nil
	}
	damages := func() float64 {
		families, err := counted.Gatherer().Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "dpareto_store_damages" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatal("no such metric")
		return 0
	}
	if err := s.pass(t.Context(), pause); err != nil || damages() != 0 || log.Len() > 0 {
		t.Fatalf("a sound store: %v, %s", err, log.String())
	}
	err = db.Update(t.Context(), nil, func(w store.ReadWriter) error {
		key := "studies/b\x00trial/\x00\x00\x00\x00\x00\x00\x00\x01"
		value, err := w.Get(key)
		damaged := bytes.Clone(value)
		damaged[len(damaged)-1] ^= 1
		w.Put(key, damaged)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.pass(t.Context(), pause); err != nil || damages() != 1 || !strings.Contains(log.String(), "trial 1 of studies/b has a wrong checksum") {
		t.Errorf("%v, %v damages, log %s", err, damages(), log.String())
	}
	_, err = service.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: "studies/b/trials/1"})
	if err = toStatus(err); status.Code(err) != codes.DataLoss || !strings.Contains(err.Error(), "trial 1 of studies/b") {
		t.Errorf("the damaged trial: %v", err)
	}
	for _, name := range []string{"studies/a/trials/1", "studies/c/trials/1"} {
		if _, err := service.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
