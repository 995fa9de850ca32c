// Package words says what people read of metrics, parameters, values, guarantees and budgets on the
// page. Package [github.com/dpareto/dpareto/internal/show], which the command line shares, says it of
// plain numbers.
package words
