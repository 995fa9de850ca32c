package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Overlay collects the writes of one Update on top of a Reader. A KV can drop them if the Update's
// function fails, without touching other writes in the same commit.
type Overlay struct {
	base   Reader
	writes map[string][]byte // nil marks a deletion
}

var _ ReadWriter = (*Overlay)(nil)

// NewOverlay returns an empty overlay above base.
func NewOverlay(base Reader) *Overlay {
	return &Overlay{base: base, writes: make(map[string][]byte)}
}

// Get implements Reader.
func (o *Overlay) Get(key string) ([]byte, error) {
	if value, ok := o.writes[key]; ok {
		return value, nil
	}
	return o.base.Get(key)
}

// Time implements Timed where base does.
func (o *Overlay) Time() (now, since time.Time) {
	if timed, ok := o.base.(Timed); ok {
		return timed.Time()
	}
	return now, since
}

// Put implements ReadWriter.
func (o *Overlay) Put(key string, value []byte) {
	if key == "" || len(key) > MaxKey {
		panic(fmt.Sprintf("store: a key has %d bytes, must have 1 to %d", len(key), MaxKey))
	}
	if value == nil {
		value = []byte{} // nil marks a deletion
	}
	o.writes[key] = value
}

// Delete implements ReadWriter.
func (o *Overlay) Delete(key string) {
	if key != "" && len(key) <= MaxKey { // others cannot exist
		o.writes[key] = nil
	}
}

// Scan implements Reader: it merges the base's keys with the overlay's, in order. Writes by fn do
// not appear in the running scan.
func (o *Overlay) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	var own []string
	for key := range o.writes {
		if strings.HasPrefix(key, prefix) && key >= from && (key[0] != 0 || prefix != "") {
			own = append(own, key)
		}
	}
	slices.Sort(own)
	writes := make(map[string][]byte, len(own))
	for _, key := range own {
		writes[key] = o.writes[key]
	}

	// emit passes on the overlay's keys below limit, or all of them without a limit.
	emit := func(limit string, limited bool) (bool, error) {
		for len(own) > 0 && (!limited || own[0] < limit) {
			key := own[0]
			own = own[1:]
			if writes[key] == nil {
				continue
			}
			if more, err := fn(key, writes[key]); !more || err != nil {
				return false, err
			}
		}
		return true, nil
	}

	stopped := false
	err := o.base.Scan(prefix, from, func(key string, value []byte) (bool, error) {
		more, err := emit(key, true)
		if more && err == nil {
			if _, overwritten := writes[key]; overwritten {
				return true, nil // the next emit passes on the overlay's version
			}
			more, err = fn(key, value)
		}
		stopped = !more
		return more, err
	})
	if err != nil || stopped {
		return err
	}
	_, err = emit("", false)
	return err
}

// Empty reports whether there are no writes.
func (o *Overlay) Empty() bool { return len(o.writes) == 0 }

// Apply passes the collected writes to set in ascending key order, until set returns an error. A nil
// value is a deletion.
func (o *Overlay) Apply(set func(key string, value []byte) error) error {
	for _, key := range slices.Sorted(maps.Keys(o.writes)) {
		if err := set(key, o.writes[key]); err != nil {
			return err
		}
	}
	return nil
}
