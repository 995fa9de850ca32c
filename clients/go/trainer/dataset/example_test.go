package dataset_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// Generated examples in the shape of a split of Adult need no file.
func ExampleLoad() {
	division := dataset.Division{Split: dataset.SplitShuffled, Seed: 1, Generated: true}
	parts, err := dataset.Load(context.Background(), dataset.NameAdult, division, dataset.Source{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parts.Train.Rows, parts.Test.Rows, parts.Train.Dim)
	// Output:
	// 40000 8842 123
}
