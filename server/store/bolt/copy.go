package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// compactBytes is how much of a store is rewritten in one transaction of a new file.
const compactBytes = 16 << 20

// Scratch creates a file that nobody else sees and that is gone when it is closed, or the
// process ends: beside the store or, where that cannot be, among temporary files.
func (d *DB) Scratch() (*os.File, error) {
	file, err := scratch(filepath.Dir(d.path), filepath.Base(d.path), "scratch")
	if err == nil {
		return file, nil
	}
	if file, another := scratch(os.TempDir(), filepath.Base(d.path), "scratch"); another == nil {
		return file, nil
	}
	return nil, store.Unwritable(err)
}

// Snapshot copies the store as it is now to a scratch file, positioned at its beginning.
// The copy takes as long as the disk does and not as long as who reads it: a snapshot
// keeps bbolt from reusing pages, so that the file grows, and from mapping a larger one.
// A store on a device that cannot be written any more is copied to another one.
func (d *DB) Snapshot(ctx context.Context) (*os.File, error) {
	file, err := d.snapshot(ctx, filepath.Dir(d.path))
	if errors.Is(err, store.ErrUnwritable) {
		if elsewhere, another := d.snapshot(ctx, os.TempDir()); another == nil {
			return elsewhere, nil
		}
	}
	return file, err
}

// snapshot makes a snapshot in a folder.
func (d *DB) snapshot(ctx context.Context, folder string) (*os.File, error) {
	file, err := scratch(folder, filepath.Base(d.path), "snapshot")
	if err != nil {
		return nil, store.Unwritable(err)
	}
	if err = d.CopyTo(ctx, file); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// CopyTo writes the store as it is now to w, which should be fast (see Snapshot).
func (d *DB) CopyTo(ctx context.Context, w io.Writer) error {
	return d.view(ctx, func(tx *bbolt.Tx) error {
		to := &copyWriter{ctx: ctx, w: w}
		_, err := tx.WriteTo(to)
		if to.err != nil {
			return to.err // bbolt keeps only its text
		}
		return err
	})
}

// copyWriter is a writer that a context ends. It keeps its error.
type copyWriter struct {
	ctx context.Context //nolint:containedctx // that of the call
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (w *copyWriter) Write(p []byte) (int, error) {
	if w.err = w.ctx.Err(); w.err != nil {
		return 0, w.err
	}
	n, err := w.w.Write(p)
	if err != nil {
		w.err = store.Unwritable(err)
	}
	return n, w.err
}

// WriteFile makes a file at path with what fill writes to it. It writes under another
// name, syncs, has the copy checked, and renames it, so that there is never half a file at
// path. With replace the file that is there is replaced and kept as path.bak; without, it
// is an error that matches fs.ErrExist.
func WriteFile(ctx context.Context, path string, replace bool, fill func(*os.File) error) (*Report, error) {
	sound := func(report *Report) error {
		if len(report.Faults) == 0 {
			return nil
		}
		return fmt.Errorf("the copy is not sound: %w", errors.Join(report.Faults...))
	}
	return writeFile(ctx, path, replace, fill, sound)
}

// writeFile does what WriteFile does, with a copy that accept takes.
func writeFile(ctx context.Context, path string, replace bool, fill func(*os.File) error, accept func(*Report) error) (_ *Report, err error) {
	if !replace {
		if _, err := os.Lstat(path); err == nil {
			return nil, &os.PathError{Op: "create", Path: path, Err: os.ErrExist}
		}
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return nil, err
	}
	name := file.Name()
	defer func() {
		if err != nil {
			_ = os.Remove(name) // it may not have been renamed
		}
	}()
	err = fill(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	report, err := Verify(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := accept(report); err != nil {
		return report, err
	}
	return report, install(name, path, replace)
}

// install moves a file to path, durably.
func install(name, path string, replace bool) error {
	if replace {
		if err := keep(path); err != nil {
			return err
		}
		if err := os.Rename(name, path); err != nil {
			return err
		}
		return syncFolder(path)
	}
	// A link, unlike a rename, replaces nothing.
	if err := os.Link(name, path); err != nil {
		return err
	}
	return errors.Join(os.Remove(name), syncFolder(path))
}

// Backup is the suffix under which a replaced file is kept.
const Backup = ".bak"

// keep gives the file at path another name, too. There is a file at path at all times.
func keep(path string) error {
	backup := path + Backup
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.Remove(backup); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Link(path, backup)
}

// syncFolder makes a new name in the folder of path durable.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Restore makes the store at path a copy of the file from, which is checked. It returns
// store.ErrLocked when a server has either open. For replace see WriteFile.
func Restore(ctx context.Context, from, path string, replace bool) (_ *Report, err error) {
	source, err := OpenReadOnly(from) // a file that is being written cannot be copied
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }() // nothing was written
	if err := notInUse(path); err != nil {
		return nil, err
	}
	return WriteFile(ctx, path, replace, func(file *os.File) error { return source.CopyTo(ctx, file) })
}

// notInUse returns store.ErrLocked if a process has the file open. Whatever else is wrong
// with it does not matter.
func notInUse(path string) error {
	db, _, err := openFile(path, true)
	if err == nil {
		return db.Close()
	}
	if errors.Is(err, store.ErrLocked) {
		return err
	}
	return nil
}

// Compact rewrites the store at path without the space that holds nothing, and returns the
// sizes before and after. Without discard the old file is kept as path.bak. The store must
// be sound, and no other process have it open.
func Compact(ctx context.Context, path string, discard bool) (before, after int64, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, 0, err
	}
	report, err := Verify(ctx, path)
	if err != nil {
		return 0, 0, err
	}
	if len(report.Faults) > 0 {
		return 0, 0, fmt.Errorf("%s is not sound: %w", path, errors.Join(report.Faults...))
	}
	source, _, err := openFile(path, false) // keeps others out until the end
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	compacted, err := WriteFile(ctx, path, true, func(file *os.File) error {
		return rewrite(file.Name(), func(target *bbolt.DB) error { return bbolt.Compact(target, source, compactBytes) })
	})
	if err != nil {
		return 0, 0, err
	}
	if discard {
		err = errors.Join(os.Remove(path+Backup), syncFolder(path))
	}
	return report.Bytes, compacted.Bytes, err
}

// rewrite makes a store of the empty file at path that has what fill writes.
func rewrite(path string, fill func(*bbolt.DB) error) error {
	target, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: time.Second, FreelistType: bbolt.FreelistMapType, NoSync: true, NoGrowSync: true,
	})
	if err != nil {
		return err
	}
	if err = fill(target); err == nil {
		err = stopped(target)
	}
	return errors.Join(err, target.Sync(), target.Close())
}
