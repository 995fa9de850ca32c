// Package statement writes one ε down so that somebody can sign it: what it protects and for whom, what is
// released, what the search cost, what was accounted and what was executed, what an attacker can do, and the
// command that computes it again. A statement has three forms: text, HTML that prints, and JSON.
//
// Everything in it comes from the contract, called as the reader. What the server cannot know is marked for a
// person to fill in. [New] refuses, with a [RefusalError], statements that the study does not support.
//
// Files:
//
//   - statement.go: what a statement says
//   - make.go: the calls behind it, and refusals
//   - command.go: the command that computes ε again
//   - registry.go: the fields of the Differential Privacy Deployments Registry
//   - questions.go: the questions of NIST SP 800-226
//   - write.go: the three forms, with statement.html and statement.css
//
// Of the server it imports package expression alone, to evaluate a mechanism at a trial.
package statement
