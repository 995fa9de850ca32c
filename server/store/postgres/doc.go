// Package postgres keeps a [store.KV] in a PostgreSQL database.
//
// Its tables (migrations/) are in the first schema of the connection's search_path, and nowhere else on
// it: records and totals by key, a row for every scope, and one row for the store itself. [Open] creates
// or upgrades them, and holds an advisory lock until Close: a schema has one server. Scan reads a few
// rows at a time, in the order of the bytes of keys.
//
// View runs in a read-only transaction of isolation level REPEATABLE READ, and so reads one snapshot.
// PostgreSQL shows a commit to others only when it is on disk.
//
// Update locks the rows of its scopes, in order, in a transaction of level READ COMMITTED: what it reads
// of its scopes is the latest, and cannot change before it ends. Updates of the same scopes that wait
// share a transaction, with a savepoint each, so that one that the database refuses loses its own writes
// only. A transaction that meets a deadlock or a serialization failure, or whose connection ends before
// it commits, is run again.
//
// A commit whose connection ends before the answer may have happened or not. The DB has then failed,
// as it has when the session with the advisory lock ends: it refuses all Updates, and its server must
// stop. Between the end of that session and its notice another server may have begun. Therefore a server
// counts up the store's epoch when it starts, which waits for transactions that are under way, and
// every later transaction of an earlier epoch is refused.
package postgres
