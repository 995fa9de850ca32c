// Package postgres keeps a [store.KV] in a PostgreSQL database.
//
// Its tables (migrations/) are in the first schema of the connection's search_path, and nowhere else on
// it: records and totals by key, a row for every scope, and one row for the store itself. [Open] creates
// or upgrades them. Scan reads a few rows at a time, in the order of the bytes of keys.
//
// View runs in a read-only transaction of isolation level REPEATABLE READ, and so reads one snapshot.
// PostgreSQL shows a commit to others only when it is on disk.
//
// Update locks the rows of its scopes, in order, in a transaction of level READ COMMITTED: it reads the
// latest state of its scopes, which cannot change before it ends. Updates of the same scopes that wait in
// one process share a transaction, with a savepoint each, so that one that the database refuses loses its
// own writes only. A transaction that meets a deadlock or a serialization failure, or whose connection ends
// before it commits, is run again. A commit whose connection ends before the answer may have happened or
// not, which its callers are told.
//
// Any number of processes use a store ([store.Shared]). Each has a session that holds an advisory lock with
// the others and hears their announcements (own.go, announce.go), and another for the locks that it takes
// for a while (lock.go); sessions that end are replaced. What a process remembers of an earlier database
// server is void, since a standby that was promoted may lack the last commits: it is told before it can read
// from another one. An Update goes by the clock of the database (clock.go).
//
// A tool that fills, copies or compacts a store has it alone (Options.Alone): the lock is its own then. A
// server may not have noticed yet that its session has ended. Therefore the tool counts up the store's epoch
// when it starts, which waits for transactions that are under way, and every later transaction of an earlier
// epoch is refused: that server has failed.
package postgres
