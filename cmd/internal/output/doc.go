// Package output prints data: as tables for people, as CSV, and as JSON.
//
// Tables round numbers to four significant digits; CSV and JSON give them in full. JSON
// is the JSON mapping of the messages of dpareto.v1 with the field names of the proto
// files; several messages are an array.
package output
