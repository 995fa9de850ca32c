// Package choose is the room of decisions: which point of the front to take and what its ε means
// (choose.go), and the model's explanations (why.go, contour.go).
package choose
