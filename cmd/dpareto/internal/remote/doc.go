// Package remote is what commands that call a server share: the flags of the connection,
// commands with a client, and the errors of calls.
package remote
