// Package load puts a server under load and measures its performance: many workers ask for
// trials and complete them at once, without training.
//
// Run drives the load. Fill fills a store with studies and trials, to measure a large one.
// Host is the server under test in a separate process, which runs Serve.
package load
