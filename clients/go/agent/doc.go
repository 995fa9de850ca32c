// Package agent runs trainers for a study: an [Agent] asks the server for trials,
// trains them with a number of parallel workers, and tells what was measured.
//
//	client.Studies = agent.GiveBack(client.Studies)
//	a := &agent.Agent{Study: client.Study("adult"), Trainer: t, Workers: 2, WorkerID: hostname}
//	err := a.Run(ctx)
//
// An agent is made for a rough world. While the server is away, training goes on until
// its next report and then waits; nothing is lost. An agent that is cancelled gives
// its trials back; one that is killed gets them again when it is started with the same
// worker id, and otherwise the server hands them to others when their leases run out.
package agent
