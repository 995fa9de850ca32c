// Package restrict confines a designer to configurations that meet conditions: fixed
// values of parameters, and upper bounds of functions that are known exactly. See [Within].
package restrict
