// Package view shows the messages of dpareto.v1 to people and programs: as tables, as
// headings above them, and as JSON.
//
// JSON is the JSON mapping of the messages with the field names of the proto files;
// several messages are an array.
package view
