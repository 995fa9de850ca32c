// Package fit holds the commands dpareto train and predict: a model of a study's configuration, and what it
// says of new rows.
package fit
