//go:build !linux

package bolt

import "go.etcd.io/bbolt"

// dropPages does nothing: see the one for Linux.
func dropPages(*bbolt.DB, int64) {}
