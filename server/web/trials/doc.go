// Package trials is the room of trials and of what changes a study: the table (trials.go), one trial
// and several side by side (trial.go), a configuration to queue (queue.go), and the other forms and
// buttons (actions.go).
package trials
