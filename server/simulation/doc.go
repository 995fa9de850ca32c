// Package simulation runs the whole server, without sockets or files, through histories that are
// drawn from seeds, and checks what clients were told against a model. Its code is all in tests:
// make test runs 300 histories, make simulate as many as asked for, and -seed repeats one.
//
// A history is a world (world_test.go) inside a bubble of testing/synctest. Time in the bubble is
// true time: it passes only while everybody waits, so a history of minutes takes milliseconds.
// Everything that is outside of the server in production is simulated:
//
//   - The disk (disk_test.go) is an ordered store.KV in memory. Updates take time, are refused, fail
//     at the commit, or run their function twice. The process may die before a commit, or between
//     the commit and the answer; what was committed stays for the next process.
//   - The clock (clock_test.go) that the server reads is true time plus an offset, which steps both
//     ways, also while the server is down.
//   - The network (network_test.go) calls the server's services like gRPC does. It loses, doubles and
//     delays calls and answers, so that they overtake each other.
//   - Clients (clients_test.go): workers, of whom some share a worker id, ask, report, renew,
//     complete, release, fail, vanish, repeat themselves and come late. An operator creates,
//     changes, stops, deletes and publishes. Watchers follow a study.
//
// Each actor is a goroutine with a generator of its own. Since their steps are separated by random
// numbers of nanoseconds, at most one of them acts at a time, and the order in which they act
// follows from the seed. The same seed gives the same history, down to every answer, but for the
// names that the server draws from the system's entropy: tokens and uids.
//
// The model (model_test.go) sees each call as the server received and answered it, whether or not
// the answer arrives. In the end the network, the disk and the clock calm down, what is open is
// completed, and the server's state is compared with its answers. The invariants:
//
//   - what was acknowledged is there, and what was refused is not;
//   - in true time a trial has at most one live lease;
//   - a trial whose worker is gone is there for the next one once a lease has passed since its last
//     sign of life, or since the server started;
//   - a trial completes once, with measurements of one attempt, namely those that were acknowledged,
//     and with that attempt's start and shard;
//   - every attempt at a trial is there once, with the measurements that were acknowledged;
//   - a repeated request has the same answer;
//   - a worker id belongs to one principal in a study;
//   - a watch sees every trial's final state, in the order of revisions;
//   - a fixed design is not released if it was changed after a result could be read;
//   - a ledger has every acknowledged charge, and has never spent less than their sum;
//   - a private study has charged every hand-out of its trials;
//   - a private study that is deleted and created anew pays again, or says that it is not the first;
//   - the store passes its own checks: counts, indexes and totals equal the records.
//
// The faults of faults_test.go are put into the server one by one, to show that the histories find
// each of them.
package simulation
