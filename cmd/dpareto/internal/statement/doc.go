// Package statement holds the command dpareto statement: it writes one ε of a study down, to be signed.
package statement
