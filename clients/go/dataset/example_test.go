package dataset_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dpareto/dpareto/clients/go/dataset"
)

// Generated examples in the shape of a split of Adult need no file.
func ExampleAdult() {
	split := dataset.AdultSplit{Name: dataset.SplitShuffled, Seed: 1, Generated: true}
	train, test, err := dataset.Adult(context.Background(), split, dataset.Source{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(train.Rows, test.Rows, train.Dim)
	// Output:
	// 40000 8842 123
}
