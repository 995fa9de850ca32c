// Package expression compiles and evaluates the expressions of a study: CEL over the
// study's parameters.
//
// Integer parameters have type int, double and discrete parameters double,
// categorical parameters string. Besides CEL's own operators there are the functions
// of its math extension (math.sqrt, math.ceil, math.greatest, ...) and math.exp,
// math.log and math.pow over doubles. Evaluation is bounded in cost, so that no
// expression can hold up the server.
package expression
