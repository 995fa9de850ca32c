package dataset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/internal/fetch"
)

// Names of the datasets that Load knows.
const (
	NameAdult                = "adult"
	NameAdultRaw             = "adult-raw"
	NameMNIST                = "mnist"
	NameKDDCup99             = "kddcup99"
	NameGisette              = "gisette"
	NameCovertype            = "covertype"
	NameBreastCancer         = "breast-cancer"
	NameBreastCancerOriginal = "breast-cancer-original"
)

// Info describes a dataset that Load knows by its name.
type Info struct {
	Name    string
	Summary string // one line
	Licence string
	// TrainRows and TestRows are the numbers of examples of the dataset's default
	// division. TestRows is 0 if it has no test part.
	TrainRows, TestRows int
	// Dim and Classes are as in Dataset.
	Dim, Classes int
	Files        []FileInfo
}

// FileInfo describes a file of a dataset.
type FileInfo struct {
	Name string
	// Size in bytes, 0 if it is not known.
	Size int64
	// URLs are the canonical address and mirrors.
	URLs []string
	// Downloadable means that the file's digest is known, so that it can be downloaded.
	// Others must be in the data folder.
	Downloadable bool
}

// Catalog returns the datasets that Load knows.
func Catalog() []Info {
	infos := make([]Info, len(catalog))
	for i, e := range catalog {
		infos[i] = e.info
		own := e.splits[0]
		infos[i].TrainRows, infos[i].TestRows = own.train.rows, own.test.rows
		for _, f := range e.files {
			infos[i].Files = append(infos[i].Files, FileInfo{
				Name: f.Name, Size: f.Size, URLs: slices.Clone(f.URLs), Downloadable: f.SHA256 != "",
			})
		}
	}
	return infos
}

// Size returns the number of bytes of all files, 0 if it is not known.
func (i *Info) Size() int64 {
	var sum int64
	for _, f := range i.Files {
		if f.Size == 0 {
			return 0
		}
		sum += f.Size
	}
	return sum
}

// entry is a dataset of the catalog.
type entry struct {
	info   Info   // without Files, TrainRows and TestRows
	folder string // in the data folder and in the cache
	files  []fetch.File
	// splits are the dataset's own divisions, the default first. SplitShuffled pools the
	// parts of the last.
	splits []ownSplit
	// poolRows is the default number of training rows of SplitShuffled.
	poolRows int
	// read reads the files of a part.
	read func(paths []string) (*Dataset, error)
	// generate makes up examples; nil if that is not possible.
	generate func(rows int, seed uint64) *Dataset
}

// ownSplit is a division that comes with a dataset.
type ownSplit struct {
	name                    string
	train, test, validation part // validation is of no rows in most
}

// part names the files of a part of a division and its number of rows, on which the
// accounting of privacy depends.
type part struct {
	rows  int
	files []string
}

