package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// compactBytes is how much of a store is rewritten in one transaction.
const compactBytes = 16 << 20

// Scratch creates an unlinked temporary file in the folder of the store or, if that fails, in
// [os.TempDir].
func (d *DB) Scratch() (*os.File, error) {
	return d.scratch(func(*os.File) error { return nil })
}

// Snapshot copies the current store to a scratch file, positioned at its start. Callers may read it
// slowly, whereas an open transaction would keep bbolt from reusing pages.
func (d *DB) Snapshot(ctx context.Context) (*os.File, error) {
	return d.scratch(func(file *os.File) error {
		if err := d.CopyTo(ctx, file); err != nil {
			return err
		}
		_, err := file.Seek(0, io.SeekStart)
		return err
	})
}

// scratch creates a scratch file with the content that fill writes.
func (d *DB) scratch(fill func(*os.File) error) (file *os.File, err error) {
	for _, folder := range []string{filepath.Dir(d.path), os.TempDir()} {
		if file, err = scratchIn(folder, filepath.Base(d.path), fill); err == nil {
			return file, nil
		}
	}
	return nil, store.Unwritable(err)
}

// scratchIn creates a scratch file in a folder for the store named name.
func scratchIn(folder, name string, fill func(*os.File) error) (*os.File, error) {
	file, err := store.ScratchIn(folder, name)
	if err != nil {
		return nil, err
	}
	if err = fill(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// CopyTo writes the current store to w, which should be fast (see Snapshot).
func (d *DB) CopyTo(ctx context.Context, w io.Writer) error {
	return d.view(ctx, func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(w)
		return err
	})
}

// WriteFile creates the file at path with the content that fill writes. It writes to a temporary
// file, syncs, verifies and renames it. With replace an existing file is kept as path.bak, replacing
// an earlier one. Without, it is an error that matches fs.ErrExist.
func WriteFile(ctx context.Context, path string, replace bool, fill func(*os.File) error) (*Report, error) {
	return writeFile(ctx, path, replace, false, fill)
}

// writeFile implements WriteFile. A salvaged copy may have faults.
func writeFile(ctx context.Context, path string, replace, salvaged bool, fill func(*os.File) error) (report *Report, err error) {
	err = WriteChecked(path, replace, fill, func(name string) (err error) {
		report, err = verifyCopy(ctx, name, salvaged)
		return err
	})
	return report, err
}

// verifyCopy is Verify of a copy, in which faults are an error unless it is salvaged.
func verifyCopy(ctx context.Context, name string, salvaged bool) (*Report, error) {
	report, err := Verify(ctx, name)
	if err == nil && len(report.Faults) > 0 && !salvaged {
		err = fmt.Errorf("the copy is not sound: %w", errors.Join(report.Faults...))
	}
	return report, err
}

// WriteChecked is WriteFile for any kind of file: check says whether it may appear at path.
func WriteChecked(path string, replace bool, fill func(*os.File) error, check func(name string) error) (err error) {
	if _, err := os.Lstat(path); err == nil && !replace {
		return &os.PathError{Op: "create", Path: path, Err: os.ErrExist}
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	name := file.Name()
	defer func() {
		if err != nil {
			_ = os.Remove(name) // it may not have been renamed
		}
	}()
	if err = fill(file); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = check(name)
	}
	if err != nil {
		return err
	}
	return install(name, path, replace)
}

// install moves a file to path durably.
func install(name, path string, replace bool) error {
	var err error
	if replace {
		if err = keep(path); err == nil {
			err = os.Rename(name, path)
		}
	} else if err = os.Link(name, path); err == nil { // unlike Rename, Link fails if path exists
		err = os.Remove(name)
	}
	if err != nil {
		return err
	}
	return syncFolder(path)
}

// Backup is the suffix of a replaced file.
const Backup = ".bak"

// keep links the file at path to its backup name. path exists at all times.
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

// syncFolder makes a new name in the folder of path durable. Windows has no such call for folders.
func syncFolder(path string) error {
	if onWindows {
		return nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Restore checks the file from and makes the store at path a copy of it. It returns store.ErrLocked
// if a server has either open. For replace see WriteFile.
func Restore(ctx context.Context, from, path string, replace bool) (*Report, error) {
	source, err := OpenReadOnly(from) // a file that is being written cannot be copied
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }() // nothing was written
	// Lock the file that is replaced against servers. Any other problem with it does not matter.
	if replaced, err := openFile(path, toSalvage); errors.Is(err, store.ErrLocked) {
		return nil, err
	} else if err == nil {
		defer func() { _ = replaced.Close() }()
	}
	return WriteFile(ctx, path, replace, func(file *os.File) error { return source.CopyTo(ctx, file) })
}

// Compact rewrites the store at path without unused space, and returns its size before and after in
// bytes. Unless discard is set, the old file is kept as path.bak. The store must be sound, and no
// other process may have it open.
func Compact(ctx context.Context, path string, discard bool) (before, after int64, err error) {
	report, err := Verify(ctx, path)
	if err == nil && len(report.Faults) > 0 {
		err = fmt.Errorf("%s is not sound: %w", path, errors.Join(report.Faults...))
	}
	if err != nil {
		return 0, 0, err
	}
	source, err := openFile(path, toWrite) // locks the file until the end
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

// Fill creates the file at path with records. For replace see WriteFile. check, unless nil, reads the
// sound store before it appears at path, and says whether it may.
func Fill(ctx context.Context, path string, replace bool, records store.Records, check func(store.KV) error) (report *Report, err error) {
	fill := func(file *os.File) error {
		return rewrite(file.Name(), func(target *bbolt.DB) error { return fillRecords(target, records) })
	}
	err = WriteChecked(path, replace, fill, func(name string) (err error) {
		if report, err = verifyCopy(ctx, name, false); err != nil || check == nil {
			return err
		}
		db, err := OpenReadOnly(name)
		if err != nil {
			return err
		}
		return errors.Join(check(db), db.Close())
	})
	return report, err
}

// fillRecords writes records to an empty file, in several transactions.
func fillRecords(target *bbolt.DB, records store.Records) error {
	if err := prepare(target, false); err != nil {
		return err
	}
	batch, size := store.NewOverlay(nil), 0
	flush := func() error {
		err := change(target, func(t tree) error { return t.apply(batch) })
		batch, size = store.NewOverlay(nil), 0
		return err
	}
	err := records(func(key string, value []byte) error {
		batch.Put(key, bytes.Clone(value))
		if size += len(key) + len(value); size < compactBytes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// rewrite turns the empty file at path into a store with the content that fill writes.
func rewrite(path string, fill func(*bbolt.DB) error) error {
	target, err := bbolt.Open(path, 0o600, &bbolt.Options{
		FreelistType: bbolt.FreelistMapType, NoSync: true, NoGrowSync: true,
	})
	if err != nil {
		return err
	}
	if err = fill(target); err == nil {
		err = commitTwice(target)
	}
	return errors.Join(err, target.Close()) // WriteFile syncs
}
