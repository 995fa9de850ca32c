// Package cli assembles the program dpareto from its groups of commands. Each group is a
// package beside this one:
//
//   - serve, agent, demo: processes that run for long
//   - study, trial, front, report, statement: what a server keeps
//   - fit: train and predict, a model of a study's configuration
//   - privacy, estimate: computations, most without a server; papers: calculators of two
//     papers, which are commands of privacy
//   - publish: ledgers and releases
//   - data: datasets
//   - operate: backups, tokens and the like, for those who run a server
//
// They share remote (calls of a server), view (messages as tables) and the frame of all
// programs, cmd/internal/command.
package cli
