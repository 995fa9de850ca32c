package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// Bounds on the trials of an import that are written together.
const (
	importTrials = 500
	importBytes  = 1 << 20
)

// Options configures a Transfer. All fields are required.
type Options struct {
	Studies    *study.Studies
	Store      *store.Store
	Logger     *slog.Logger
	Now        func() time.Time
	Background *background.Group
}

// Transfer implements the AdminService calls that export, import and back up. It is safe for
// concurrent use.
type Transfer struct {
	studies    *study.Studies
	store      *store.Store
	logger     *slog.Logger
	now        func() time.Time
	background *background.Group
}

// New returns a Transfer. In the background it removes what imports and deletions left behind at a
// crash, its own or another server's.
func New(o Options) *Transfer {
	t := &Transfer{studies: o.Studies, store: o.Store, logger: o.Logger, now: o.Now, background: o.Background}
	t.background.Go(t.tidy)
	return t
}

// dropEvery is how often a server looks for remains. It also removes what another server has left: that one may
// never come back.
const dropEvery = 10 * time.Minute

// tidy removes the remains of imports and deletions now and then, until the server is closed.
func (t *Transfer) tidy() {
	for {
		t.dropImports()
		select {
		case <-time.After(dropEvery):
		case <-t.background.Context().Done():
			return
		}
	}
}

// ImportStudy implements AdminService. It writes trials in pieces, which stay hidden until the study
// itself is written last. So large imports neither fill the memory nor hold up other calls.
func (t *Transfer) ImportStudy(stream grpc.ClientStreamingServer[dparetov1.ImportStudyRequest, dparetov1.ImportStudyResponse]) error {
	resp, err := t.importStudy(stream)
	if err != nil {
		return failure.Status(err)
	}
	return stream.SendAndClose(resp)
}

func (t *Transfer) importStudy(stream grpc.ClientStreamingServer[dparetov1.ImportStudyRequest, dparetov1.ImportStudyResponse]) (_ *dparetov1.ImportStudyResponse, err error) {
	ctx := stream.Context()
	i := &studyImport{studies: t.studies, digest: newRecordDigest(), orders: make(map[int64]bool), revisions: make(map[int64]bool), requests: make(map[string]bool), counts: new(dparetov1.TrialCounts)}
	if err := i.receive(stream); errors.Is(err, io.EOF) {
		return nil, invalid.Field("record", "must be set: the stream is empty")
	} else if err != nil {
		return nil, err
	}
	free, ok, err := t.store.TryLock(ctx, resource.StudyName(i.id))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, status.Errorf(codes.Aborted, "study %s is being imported or deleted by another call", resource.StudyName(i.id))
	}
	defer free()
	uid := "uid " + i.record.GetStudy().GetUid()
	free, ok, err = t.store.TryLock(ctx, uid)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, status.Errorf(codes.Aborted, "another call imports a study with the %s", uid)
	}
	defer free()
	existing, err := t.beginImport(ctx, i)
	if err != nil {
		return nil, err
	}
	if existing == nil {
		defer func() {
			if err == nil {
				return
			}
			study.DropRemains(ctx, t.store, t.logger, i.id)
		}()
	}
	for {
		err := i.receive(stream)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if existing == nil && (len(i.waiting)+len(i.releases) >= importTrials || i.bytes >= importBytes) {
			if err := t.store.Update(ctx, store.In(store.StudyScope(i.id)), i.flush); err != nil {
				return nil, err
			}
			i.flushed()
		}
	}
	if err := i.checkWhole(); err != nil {
		return nil, err
	}
	if existing != nil {
		return t.compareImport(ctx, i)
	}
	err = t.store.Update(ctx, i.scopes(), func(tx *store.Tx) error {
		if err := i.flush(tx); err != nil {
			return err
		}
		if err := i.charge(tx, t.now()); err != nil {
			return err
		}
		tx.EndImport(i.id)
		i.record.Lineage = rand.Uint64()
		return tx.PutStudy(i.id, i.record)
	})
	if err != nil {
		return nil, err
	}
	return &dparetov1.ImportStudyResponse{Study: t.studies.Present(i.record), Trials: i.trials}, nil
}

