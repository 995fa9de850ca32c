// Package proposetest computes Figures 1 and 2 of "Revisiting Hyperparameter Tuning with
// Differential Privacy" (Ding and Wu, 2022) again: 100 candidates whose utilities are uniform
// over (0, 1), a lower bound of 0, and noise for ε_0 = 0.1 in every round.
//
// The paper shows that the number of rounds grows with the logarithm of (u* − u_0)/g, for 10
// parts. The noise then has scales 2 and 4 on utilities in [0, 1]: of a hundred candidates
// one always passes, the step doubles every time, and what comes out is a random
// candidate. Here the same is computed with less noise and with none, beside the selected
// utility, the guaranteed cost of the rounds, and the result of one private maximum for the
// same ε.
package proposetest
