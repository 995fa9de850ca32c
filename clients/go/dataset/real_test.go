package dataset

import (
	"path/filepath"
	"testing"

	"github.com/dpareto/dpareto/clients/go/dataset/datasettest"
)

func BenchmarkLoadMNIST(b *testing.B) {
	folder := datasettest.Folder(b, "mnist")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := LoadIDX(filepath.Join(folder, "train-images-idx3-ubyte.gz"), filepath.Join(folder, "train-labels-idx1-ubyte.gz"), 10); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadKDDCup99(b *testing.B) {
	folder := datasettest.Folder(b, "kddcup99")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := LoadKDDCup99(filepath.Join(folder, "kddcup.data_10_percent.gz")); err != nil {
			b.Fatal(err)
		}
	}
}
