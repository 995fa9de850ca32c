package server

import (
	"crypto/sha256"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/store"
)

// backupPiece is the length of the pieces of a backup, in bytes.
const backupPiece = 256 << 10

// BackupStore implements AdminService. The copy is made on disk first: the client reads it
// as slowly as it likes.
func (s *adminService) BackupStore(_ *dparetov1.BackupStoreRequest, stream grpc.ServerStreamingServer[dparetov1.BackupStoreResponse]) error {
	snapshot, err := s.store.Snapshot(stream.Context())
	if err != nil {
		return toStatus(err)
	}
	digest := sha256.New()
	var total int64
	piece := make([]byte, backupPiece)
	for err == nil {
		var n int
		if n, err = io.ReadFull(snapshot, piece); n == 0 {
			break
		}
		total += int64(n)
		digest.Write(piece[:n])
		if sent := stream.Send(&dparetov1.BackupStoreResponse{Data: piece[:n]}); sent != nil {
			return errors.Join(sent, snapshot.Close())
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	if err = errors.Join(err, snapshot.Close()); err != nil {
		return toStatus(err)
	}
	return stream.Send(&dparetov1.BackupStoreResponse{TotalBytes: total, Sha256: digest.Sum(nil)})
}

// storeStatus returns the error of a call that failed because of the store. It says why, and
// names the record that is damaged, but no file.
func storeStatus(err error) error {
	if unwritable, ok := errors.AsType[*store.UnwritableError](err); ok {
		return status.Errorf(codes.Unavailable,
			"the server cannot write its store (%s); nothing of this call was done, and calls that only read go on", unwritable.Reason)
	}
	what := "it"
	if damage, ok := errors.AsType[*store.DamageError](err); ok {
		what = damage.Record
	}
	return status.Errorf(codes.DataLoss, "the server's store is damaged: %s has to be restored from a backup", what)
}
