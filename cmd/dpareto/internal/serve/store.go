package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/storefile"
	"github.com/dpareto/dpareto/server/filemode"
)

// storeModes are the permissions that a store may give the group: the owner of a volume in Kubernetes
// is one.
const storeModes = 0o660

// storePath returns the file of the store. It refuses one that is missing or empty unless it should
// be made: the volume may not be mounted, and a new store would hide the old one. Only the default
// file is made without being told. It also refuses a file that everybody may read or write.
func (f *settings) storePath() (path string, isNew bool, err error) {
	path, err = storefile.Path(f.store)
	if err != nil {
		return "", false, err
	}
	info, err := os.Stat(path)
	isMissing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !isMissing:
		return "", false, fmt.Errorf("store: %w", err)
	case !isMissing && info.IsDir():
		return "", false, fmt.Errorf("store: %s is a folder, must be a file", path)
	case isMissing && f.store != "" && !f.create:
		return "", false, fmt.Errorf("store: %s does not exist: start a new store with --create, or mount its volume, or restore a backup (dpareto restore)", path)
	case !isMissing && info.Size() == 0 && !f.create:
		return "", false, fmt.Errorf("store: %s is empty: start a new store in it with --create, or restore a backup (dpareto restore --force)", path)
	case isMissing:
		return path, true, storefile.MakeFolder(path)
	}
	if err := filemode.Check(path, info, storeModes, "others can read or change all studies and lease tokens"); err != nil {
		return "", false, fmt.Errorf("store: %w", err)
	}
	return path, info.Size() == 0, nil
}
