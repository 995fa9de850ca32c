// Package dpareto is the Go client of a dpareto server: it creates studies, asks
// for configurations to train, tells what was measured, and reads the Pareto front.
//
// The loop of a worker is short. Ask blocks until the study has a trial for the
// worker; the trial is the worker's for as long as its lease is renewed, which
// every report does:
//
//	client, err := dpareto.Dial("localhost:7400")
//	...
//	defer client.Close()
//	study := client.Study("adult")
//	for {
//		trial, err := study.Ask(ctx, "worker-1")
//		if errors.Is(err, dpareto.ErrDone) {
//			break
//		}
//		...
//		accuracy := train(trial.Float("learning_rate"), trial.Int("epochs"))
//		err = trial.Complete(ctx, dpareto.Metrics{"accuracy": {accuracy}})
//		...
//	}
//
// # Servers that come and go
//
// Calls that are safe to repeat are repeated, with growing pauses, for as long as
// the server cannot be reached and the context lasts, so that a worker survives the
// restart of its server. They are everything that only reads, and everything that
// changes a study or a trial: requests that the server could take for another one carry
// an id, the same in every attempt, under which it remembers its answer for a day. A
// single attempt has a time limit of its own (see [WithTimeout]). A context
// without a deadline therefore means "however long it takes"; [WithRetryNotice] tells
// a user what is being waited for. [Study.Watch], too, goes on where it was.
//
// # Servers that ask who calls
//
// [WithToken] or [WithTokenFile] sends a bearer token with every call, [WithClientCertificate]
// shows a certificate. [WithCA] trusts the authority of a server whose certificate the
// system does not know. A token never goes over a connection in plain text to another
// machine, unless [WithTokenInPlaintext] allows it.
//
// # Errors
//
// Errors say what was attempted and why the server refused, every field of an
// invalid request included. status.Code of google.golang.org/grpc gives their code,
// and errors.Is finds [ErrDone], [ErrStop], [ErrLeaseLost] and the error of the
// context in them.
package dpareto
