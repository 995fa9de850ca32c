// Package list lists studies and trials: list.go makes the pages, fields.go says what they can be
// filtered and ordered by.
package list
