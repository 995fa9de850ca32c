package fault

import (
	"errors"
	"math/rand/v2"
	"os"
)

// pageSize is the unit, in bytes, in which storage loses data.
const pageSize = 4096

// Garble overwrites n pages of the file at path with noise: half of them at random places, the
// others at its end, like a torn write. The same seed damages the same pages.
func Garble(path string, seed uint64, n int) (err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, pageSize))
	pages := info.Size() / pageSize
	page := make([]byte, pageSize)
	for i := range n {
		for j := range page {
			page[j] = byte(random.Uint32())
		}
		at := pages - 1 - int64(i)
		if random.IntN(2) == 0 {
			at = random.Int64N(pages)
		}
		if _, err := file.WriteAt(page, max(0, at)*pageSize); err != nil {
			return err
		}
	}
	return nil
}
