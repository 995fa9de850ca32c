// Package privatefront compares the ways to search on Adult and to publish what was found: every
// private_mode with its filters, and random_stopping with all that it can release, beside a study
// without a guarantee for the search. Each study runs on a server of its own with a real worker. The
// configurations that it publishes are trained again, outside of the server and without noise on the
// errors, to see how good they are.
package privatefront
