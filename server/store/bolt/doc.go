// Package bolt keeps a store in one bbolt file.
//
// A single writer commits: it takes every Update that is waiting, runs their
// functions one after the other in one bbolt transaction, and syncs once for all of
// them. Under load the cost of a sync is shared; without load an Update waits for
// nobody. A function that fails loses its own writes only.
//
// Of a thousand studies no two writes of a commit share a page, and bbolt writes whole
// pages. So a commit puts all its writes into one record of a journal, a bucket of the
// same file, and keeps them in memory, where readers look first. When they have become
// many they are moved to their places in the order of their keys, many to a page, a few
// with every commit; then their records go. Opening a file reads its journal.
//
// After a failed commit nothing is written until the failed transaction is taken back
// on disk and the file opened again, which is tried every second ([DB.Health]). A damaged
// file is an error that matches store.ErrCorrupt, never a panic or a fault. Only of pages
// that lead to themselves this holds for [Verify] alone, which trusts nothing: bbolt, by
// which keys in their places are read, would follow them for ever.
//
// [Verify], [Restore], [Compact], [Salvage] and [WriteFile] work on files that no server
// uses; [DB.Snapshot] copies one that does.
package bolt
