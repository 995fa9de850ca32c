// Package analyze holds the command dpareto study analyze: what the model of a study says of its
// parameters.
package analyze
