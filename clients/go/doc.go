// Package dpareto is the Go client of a dpareto server: it creates studies, asks for
// configurations to train, reports measurements, and reads the Pareto front.
//
// A worker's loop is short. Ask blocks until the study has a trial for the worker. The
// worker keeps the trial as long as it renews the lease, which every report does:
//
//	client, err := dpareto.Dial("localhost:8321")
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
// # Retries
//
// While the server cannot be reached, unary calls are retried with growing pauses until
// the context is done, so that a worker survives a restart of its server. Requests that
// would change something twice carry an id, the same in every attempt, under which the
// server remembers its answer for a day. Each attempt has its own time limit (see
// [WithTimeout]), so that a context without a deadline means "however long it takes";
// [WithRetryNotice] reports the reason why a call waits. [Study.Watch] also continues
// where it stopped.
//
// # Authentication
//
// [WithToken] or [WithTokenFile] sends a bearer token with every call,
// [WithClientCertificate] shows a certificate. [WithCA] trusts an authority that the
// system does not know. A token is never sent to another machine in plain text unless
// [WithTokenInPlaintext] allows it.
//
// # Errors
//
// Errors name the attempted call and the reason of the refusal, including every invalid
// field of a request. status.Code of google.golang.org/grpc returns their code, and
// errors.Is finds [ErrDone], [ErrStop], [ErrLeaseLost] and the context's error in them.
package dpareto
