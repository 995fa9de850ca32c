// Package cli is the command dpareto: its subcommands, flags, exit codes and messages.
//
// Data go to standard output, everything else to standard error.
package cli