// beginImport marks the study as being imported. If the study exists, it returns that instead.
func (t *Transfer) beginImport(ctx context.Context, i *studyImport) (existing *storev1.StudyRecord, err error) {
	// No other call imports this study now, so a mark is left over from a crash.
	if err := t.store.DropImport(ctx, i.id); err != nil {
		return nil, err
	}
	// Derived values are cached by uid, so uids must be unique. This check holds until the end: uids
	// of new studies are random, and no other call may import this uid meanwhile.
	err = t.store.View(ctx, func(tx *store.ReadTx) error {
		if err := tx.FindStudy(i.id); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return tx.Studies("", func(other *storev1.StudyRecord) (bool, error) {
			if other.GetStudy().GetUid() == i.record.GetStudy().GetUid() {
				return false, i.invalid("record.study.study.uid", "is already the uid of %s", other.GetStudy().GetName())
			}
			return true, ctx.Err()
		})
	})
	if err != nil {
		return nil, err
	}
	err = t.store.Update(ctx, i.scopes(), func(tx *store.Tx) error {
		existing, err = tx.Study(i.id)
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		existing = nil
		if err := study.CheckNew(t.studies, tx, i.id, i.record.GetStudy().GetSpec()); err != nil {
			return err
		}
		i.mark = tx.BeginImport(i.id)
		return nil
	})
	return existing, err
}

// compareImport returns the response for a study that exists: success if it equals the import.
func (t *Transfer) compareImport(ctx context.Context, i *studyImport) (*dparetov1.ImportStudyResponse, error) {
	existing := newRecordDigest()
	resp := &dparetov1.ImportStudyResponse{Existed: true}
	err := t.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := study.FindStudy(tx, i.id)
		if err != nil {
			return err
		}
		if err := exportStudy(ctx, tx, i.id, existing.add); err != nil {
			return err
		}
		resp.Study = t.studies.Present(record)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if existing.sum() != i.digest.sum() {
		return nil, status.Errorf(codes.AlreadyExists, "study %s exists and differs; delete it first to replace it", resource.StudyName(i.id))
	}
	return resp, nil
}

// dropImports removes what imports and deletions left behind at a crash.
func (t *Transfer) dropImports() {
	var ids []string
	err := t.store.View(t.background.Context(), func(tx *store.ReadTx) error {
		return tx.Imports(func(id string) error { ids = append(ids, id); return nil })
	})
	for _, id := range ids {
		free, ok, failed := t.store.TryLock(t.background.Context(), resource.StudyName(id))
		if failed != nil || !ok {
			err = errors.Join(err, failed)
			continue // a client imports it, or imports it again, which removes the remains
		}
		err = errors.Join(err, t.store.DropImport(t.background.Context(), id))
		free()
	}
	if err != nil && t.background.Context().Err() == nil {
		t.logger.ErrorContext(t.background.Context(), "cannot remove the remains of studies", "error", err)
	}
}

// studyImport is an import in progress.
type studyImport struct {
	studies  *study.Studies
	line     int // number of records received
	id       string
	mark     string // see store.Tx.BeginImport
	record   *storev1.StudyRecord
	compiled *spec.Study
	digest   recordDigest

	waiting  []*dparetov1.ExportedTrial   // to be written
	releases []*dparetov1.ExportedRelease // to be written
	bytes    int
	trials   int64
	charges  []ledger.Charge // of releases, to the study's test ledger

	// From the records so far.
	counts    *dparetov1.TrialCounts
	live      []int64 // numbers, ascending
	deleted   int64   // number of the last deleted trial
	orders    map[int64]bool
	revisions map[int64]bool // of trials, and the study's own_revision
	released  int64          // number of the last release
	requests  map[string]bool
}

