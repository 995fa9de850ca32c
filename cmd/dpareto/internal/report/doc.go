// Package report holds the command dpareto report: it writes the report of a study to a file.
package report
