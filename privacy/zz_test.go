package privacy

import (
	"fmt"
	"math"
	"testing"
)

func TestZZ(t *testing.T) {
	s := &lossSum{parts: []lossPart{{pair: poissonPairs(.01, .01)[0], count: 1}}}
	ld := math.Log(1e-5)
	tr := s.truncate(10, ld-27)
	for c := 1e-5; c < 40; c *= 4 {
		n1, ok := tr.parts[0].cover(c)
		n0, ok0 := s.parts[0].cover(c)
		fmt.Println(c, ok, ok0, n1.size(), n0.size())
		if ok {
			m := 0.0
			for _, x := range n1.mass {
				m += x
			}
			fmt.Println(n1.cumulant(c), m, n1.loss[0], n1.loss[len(n1.loss)-1], tr.parts[0].pair.largest())
		}
	}
	for _, m := range exactMethods {
		fmt.Println(s.by(m, 10, ld, 1))
		fmt.Println(s.by(m, 10, ld, -1))
	}
	fmt.Println(tr.renyi(10, ld))
}
