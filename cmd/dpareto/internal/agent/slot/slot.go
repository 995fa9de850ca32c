package slot

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// most is the number of slots of one kind.
const most = 1000

// Take takes the lowest free number, from 1, of a kind of programs. It is free again when
// release is called or the program ends, however it ends. The folder, which is made if it
// does not exist, is where the programs of the machine find each other.
//
// Where the platform has no file locks, or they do not work in the folder, there is an
// error.
func Take(folder, kind string) (number int, release func(), err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return 0, nil, err
	}
	hash := sha256.Sum256([]byte(kind))
	prefix := filepath.Join(folder, hex.EncodeToString(hash[:8]))
	for number := 1; number <= most; number++ {
		release, free, err := lock(fmt.Sprintf("%s-%d.lock", prefix, number))
		if err != nil {
			return 0, nil, err
		}
		if free {
			return number, release, nil
		}
	}
	return 0, nil, fmt.Errorf("slot: all %d slots in %s are taken", most, folder)
}
