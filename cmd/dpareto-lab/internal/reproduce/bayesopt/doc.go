// Package bayesopt repeats the experiment of "Differentially Private Bayesian Optimization"
// (Kusner, Gardner, Garnett and Weinberger, 2015, Figure 1) on Adult: it estimates k_1, the
// correlation of the utilities of all hyperparameters on two validation sets that differ in
// one record, and computes what the paper's algorithms then do.
//
// The hyperparameters are the ridge penalty and the width of the loss of a linear support
// vector machine with the Huber loss, on a grid; the paper uses a kernel machine on
// another dataset. Neighbours here differ in one replaced record, as in the paper's theorems;
// in its experiment they have one record more or less.
package bayesopt
