package logexp

import (
	"math"
	"math/cmplx"
)

// ComplexLog1p returns log(1 + z).
func ComplexLog1p(z complex128) complex128 {
	if size := math.Hypot(real(z), imag(z)); size > 0.5 {
		return cmplx.Log(1 + z)
	}
	return complex(0.5*math.Log1p(2*real(z)+real(z)*real(z)+imag(z)*imag(z)), math.Atan2(imag(z), 1+real(z)))
}

// ComplexExpm1 returns e^z − 1.
func ComplexExpm1(z complex128) complex128 {
	sin, cos := math.Sincos(imag(z))
	half := math.Sin(0.5 * imag(z))
	return complex(math.Expm1(real(z))*cos-2*half*half, math.Exp(real(z))*sin)
}
