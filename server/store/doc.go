// Package store keeps studies, trials, ledgers and releases durably.
//
// It has two layers. A [KV] is a small transactional key-value store with ordered
// keys: View reads a consistent snapshot, Update applies a function atomically
// and returns once its writes are on disk. Package bolt implements it in one file, package postgres in a
// database that several processes share ([Shared]). A [Store] lays typed records over it,
// keeps their indexes, and checks that they agree ([Store.Check]).
//
// Every record belongs to a [Scope]: a study, a ledger, or the store itself. An Update names the
// scopes that it reads and writes. A key is the scope, a zero byte, the kind of the record, a
// slash, and what tells it apart from others of its kind; numbers are 8 bytes in big-endian
// order, so that they sort:
//
//	studies/{study}
//	    study/                  StudyRecord
//	    trial/{number}          TrialRecord
//	    underway/{number}{step} Measurement: of a trial that a worker holds
//	    unfinished/{number}     OpenTrialRecord: index of trials that are not terminal
//	    attempt/{number}{attempt}
//	                            Attempt: a past attempt at a trial, with its measurements
//	    deleted/{number}        TrialRecord: deleted trials, whose privacy cost remains
//	    worker/{worker_id}      name of the principal that alone uses it
//	    revision/{revision}     RevisionRecord: index of the last changes
//	    import/                 empty: the study is being imported; its trials are hidden
//	ledgers/{ledger}
//	    ledger/                 LedgerRecord
//	    charge/{number}         ChargeRecord
//	studies/{study} and ledgers/{ledger}
//	    request/{caller}\0{id}  RequestRecord: answers that are remembered
//	    release/{number}        ReleaseRecord
//	    repeat/{caller}\0{request_id}
//	                            number of the release: index by request
//	store
//	    format/                 StoreRecord: format of all records
//
// Every value is stored after a CRC-32C of its key and value, which every read checks: a damaged
// value is an error that matches [ErrCorrupt] and names the record, never a wrong value. For
// every scope, the key "\0{scope}" has the number of its records and a sum of their hashes
// (TotalRecord), so that a record that is lost, or older than the last commit, is found
// ([ReadTx.Verify]).
//
// While a worker holds a trial, each measurement is a record of its own, so that adding one costs the
// same however many there are. When the trial completes they move into its record, which one read
// returns whole; when the attempt ends otherwise they move into the attempt's. The trial's record
// counts its parts.
package store
