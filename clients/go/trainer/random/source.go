package random

// Open returns New of the same arguments, or System where the seed is nil.
func Open(seed *uint64, replicate int, purpose uint64, index int) *Stream {
	if seed == nil {
		return System()
	}
	return New(*seed, replicate, purpose, index)
}
