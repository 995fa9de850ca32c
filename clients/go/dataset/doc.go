// Package dataset loads the data that the reference trainers train on.
//
// [Load] gives the parts of a dataset that is known by its name, such as UCI Adult, MNIST
// or KDD Cup 99 ([Catalog] lists them): from a data folder, from the cache folder, or from
// the network, with a checksum. The parts are disjoint and tell how they came about, as a
// [Split]. [Generated] and [GeneratedDigits] make up stand-ins of the shape of Adult and
// MNIST for where the files cannot be had.
//
// The user's own data come from a table ([LoadCSV]), from LIBSVM's sparse text format
// ([LoadLIBSVM]), or from idx files as those of MNIST ([LoadIDX]); [Shuffle] and
// [Parts.HoldOut] divide them. Every reader takes plain files and such that gzip has
// compressed, and tells where a malformed one is wrong, with a [SyntaxError].
//
// Nothing that a reader does to an example depends on the other examples: scales, ranges,
// categories and bounds of norms ([Dataset.ClipNorms]) are public constants. What is
// learnt from the features with differential privacy is therefore as private as if it
// were learnt from the files. (The ranges of numbers in Adult's encoding were once chosen
// from its training set, long before anything here; they are taken as public.)
//
// A [Dataset] is immutable once loaded and may be read by any number of
// goroutines. A [Cache] loads each division once.
package dataset
