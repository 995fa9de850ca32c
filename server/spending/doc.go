// Package spending adds up what all runs of a study cost the training records, and reports whether
// results may have influenced which trials ran (design.go).
package spending
