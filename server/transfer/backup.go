package transfer

import (
	"crypto/sha256"
	"errors"
	"io"

	"google.golang.org/grpc"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/failure"
)

// backupPiece is the size of a backup's messages, in bytes.
const backupPiece = 256 << 10

// BackupStore implements AdminService. It copies the store to disk first, so a slow client holds up
// nothing.
func (t *Transfer) BackupStore(_ *dparetov1.BackupStoreRequest, stream grpc.ServerStreamingServer[dparetov1.BackupStoreResponse]) error {
	snapshot, err := t.store.Snapshot(stream.Context())
	if err != nil {
		return failure.Status(err)
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
		return failure.Status(err)
	}
	return stream.Send(&dparetov1.BackupStoreResponse{TotalBytes: total, Sha256: digest.Sum(nil)})
}
