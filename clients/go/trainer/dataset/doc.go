// Package dataset loads the data that the reference trainers train on.
//
// [Load] returns the parts of a dataset by its name, such as UCI Adult, MNIST or KDD Cup
// 99 ([Catalog] lists them): from a data folder, from the cache folder, or from the
// network, with a checksum. The parts are disjoint and record their division as a
// [Split]. [Generated] and [GeneratedDigits] make up stand-ins of the shape of Adult and
// MNIST if the files are not available.
//
// Users' data come from a table with a schema (package table). [LoadLIBSVM] reads LIBSVM's sparse
// text format and [LoadIDX] idx files like MNIST's; [Shuffle] and [Parts.HoldOut] divide them. Every
// reader takes plain and gzip-compressed files, and reports where a file is malformed with a
// [SyntaxError].
//
// Nothing that a reader does to an example depends on the other examples: scales, ranges
// and categories are public constants. Whatever is
// learnt from the features with differential privacy is therefore as private as if it
// were learnt from the files. (The ranges of numbers in Adult's encoding were once chosen
// from its training set; they count as public.)
//
// A [Dataset] is immutable once loaded and may be read by any number of
// goroutines. A [Cache] loads each division once.
package dataset
