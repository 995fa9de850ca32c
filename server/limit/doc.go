// Package limit keeps callers from using up a server: bounds on what is stored, on calls
// and streams at a time, in total and for each principal, on the time of a call, on
// connections, and on how loud failed authentication can be.
//
// What a client runs into by being quick is RESOURCE_EXHAUSTED with a google.rpc.RetryInfo;
// what it will run into again is RESOURCE_EXHAUSTED without.
package limit