// receive receives and checks a record. It returns io.EOF at the end of the stream.
func (i *studyImport) receive(stream grpc.ClientStreamingServer[dparetov1.ImportStudyRequest, dparetov1.ImportStudyResponse]) error {
	req, err := stream.Recv()
	if err != nil {
		return err
	}
	i.line++
	if path := invalid.FindUnknown("", req.ProtoReflect()); path != "" {
		return status.Errorf(codes.Unimplemented, "line %d: %s is not supported by this version of the server", i.line, path)
	}
	record := req.GetRecord()
	switch r := record.GetRecord().(type) {
	case *dparetov1.ExportedRecord_Study:
		if i.record != nil {
			return i.invalid("record.study", "is a second study; import each study in its own stream")
		}
		err = i.study(r.Study)
	case *dparetov1.ExportedRecord_Trial:
		if i.record == nil {
			return i.invalid("record.trial", "comes before the study")
		}
		if i.released > 0 {
			return i.invalid("record.trial", "comes after a release")
		}
		err = i.trial(r.Trial)
		i.trials++
		i.waiting = append(i.waiting, r.Trial)
		i.bytes += proto.Size(r.Trial)
	case *dparetov1.ExportedRecord_Release:
		if i.record == nil {
			return i.invalid("record.release", "comes before the study")
		}
		err = i.release(r.Release)
		i.releases = append(i.releases, r.Release)
		i.bytes += proto.Size(r.Release)
	default:
		return i.invalid("record", "one of study, trial and release must be set")
	}
	if err != nil {
		return i.atLine(err)
	}
	return i.digest.add(record)
}

// flush writes the waiting trials and releases.
func (i *studyImport) flush(tx *store.Tx) error {
	goesOn, err := tx.IsImporting(i.id, i.mark)
	if err != nil {
		return err
	}
	if !goesOn {
		return status.Errorf(codes.Aborted, "the import of %s was interrupted; try again", resource.StudyName(i.id))
	}
	for _, trial := range i.waiting {
		put := tx.PutTrial
		if trial.GetDeleted() {
			put = tx.DeleteTrial
		}
		record := trialRecord(trial)
		if trial.GetTrial().GetLease() != nil {
			record.LeaseEnd = study.LeaseEnd(i.studies, &tx.ReadTx, i.compiled.LeaseDuration()) // its server's time means nothing here
		}
		if err := tx.PutParts(i.id, record); err != nil {
			return err
		}
		if err := put(i.id, record); err != nil {
			return err
		}
	}
	for _, r := range i.releases {
		_, number, err := resource.ParseReleaseName("", r.GetRelease().GetName())
		if err != nil {
			return err
		}
		if err := tx.PutRelease(resource.StudyName(i.id), number, releaseRecord(r)); err != nil {
			return err
		}
	}
	return nil
}

// flushed drops the written trials and releases.
func (i *studyImport) flushed() { i.waiting, i.releases, i.bytes = i.waiting[:0], i.releases[:0], 0 }

// scopes returns the scopes that the first and last transactions of an import use.
func (i *studyImport) scopes() store.Scopes {
	return store.In(append(study.LedgerScopes(i.record.GetStudy().GetSpec()), store.StudyScope(i.id), store.StoreScope)...)
}

// invalid returns an error about a field of the current record.
func (i *studyImport) invalid(field, format string, args ...any) error {
	return i.atLine(invalid.Field(field, format, args...))
}

// atLine adds the line number to an error about a record.
func (i *studyImport) atLine(err error) error {
	s := status.Convert(err)
	if s.Code() != codes.InvalidArgument {
		return err
	}
	p := s.Proto()
	p.Message = fmt.Sprintf("line %d: %s", i.line, p.GetMessage())
	return status.FromProto(p).Err()
}

// checkWhole checks what depends on the whole stream.
func (i *studyImport) checkWhole() error {
	i.line = 1
	if counts := i.record.GetStudy().GetTrialCounts(); !proto.Equal(counts, i.counts) {
		return i.invalid("record.study.study.trial_counts", "must equal the counts of the trials, {%v}, are {%v}",
			strings.TrimSpace(i.counts.String()), strings.TrimSpace(counts.String()))
	}
	return nil
}

// isLive reports whether the import has an undeleted trial with a number.
func (i *studyImport) isLive(number int64) bool {
	_, found := slices.BinarySearch(i.live, number)
	return found
}
