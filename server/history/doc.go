// Package history reads the trials of a study, for suggestions, fronts, metrics and analyses. Within
// one spec a completed trial never changes, so each is read and converted once, and a later view of
// the study reads only the trials that changed since the view before.
//
// It stands on packages study and spec. It knows no designer and no front.
package history
