package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
)

// A journal record is the CRC-32C of what follows, as 4 bytes in big-endian order, and for
// every write, in ascending order of their keys, the length of the key as a varint, the key,
// the length of the value and one as a varint, or 0 for a deletion, and the value.
const checksumSize = 4

var (
	errChecksum = errors.New("its checksum is wrong")
	errCutOff   = errors.New("a key is cut off")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeWrites returns a journal record of writes.
func encodeWrites(writes map[string][]byte) []byte {
	size := checksumSize
	for key, value := range writes {
		size += 2*binary.MaxVarintLen32 + len(key) + len(value)
	}
	record := make([]byte, checksumSize, size)
	for _, key := range slices.Sorted(maps.Keys(writes)) {
		record = append(binary.AppendUvarint(record, uint64(len(key))), key...)
		if value := writes[key]; value == nil {
			record = append(record, 0)
		} else {
			record = append(binary.AppendUvarint(record, uint64(len(value))+1), value...)
		}
	}
	binary.BigEndian.PutUint32(record, crc32.Checksum(record[checksumSize:], castagnoli))
	return record
}

// decodeWrites passes the writes of a journal record to set.
func decodeWrites(record []byte, set func(key string, value []byte)) error {
	if len(record) < checksumSize || crc32.Checksum(record[checksumSize:], castagnoli) != binary.BigEndian.Uint32(record) {
		return errChecksum
	}
	record = record[checksumSize:]
	take := func() ([]byte, bool) {
		n, width := binary.Uvarint(record)
		if width <= 0 || n > uint64(len(record)-width) {
			return nil, false
		}
		taken := record[width : width+int(n)]
		record = record[width+int(n):]
		return taken, true
	}
	for len(record) > 0 {
		key, ok := take()
		if !ok || len(key) == 0 || len(record) == 0 {
			return errCutOff
		}
		if record[0] == 0 {
			record = record[1:]
			set(string(key), nil)
			continue
		}
		n, width := binary.Uvarint(record)
		if width <= 0 || n-1 > uint64(len(record)-width) {
			return fmt.Errorf("the value of key %q is cut off", key)
		}
		value := record[width : width+int(n-1)]
		record = record[width+int(n-1):]
		set(string(key), append(make([]byte, 0, len(value)), value...))
	}
	return nil
}