// find returns the dataset of that name.
func find(name string) (*entry, error) {
	i := slices.IndexFunc(catalog, func(e *entry) bool { return e.info.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("dataset %q is unknown, want one of %s", name, strings.Join(names(), ", "))
	}
	return catalog[i], nil
}

// names returns the names of the datasets in the catalog.
func names() []string {
	all := make([]string, len(catalog))
	for i, e := range catalog {
		all[i] = e.info.Name
	}
	return all
}

// Addresses of the files.
const (
	libsvmURL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
	uciURL    = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
	cvdfURL   = "https://storage.googleapis.com/cvdf-datasets/mnist/"
	ossciURL  = "https://ossci-datasets.s3.amazonaws.com/mnist/"
	kddURL    = "https://kdd.ics.uci.edu/databases/kddcup99/"
)

// file returns a file whose name ends each of the addresses.
func file(name string, size int64, sha256 string, folders ...string) fetch.File {
	f := fetch.File{Name: name, Size: size, SHA256: sha256}
	for _, folder := range folders {
		f.URLs = append(f.URLs, folder+name)
	}
	return f
}

// packed returns a file that is known by the digest of its uncompressed content.
func packed(name string, size int64, sha256 string, folders ...string) fetch.File {
	f := file(name, size, sha256, folders...)
	f.Unpacked = true
	return f
}

// readOne turns the reader of a file into the reader of a part with one file.
func readOne(read func(path string) (*Dataset, error)) func([]string) (*Dataset, error) {
	return func(paths []string) (*Dataset, error) { return read(paths[0]) }
}

const (
	licenceUCI   = "CC BY 4.0"
	licenceMNIST = "CC BY-SA 3.0"
)

var catalog = []*entry{
	{
		info: Info{
			Name: NameAdult, Summary: "UCI census income in LIBSVM's encoding, binary features, sparse",
			Licence: licenceUCI, Dim: AdultDim, Classes: 2,
		},
		folder: "adult",
		files: []fetch.File{
			file("a1a.t", 2215057, "0212d0c4a3996fe6fb6a0ab54033d9f4fa4b60369b6e3bb141821d9ffc40c04d", libsvmURL),
			file("a1a", 114818, "eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e", libsvmURL),
			file("a9a", 2329875, "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906", libsvmURL),
			file("a9a.t", 1164628, "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9", libsvmURL),
		},
		splits: []ownSplit{
			{name: SplitPublished, train: part{30956, []string{"a1a.t"}}, test: part{1605, []string{"a1a"}}},
			{name: SplitUntouched, train: part{30956, []string{"a1a.t"}}, validation: part{1605, []string{"a1a"}}, test: part{16281, []string{"a9a.t"}}},
			{name: SplitUCI, train: part{32561, []string{"a9a"}}, test: part{16281, []string{"a9a.t"}}},
		},
		poolRows: DefaultTrainRows,
		read:     readOne(func(path string) (*Dataset, error) { return LoadLIBSVM(path, AdultDim) }),
		generate: Generated,
	},
	{
		info: Info{
			Name: NameAdultRaw, Summary: "UCI census income from the raw files, with the same rows as a9a and a9a.t",
			Licence: licenceUCI, Dim: AdultDim, Classes: 2,
		},
		folder: "adult",
		files: []fetch.File{
			file("adult.data", 3974305, "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d", uciURL+"adult/"),
			file("adult.test", 2003153, "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05", uciURL+"adult/"),
		},
		splits: []ownSplit{
			{name: SplitUCI, train: part{32561, []string{"adult.data"}}, test: part{16281, []string{"adult.test"}}},
		},
		poolRows: DefaultTrainRows,
		read:     readOne(LoadCensus),
	},
	{
		info: Info{
			Name: NameMNIST, Summary: "handwritten digits, 28 x 28 pixels between 0 and 1, dense",
			Licence: licenceMNIST, Dim: MNISTDim, Classes: 10,
		},
		folder: "mnist",
		files: []fetch.File{
			packed("train-images-idx3-ubyte.gz", 9912422, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db", cvdfURL, ossciURL),
			packed("train-labels-idx1-ubyte.gz", 28881, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", cvdfURL, ossciURL),
			packed("t10k-images-idx3-ubyte.gz", 1648877, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", cvdfURL, ossciURL),
			packed("t10k-labels-idx1-ubyte.gz", 4542, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", cvdfURL, ossciURL),
		},
		splits: []ownSplit{{
			name:  SplitPublished,
			train: part{60000, []string{"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"}},
			test:  part{10000, []string{"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"}},
		}},
		poolRows: 60000,
		read:     func(paths []string) (*Dataset, error) { return LoadIDX(paths[0], paths[1], 10) },
		generate: GeneratedDigits,
	},
	{
		info: Info{
			Name: NameKDDCup99, Summary: "network connections, normal or attacks: 10 percent of the training set, and the labelled test set, sparse",
			Licence: licenceUCI, Dim: KDDCup99Dim, Classes: 2,
		},
		folder: "kddcup99",
		files: []fetch.File{
			packed("kddcup.data_10_percent.gz", 2144893, "f8c8267ebcd9c0ed1fd7d6277fe5bfff8732e9b7db8e61b873542b2a534b6f9a", uciURL+"kddcup99-mld/", kddURL),
			packed("corrected.gz", 1409035, "547dfb9c0f0dc1d9944219ec79e851191faebaeb8acbfa1cd171c418397052a4", uciURL+"kddcup99-mld/", kddURL),
		},
		splits: []ownSplit{
			{name: SplitPublished, train: part{494021, []string{"kddcup.data_10_percent.gz"}}, test: part{311029, []string{"corrected.gz"}}},
		},
		poolRows: 494021,
		read:     readOne(LoadKDDCup99),
	},
	{
		info: Info{
			Name: NameGisette, Summary: "the digits 4 and 9 with many useless features (NIPS 2003): training and validation set, sparse",
			Licence: licenceUCI, Dim: GisetteDim, Classes: 2,
		},
		folder: "gisette",
		files: []fetch.File{
			file("gisette_train.data", 0, "", uciURL+"gisette/GISETTE/"),
			file("gisette_train.labels", 0, "", uciURL+"gisette/GISETTE/"),
			file("gisette_valid.data", 0, "", uciURL+"gisette/GISETTE/"),
			file("gisette_valid.labels", 0, "", uciURL+"gisette/"),
		},
		splits: []ownSplit{{
			name:  SplitPublished,
			train: part{6000, []string{"gisette_train.data", "gisette_train.labels"}},
			test:  part{1000, []string{"gisette_valid.data", "gisette_valid.labels"}},
		}},
		poolRows: 6000,
		read:     func(paths []string) (*Dataset, error) { return LoadGisette(paths[0], paths[1]) },
	},
	{
		info: Info{
			Name: NameCovertype, Summary: "cells of forest land, lodgepole pine or another wood, sparse",
			Licence: licenceUCI, Dim: CovertypeDim, Classes: 2,
		},
		folder:   "covertype",
		files:    []fetch.File{file("covtype.data.gz", 0, "", uciURL+"covtype/")},
		splits:   []ownSplit{{train: part{581012, []string{"covtype.data.gz"}}}},
		poolRows: 464809,
		read:     readOne(LoadCovertype),
	},
	{
		info: Info{
			Name: NameBreastCancer, Summary: "Wisconsin diagnostic breast cancer, 30 measurements between 0 and 1, dense",
			Licence: licenceUCI, Dim: BreastCancerDim, Classes: 2,
		},
		folder: "breast-cancer",
		files: []fetch.File{
			file("wdbc.data", 124103, "d606af411f3e5be8a317a5a8b652b425aaf0ff38ca683d5327ffff94c3695f4a", uciURL+"breast-cancer-wisconsin/"),
		},
		splits:   []ownSplit{{train: part{569, []string{"wdbc.data"}}}},
		poolRows: 400,
		read:     readOne(LoadBreastCancer),
	},
	{
		info: Info{
			Name: NameBreastCancerOriginal, Summary: "Wisconsin breast cancer of 1990, 9 grades between 0 and 1, dense",
			Licence: licenceUCI, Dim: BreastCancerOriginalDim, Classes: 2,
		},
		folder: "breast-cancer",
		files: []fetch.File{
			file("breast-cancer-wisconsin.data", 19889, "402c585309c399237740f635ef9919dc512cca12cbeb20de5e563a4593f22b64", uciURL+"breast-cancer-wisconsin/"),
		},
		splits:   []ownSplit{{train: part{699, []string{"breast-cancer-wisconsin.data"}}}},
		poolRows: 500,
		read:     readOne(LoadBreastCancerOriginal),
	},
}
