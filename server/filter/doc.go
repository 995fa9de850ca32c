// Package filter restricts and orders lists of resources by expressions: filters in the
// syntax of AIP-160 (https://google.aip.dev/160), such as
//
//	state = SUCCEEDED AND (metrics.error < 0.1 OR labels.keep:*) -worker:test
//
// and orders in that of AIP-132 (https://google.aip.dev/132), such as
//
//	metrics.error, create_time desc
//
// The parser of go.einride.tech/aip/filtering makes numbers of unquoted values, so that the text 007
// becomes 7, refuses -15e-1, and gives no positions of unknown fields.
//
// What a field means is the caller's business. Both are checked against the fields when
// they are compiled, and what they cost is bounded by limits on their size.
package filter
