// Package cli holds the commands of dpareto-lab.
package cli
