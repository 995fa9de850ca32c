// Package maintenance passes over the store in the background: it looks for damage, and forgets
// answers to requests that are too old.
package maintenance
