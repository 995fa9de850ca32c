// Package console shows progress on the error stream beside log lines: bars below the
// log where the stream is a terminal, a few plain lines otherwise.
package console
