package private_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
)

// A large study that another server is deleting is gone, although the index still has trials of it.
func TestSuggestWhileDeleted(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	study := f.Create("p", servertest.PrivateSpec(4, 1000))
	f.One(study, "w")
	require.NoError(t, f.Records.Update(t.Context(), store.In(store.StudyScope("p")), func(tx *store.Tx) error {
		first, err := tx.Trial("p", 1)
		if err != nil {
			return err
		}
		for n := range int64(6000) {
			record := proto.CloneOf(first)
			record.Trial.Number, record.Trial.Revision = n+2, n+100
			if err := tx.PutTrial("p", record); err != nil {
				return err
			}
		}
		return tx.DeleteStudy("p")
	}))
	_, err := f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w"})
	servertest.WantCode(t, err, codes.NotFound, study)
	require.NoError(t, f.Records.DropImport(t.Context(), "p"))
}
