// Package report writes down a study for people who were not there: its question, its front, what is
// recommended at a few ε, what is guaranteed and what the whole search has spent, what was run, and how
// to repeat it. The command line writes it as one printable file, and the page shows the same.
//
// Everything in it comes from the contract, called as the reader. It has no scripts.
//
// Files:
//
//   - report.go: what a report says; collect.go: the calls behind it
//   - write.go: as HTML, with report.html and the style of package look
package report
