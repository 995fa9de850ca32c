package random

import "math/bits"

// Multipliers and key increments of Philox4x64 (Salmon et al. 2011, Table 2 and
// §4.3): the increments are the golden ratio and √3 − 1.
const (
	multiplier0 = 0xd2e7470ee14c6c93
	multiplier1 = 0xca5a826395121157
	increment0  = 0x9e3779b97f4a7c15
	increment1  = 0xbb67ae8584caa73b
	rounds      = 10
)

// philox fills dst with the blocks of the counter and those that follow in its
// first word, under the key. Two blocks at a time keep the multiplier busy.
func philox(dst *[buffered]uint64, counter [4]uint64, key [2]uint64) {
	for i := 0; i < buffered; i += 8 {
		c0, c1, c2, c3 := counter[0], counter[1], counter[2], counter[3]
		d0, d1, d2, d3 := counter[0]+1, counter[1], counter[2], counter[3]
		k0, k1 := key[0], key[1]
		for range rounds {
			ch0, cl0 := bits.Mul64(multiplier0, c0)
			ch1, cl1 := bits.Mul64(multiplier1, c2)
			dh0, dl0 := bits.Mul64(multiplier0, d0)
			dh1, dl1 := bits.Mul64(multiplier1, d2)
			c0, c1, c2, c3 = ch1^c1^k0, cl1, ch0^c3^k1, cl0
			d0, d1, d2, d3 = dh1^d1^k0, dl1, dh0^d3^k1, dl0
			k0 += increment0
			k1 += increment1
		}
		dst[i], dst[i+1], dst[i+2], dst[i+3] = c0, c1, c2, c3
		dst[i+4], dst[i+5], dst[i+6], dst[i+7] = d0, d1, d2, d3
		counter[0] += 2
	}
}
