// Package trial holds the commands dpareto trial: they list, show, change and import
// trials, and ask for new ones.
package trial
