// Package storetest tests what every store.KV must do.
package storetest
