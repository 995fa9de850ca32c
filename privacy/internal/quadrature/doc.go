// Package quadrature has the Gauss-Legendre rule that the composite rules of packages pld and gaussian use.
package quadrature
