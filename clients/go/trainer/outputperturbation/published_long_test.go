//go:build long

package outputperturbation

import "testing"

// TestAllPublishedErrors compares all rows, with more runs than they have.
func TestAllPublishedErrors(t *testing.T) {
	comparePublished(t, []int{0, 1, 2, 3, 4, 5, 6}, 200)
}
