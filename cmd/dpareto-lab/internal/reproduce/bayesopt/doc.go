// Package bayesopt repeats the experiment of "Differentially Private Bayesian Optimization"
// (Kusner, Gardner, Garnett and Weinberger, 2015, Figure 1) on Adult: it estimates k_1, the
// correlation of the utilities of all hyperparameters on two validation sets that differ in
// one record, computes what the paper's algorithms then do, and runs Algorithm 1.
//
// The machines are as in the paper support vector machines with an RBF kernel at the points
// of a Sobol sequence, with fewer training records; or linear support vector machines with the
// Huber loss over a grid of their ridge penalty and the width of the loss.
package bayesopt
