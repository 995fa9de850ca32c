// Package store keeps studies, trials, ledgers and releases durably.
//
// It has two layers. A [KV] is a small transactional key-value store with ordered
// keys: [View] reads a consistent snapshot, [Update] applies a function atomically
// and returns once its writes are on disk. Package bolt implements it in one file;
// any ordered store with transactions could. A [Store] lays typed records over it,
// keeps their indexes, and checks that they agree ([Store.Check]).
//
// Keys, with numbers as 8 bytes in big-endian order so that they sort:
//
//	store                        StoreRecord: format of all others
//	study/{study}                StudyRecord
//	trial/{study}/{number}       TrialRecord
//	open/{study}/{number}        OpenTrialRecord: index of trials that are not terminal
//	deleted/{study}/{number}     TrialRecord: deleted trials, whose privacy cost remains
//	revision/{study}/{revision}  RevisionRecord: index of the last changes
//	expiry/{time}{id}            RequestRecord: answers that are remembered, oldest first
//	request/{id}                 time of the answer: index by id
//	import/{study}               empty: the study is being imported; its trials are hidden
//	ledger/{ledger}              LedgerRecord
//	charge/{ledger}/{number}     ChargeRecord
//	release/{parent}/{number}    ReleaseRecord of "studies/{study}" or "ledgers/{ledger}"
//	repeat/{parent}/{caller}\0{request_id}
//	                             number of the release: index by request
//	ended/{uid}                  last revision of a deleted study whose publication was paid once
//
// Study ids contain no slash, so that no prefix of one study covers another's.
package store
