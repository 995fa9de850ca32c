// Package study holds the commands dpareto study: they create, show, change, follow and
// delete studies, and write study files.
package study
