// Package call keeps what is known of a call besides its request: its identifier, and
// who makes it. It adds both, with the trace, to the records of a log.
package call
