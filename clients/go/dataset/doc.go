// Package dataset loads the data that the reference trainers train on: files in
// LIBSVM's sparse text format ([ReadLIBSVM]), UCI Adult in that form with the
// splits of the literature ([Adult]), and a generated stand-in of the same shape
// for where the files cannot be had ([Generated]).
//
// A [Dataset] is immutable once loaded and may be read by any number of
// goroutines. A [Cache] loads each split once.
package dataset
