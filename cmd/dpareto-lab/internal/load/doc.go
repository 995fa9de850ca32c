// Package load puts a server under load and measures how it bears it: many workers ask
// for trials and complete them at once, with nothing to train in between.
//
// Run drives the load. Fill fills a store with studies and trials, so that a large one can
// be measured. Host is the server under test, in a process of its own: Serve is its side.
package load
