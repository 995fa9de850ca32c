// Package serve holds the command dpareto serve: its settings, which come from flags, the
// environment and a file, and the ports that the server listens on.
package serve
