// Package table reads a user's own data: a file, and a [Schema] that says what its columns mean.
//
// Formats are recognised by their first bytes:
//   - CSV in UTF-8 with a header, the default; commas, semicolons or tabs separate columns;
//   - Parquet: dates and times are texts in the form of ISO 8601, a list is a column of several numbers;
//   - NPZ of NumPy: every array is a column, a matrix a column of several numbers. A single array, NPY, is the column x;
//   - LIBSVM, by the name *.libsvm, *.svmlight or *.svm: the columns label and x, whose number k−1 has index k;
//   - IDX of unsigned bytes: images are the column x, and label comes from the file with labels in the place of images
//     in its name.
//
// CSV, LIBSVM, NPY and IDX may be compressed with gzip.
//
// The schema is public knowledge. The privacy of training covers the computations of a mechanism on
// the rows, and no choice that somebody made after looking at them. So ranges, categories, labels and
// the division into parts are constants of the schema and never come from the rows: what would need
// them is an error. [Propose] writes a schema from rows that the user declares public.
//
// Every row is encoded by itself:
//   - a number of a range becomes one feature in [−1, 1]; numbers outside are moved to the end of the range;
//   - a column of several numbers becomes as many features;
//   - a category becomes one feature of value 1 among as many as there are categories;
//   - a missing value becomes an indicator of value 1, and nothing else;
//   - a row whose norm exceeds the bound of the schema is scaled down to it.
//
// So the norm of every row is at most [Schema.FeatureNorm], whatever the file contains.
//
// Errors and findings have names of columns, which the schema has, and counts. They never have a value
// of the file. Counts are exact: they are for the owner of the data, not for publication.
//
// The package imports package dataset, and knows neither trainers nor studies.
package table
