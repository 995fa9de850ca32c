// Package agent runs trainers for a study: an [Agent] asks the server for trials,
// trains them with parallel workers, and reports the measurements.
//
//	client.Studies = agent.GiveBack(client.Studies)
//	a := &agent.Agent{Study: client.Study("adult"), Trainer: t, Workers: 2, WorkerID: hostname}
//	err := a.Run(ctx)
//
// While the server is away, training continues until its next report and then waits;
// nothing is lost. A cancelled agent gives its trials back. A killed agent gets them
// again when it restarts with the same worker id; otherwise the server hands them to
// others when their leases run out.
package agent
