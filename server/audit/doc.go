// Package audit keeps a log of changes and their callers: one JSON object on a line for
// every call that changes something or hands out a whole study, and for every such call
// that was denied.
//
// A record holds names and results only: no value of a parameter or a metric, no text of
// an error, and neither tokens nor lease tokens.
//
// A record is with the operating system before the call is answered, so that the log
// survives the end of the process, also by kill -9. It is synced to disk once a second, so
// that a failure of the machine costs the records of at most that time; the changes
// themselves were synced before they were answered. Where the log cannot be written, calls
// that would change something are refused until it can: no change goes unrecorded but
// those that were under way.
package audit
