// Package agent holds the command dpareto agent: it trains the trials of a study with a
// built-in trainer, and shows what its workers do.
package agent
