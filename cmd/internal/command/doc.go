// Package command is the frame of the programs dpareto and dpareto-lab: what their
// commands read and write, the flags that many of them have, the log, and exit codes.
//
// Data go to standard output, everything else to standard error.
package command
