// Package reproduce computes tables and figures of published papers anew, with what is
// wrong in them put right and shown beside what they print.
package reproduce
