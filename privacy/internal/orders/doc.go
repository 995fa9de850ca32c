// Package orders minimises over Rényi orders, and converts a Rényi divergence to ε.
package orders
