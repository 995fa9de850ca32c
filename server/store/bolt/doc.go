// Package bolt keeps a store in one bbolt file.
//
// A single writer commits: it takes every Update that is waiting, runs their
// functions one after the other in one bbolt transaction, and syncs once for all of
// them. Under load the cost of a sync is shared; without load an Update does not wait
// for others. A function that fails loses its own writes only. Others see the writes
// of an Update when they are durable.
//
// When the disk is full, writes are refused and each is tried anew; reads go on. After any
// other failed commit the state of the file is unknown: everything is refused and [DB.Failed] is
// closed, for the process to end with the reason and be started again. A damaged page is an
// error that matches store.ErrCorrupt, never a panic or a fault.
//
// [Verify], [Restore], [Compact], [Salvage] and [WriteFile] work on files that no server
// uses; [DB.Snapshot] copies one that does.
package bolt
