// Package health probes the store and tells health checks whether it can be written.
package health
