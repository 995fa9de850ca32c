// Package analysis explains a [model.Model]: which parameters an objective depends on
// ([Importance]), and how it changes along one parameter or two ([Values], [Predict]).
package analysis
