// Package privatefront compares a Pareto front that may be published with one that may
// not: the bundled study adult-private with and without its private_mode, on a server with
// real workers. The configurations that each study reports are trained again, outside of
// the server and without noise on the result, to see how good they are.
package privatefront
