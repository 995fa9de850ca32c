package server_test

import (
	"math/rand/v2"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// An import with a random fault is refused for a reason that is the client's, or gives a
// study that a server can go on with.
func TestImportMutants(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	study, _ := f.Eventful()
	exported := servertest.Lines(t, f.Export(study))
	remove := func() {
		require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	}
	remove()
	refused, accepted := 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		records := servertest.Parse(t, exported)
		mutate(random, records[random.IntN(len(records))].ProtoReflect())
		_, err := f.ImportRecords(records)
		switch code := status.Code(err); code {
		case codes.InvalidArgument, codes.Unimplemented:
			refused++
			continue
		case codes.Internal: // gRPC's own, for text that is not UTF-8, never happens here
			t.Errorf("seed %d: %v", seed, err)
			continue
		case codes.OK:
			accepted++
		default:
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		if again := servertest.Lines(t, f.Export(study)); again != servertest.Lines(t, records) {
			t.Errorf("seed %d: exported again: %s\nwant: %s", seed, again, servertest.Lines(t, records))
		}
		if _, err := f.Fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: study, Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED}); status.Code(err) == codes.Internal {
			t.Errorf("seed %d: front: %v", seed, err)
		}
		if _, err := f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "worker", Count: 12}); status.Code(err) == codes.Internal {
			t.Errorf("seed %d: suggest: %v", seed, err)
		}
		if seed%10 == 0 {
			f.Restart() // checks the store
		}
		remove()
	}
	if refused < 60 || accepted < 10 {
		t.Errorf("%d were refused and %d accepted", refused, accepted)
	}
}
