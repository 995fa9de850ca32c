// Package limit keeps callers from using up a server: bounds on stored data, on calls
// and streams at a time, in total and for each principal, on the time of a call, on
// connections, and on how loud failed authentication can be.
//
// All are RESOURCE_EXHAUSTED. Limits on the rate of calls carry a google.rpc.RetryInfo; quotas,
// which waiting does not help, carry none.
package limit
