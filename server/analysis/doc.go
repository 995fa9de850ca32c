// Package analysis explains a study by the model behind its posterior front: which parameters
// matter, slices and contours of the model, how well it predicts unseen results, and the
// expected gain of further runs.
//
// It turns requests into questions to suggest/analysis, and the answers into messages.
package analysis
