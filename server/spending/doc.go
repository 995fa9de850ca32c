// Package spending adds up what all runs of a study cost the training records, and tells what
// results may have decided of them (design.go).
package spending
