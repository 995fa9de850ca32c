// Package analysis explains a study by the model behind its posterior front: which parameters
// matter, slices and contours of the model, how well it predicts what it does not know, and what
// further runs are expected to gain.
//
// It turns requests into questions to suggest/analysis, and the answers into messages.
package analysis
