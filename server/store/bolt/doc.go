// Package bolt keeps a store in one bbolt file.
//
// A single writer commits: it takes every Update that is waiting, runs their
// functions one after the other in one bbolt transaction, and syncs once for all of
// them. Under load the cost of a sync is shared; without load an Update waits for
// nobody. A function that fails loses its own writes only.
package bolt
