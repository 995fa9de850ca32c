"""Reference values of epsilon at the edges: writes edges.csv, and keeps the rows that are there.

δ(ε) = E[(1 − e^(ε − S))₊] of the sum S of T independent privacy losses L is the contour integral

    δ(ε) = 1/(2πi) ∫ M(t)^T e^(−tε) / (t (t + 1)) dt,   t = c + iy,  M(t) = E[e^(tL)],

for any c > 0. It is taken by the trapezoid rule in y, and M(t) by Gauss–Legendre panels in x, in
multi-precision numbers (python-flint). Each of the truncations has a known size, of at most
1e-11 δ in one computation and 1e-12 δ in the other:

 - The law of L has a smooth upper cut that removes mass of at most 1e-11 δ / T: without it, M(c)
   may be ruled by a mode at x ≈ c of no probability.
 - The trapezoid rule adds δ(ε ± kp) e^(±kpc) for its period p, chosen by Chernoff bounds.
 - If jumps are rare, M^T decays slowly in y. Then M₀^T is subtracted, where M₀ is M with a lower
   cut, at which the sum exceeds ε with a probability that Chernoff's bound shows to be negligible.

A Chernoff bound must lie above δ. For Poisson sampling, remove, ε is found by another program as
well, on a lattice of losses (class Lattice), and for one step from the closed form of δ(ε). The
column method names those that were used: not all of them can do every row.

Every method but the closed form is used twice, with other node counts, panels, cuts, contours or
lattices and digits. The column agreement is the largest relative difference of any two of these
computations of a row, among its two directions; a row of more than 1e-9 is not written.

    pip install numpy scipy python-flint
    python edges.py                # the rows that are missing
"""

import csv
import math
import signal
import time
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import flint
import numpy as np
from flint import acb, arb, fmpq, fmpz_mat, fmpz_poly
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, logsumexp

OUT = Path(__file__).with_name("edges.csv")


@dataclass(frozen=True)
class Setting:
    """How finely one computation is done."""

    nodes: int  # Gauss–Legendre nodes a panel
    width: float  # factor of the widths of panels
    left: float  # log of how much larger than at the saddle the integrand may be
    period: float  # factor of the period of the trapezoid rule
    cut: float  # log of the mass removed, relative to δ
    edge: float  # width of the smooth cuts, relative to the loss
    digits: int  # beyond those of the error that is aimed at
    error: float  # log of the relative error of δ that is aimed at


ROUGH = Setting(14, 1.0, 3.0, 1.0, math.log(1e-4), 0.7, 5, math.log(1e-4))
SETTINGS = (
    Setting(20, 1.0, 3.0, 1.0, math.log(1e-11), 0.7, 8, math.log(1e-12)),
    Setting(26, 0.8, 5.0, 1.23, math.log(1e-12), 0.6, 20, math.log(1e-13)),
)


def log_density(x, mean, sigma):
    return -((x - mean) ** 2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))


def log_erfc(v):
    return math.log(2) + log_ndtr(-math.sqrt(2) * v)


def cut(loss, at, width):
    """Argument of the smooth cut of losses, ½ erfc: 1 for losses of at most 0, ½ at at, 0 far above."""
    with np.errstate(divide="ignore", over="ignore"):
        return (
            np.where(loss > 0, loss / at - at / np.where(loss > 0, loss, 1e-300), -np.inf) / width
        )


def log_keep(loss, at, width):
    return log_erfc(cut(loss, at, width)) - math.log(2)


def log_drop(loss, at, width):
    return log_erfc(-cut(loss, at, width)) - math.log(2)


@dataclass(frozen=True)
class Piece:
    """A part of the law of the loss, as a function of x.

    kind: m0 (upper (1−q)Q + qP, loss log(1+qu)), 0m (upper Q, loss −log(1+qu)),
    mm (upper (1−q)N(0)+qN(1), lower (1−q)N(0)+qN(−1)).
    """

    kind: str
    lower: float  # least x, −inf for the whole line

    @property
    def jumps(self):
        return self.kind != "0m"

    def floats(self, x, q, sigma):
        """Returns log upper density and the loss."""
        e = (2 * x - 1) / (2 * sigma**2)
        with np.errstate(over="ignore"):
            plus = np.where(e < 500, np.log1p(q * np.expm1(np.minimum(e, 500))), e + math.log(q))
        base = log_density(x, 0, sigma)
        if self.kind == "m0":
            return base + plus, plus
        if self.kind == "0m":
            return base, -plus
        b = (-2 * x - 1) / (2 * sigma**2)
        minus = np.where(b < 500, np.log1p(q * np.expm1(np.minimum(b, 500))), b + math.log(q))
        return base + plus, plus - minus

    def balls(self, x, q, sigma):
        base = (-(x * x) / (2 * sigma * sigma)).exp() / (sigma * (2 * arb.pi()).sqrt())
        plus = 1 + q * (((2 * x - 1) / (2 * sigma * sigma)).exp() - 1)
        if self.kind == "m0":
            return base * plus, plus.log()
        if self.kind == "0m":
            return base, -plus.log()
        minus = 1 + q * (((-2 * x - 1) / (2 * sigma * sigma)).exp() - 1)
        return base * plus, (plus / minus).log()


LAWS = {
    "poisson_remove": [Piece("m0", -math.inf)],
    "poisson_add": [Piece("0m", -math.inf)],
    "poisson_replace": [Piece("mm", -math.inf)],
    "fixed_size": [Piece("m0", 0.5), Piece("0m", 0.5)],
}


@dataclass
class Grid:
    """Nodes in x with everything that doubles can say about them."""

    piece: np.ndarray
    left: np.ndarray  # panels
    right: np.ndarray
    x: np.ndarray
    logw: np.ndarray  # log of weight times upper density, uncut
    loss: np.ndarray
    jumps: np.ndarray = field(default=None)


class Problem:
    def __init__(self, law, q, sigma, steps, delta, setting):
        self.pieces = LAWS[law]
        self.atomic = law == "fixed_size"
        self.q_exact, self.sigma_exact = Fraction(q), Fraction(sigma)
        self.q, self.sigma = float(self.q_exact), float(self.sigma_exact)
        self.steps, self.log_delta, self.setting = (
            steps,
            float(math.log(Fraction(delta).numerator) - math.log(Fraction(delta).denominator)),
            setting,
        )
        self.delta_exact = Fraction(delta)
        self.edge = setting.edge
        self.top = math.inf  # of the cut
        self.low = None  # of the lower cut
        reach = math.sqrt(2 * (-self.log_delta + math.log(steps) + 110)) * self.sigma
        self.reach = (-reach, 1 + reach)
        g, w = np.polynomial.legendre.leggauss(setting.nodes)
        self.gl = g, np.log(w)
        self.grid = self.make_grid(0, 0, -math.inf)
        self.top = self.find_top(setting.cut)
        if not math.isinf(self.top):
            # Far enough for the cut to end it.
            end = 1.05 * self.top * (1 + 9 * self.edge)
            x = (
                self.sigma**2
                * (end + math.log1p(-math.exp(-end) * (1 - self.q)) - math.log(self.q))
                + 0.5
            )
            self.reach = (self.reach[0], max(self.reach[1], x))
            self.grid = self.make_grid(0, 0, -math.inf)

    # Doubles.

    def make_grid(self, c, y, floor):
        """Panels for |t| up to c + iy, without those of weight below floor."""
        s = self.setting
        base = s.width * min(0.6 * self.sigma, self.sigma**2, 0.8 * self.edge * self.sigma**2)
        out = []
        for i, piece in enumerate(self.pieces):
            a = max(self.reach[0] - 1, piece.lower)
            b = self.reach[1] + 1
            n = max(1, math.ceil((b - a) / base))
            ends = np.linspace(a, b, n + 1)
            left, right = ends[:-1], ends[1:]
            for _ in range(40):
                ends = np.linspace(left, right, 9)
                logu, loss = piece.floats(ends, self.q, self.sigma)
                keep = np.max(logu + c * loss + self.log_top(piece, loss), axis=0) > floor - 5
                left, right, loss = left[keep], right[keep], loss[:, keep]
                if len(left) == 0:
                    break
                wide = (np.ptp(loss, axis=0) * math.hypot(c, y)) > 12 * s.width
                if not wide.any():
                    break
                middle = (left[wide] + right[wide]) / 2
                left, right = (
                    np.concatenate([left[~wide], left[wide], middle]),
                    np.concatenate([right[~wide], middle, right[wide]]),
                )
            order = np.argsort(left)
            left, right = left[order], right[order]
            half = (right - left) / 2
            x = ((left + right) / 2)[:, None] + half[:, None] * self.gl[0]
            logu, loss = piece.floats(x, self.q, self.sigma)
            logw = logu + np.log(half)[:, None] + self.gl[1]
            out.append((i, left, right, x, logw, loss))
        return Grid(
            np.concatenate([np.full(x.size, i) for i, _, _, x, _, _ in out]),
            [o[1] for o in out],
            [o[2] for o in out],
            np.concatenate([o[3].ravel() for o in out]),
            np.concatenate([o[4].ravel() for o in out]),
            np.concatenate([o[5].ravel() for o in out]),
            np.concatenate([np.full(o[3].size, self.pieces[o[0]].jumps) for o in out]),
        )

    def log_top(self, piece, loss):
        if not piece.jumps or math.isinf(self.top):
            return np.zeros_like(loss)
        return log_keep(loss, self.top, self.edge)

    def kept(self):
        """Log weights with the upper cut."""
        g = self.grid
        if math.isinf(self.top):
            return g.logw
        return np.where(g.jumps, g.logw + log_keep(g.loss, self.top, self.edge), g.logw)

    def find_top(self, cut):
        g = self.grid
        if not g.jumps.any():
            return math.inf
        loss, logw = g.loss[g.jumps], g.logw[g.jumps]
        goal = self.log_delta + cut - math.log(self.steps)
        a, b = math.log(self.q) - 20, math.log(np.max(loss))
        for _ in range(60):
            m = (a + b) / 2
            if logsumexp(logw + log_drop(loss, math.exp(m), self.edge)) > goal:
                a = m
            else:
                b = m
        return math.exp(b)

    def log_mgf(self, c, low=None):
        """T log M(c), or that of the law with the lower cut."""
        g = self.grid
        logw = self.kept()
        if low is not None:
            logw = np.where(g.jumps, logw + log_keep(g.loss, low, self.edge), logw)
        v = c * g.loss
        small = v < 30
        with np.errstate(under="ignore"):
            m = float(np.sum(np.exp(logw[small]) * np.expm1(v[small])))
        big = -math.inf if small.all() else float(logsumexp(logw[~small] + v[~small]))
        if low is not None:
            # The mass that the lower cut removes.
            drop = np.where(g.jumps, self.kept() + log_drop(g.loss, low, self.edge), -np.inf)
            m -= math.exp(logsumexp(drop))
        if big < 0 or m + math.exp(min(big, 700)) < 1e100:
            return self.steps * math.log1p(m + math.exp(big))
        return self.steps * big

    def jump_share(self, c):
        """log(1 − (M₀/M)^T)."""
        g = self.grid
        kept = self.kept()
        drop = np.where(g.jumps, kept + log_drop(g.loss, self.low, self.edge), -np.inf)
        top = logsumexp(drop + c * g.loss)
        k = top - self.log_mgf(c) / self.steps
        ratio = -math.expm1(self.steps * math.log1p(-math.exp(k))) if k < -1e-17 else 1.0
        return math.log(ratio) if ratio > 0 else k + math.log(self.steps)

    def log_measure(self, c):
        """Log of M^T − M₀^T."""
        v = self.log_mgf(c)
        return v if self.low is None else v + self.jump_share(c)

    def saddle(self, eps, log_mgf=None, kernel=True):
        f = log_mgf or self.log_measure

        def g(u):
            c = math.exp(u)
            return f(c) - c * eps - (u + math.log1p(c) if kernel else 0)

        us = np.linspace(math.log(1e-3), math.log(1e4 / self.q), 60)
        vs = [g(u) for u in us]
        i = int(np.argmin(vs))
        r = minimize_scalar(
            g,
            bounds=(us[max(i - 1, 0)], us[min(i + 1, len(us) - 1)]),
            method="bounded",
            options={"xatol": 1e-7},
        )
        return math.exp(r.x), float(r.fun)

    def lines(self, eps):
        """Values of c from the saddle to the left, where the integrand is larger and a cliff is far."""
        c, least = self.saddle(eps)
        yield c
        for k in c * 0.85 ** np.arange(1, 20):
            if (
                self.log_measure(k) - k * eps - math.log(k) - math.log1p(k)
                > least + self.setting.left
            ):
                break
            yield float(k)

    def chernoff(self, eps):
        """Upper bound of log δ(ε) for the law with the cuts."""

        def f(c):
            return self.log_mgf(c) + c * math.log(c) - (1 + c) * math.log1p(c)

        return self.saddle(eps, f, kernel=False)[1]

    def guess(self):
        """A first ε: that of a normal law without the jumps, or of one jump, whichever is more."""
        if not self.grid.jumps.any():
            # No cliff: the inverse of Chernoff's bound.
            b = math.log(-self.steps * math.log1p(-self.q))
            a = b - 14
            for _ in range(16):
                m = (a + b) / 2
                a, b = (m, b) if self.chernoff(math.exp(m)) > self.log_delta else (a, m)
            return math.exp(a)
        top, self.top = self.top, self.find_top(-self.log_delta + math.log(0.3))
        p, self.top = np.exp(self.kept()), top
        mean, square = (float(np.sum(p * self.grid.loss**k)) for k in (1, 2))
        spread = math.sqrt(self.steps * max(square - mean**2, 0))
        bulk = self.steps * mean + 0.8 * math.sqrt(-2 * self.log_delta) * spread
        a, b = math.log(self.q) - 20, 12.0
        g = self.grid
        for _ in range(24):
            m = (a + b) / 2
            gap = np.exp(m) - g.loss
            v = np.where(gap < 0, g.logw + np.log(-np.expm1(np.minimum(gap, -1e-100))), -np.inf)
            if logsumexp(v) + math.log(self.steps) > self.log_delta:
                a = m
            else:
                b = m
        return max(bulk, math.exp(a))

    def find_low(self, eps):
        """Lower cut: the highest loss below which jumps have no part in δ(ε)."""
        if not any(p.jumps for p in self.pieces):
            return None
        goal = self.log_delta + self.setting.error

        def enough(x):
            return self.saddle(eps, lambda c: self.log_mgf(c, x), kernel=False)[1] < goal

        a, b = self.q, self.top / 2
        if a >= b or not enough(a):
            return None
        for _ in range(16):
            m = math.sqrt(a * b)
            if enough(m):
                a = m
            else:
                b = m
        return a

    def period(self, c, eps):
        """Least period 2π/h whose aliases are below 1e-20 δ."""
        need = -self.setting.error

        def aliased(p):
            if c * p < need - self.log_delta + math.log(2):
                return True
            # Least over c' > c of the bound of δ(ε + p) e^(cp).
            best = min(
                self.log_mgf(k) - k * eps - (k - c) * p for k in c * (1 + 2.0 ** np.arange(-8, 4))
            )
            return best > self.log_delta - need

        p = max(need - self.log_delta, 1) / c * 0.5
        while aliased(p):
            p *= 1.15
        return p * self.setting.period

    def decay(self, c, eps, most):
        """Y beyond which the integrand is negligible, or None if it is above most."""
        goal = self.log_delta + self.setting.error - 3 + c * eps
        y = 0.05 * c
        self.refine(c, 4 * y, eps)
        top = self.log_mgf(c)
        fine = 4 * y
        while True:
            if y > fine:
                fine = 8 * y
                self.refine(c, fine, eps)
            g = self.grid
            kept = self.kept()
            p = kept + c * g.loss - top / self.steps
            ok = p > self.floor(c, eps) - top / self.steps - 5
            p, loss = np.exp(p[ok]), g.loss[ok]
            phi = np.sum(p * np.expm1(1j * y * loss))
            v = self.steps * np.log1p(phi) + top
            if self.low is not None:
                d = np.sum(
                    np.exp(log_drop(g.loss, self.low, self.edge)[ok])
                    * np.where(g.jumps[ok], p, 0)
                    * np.exp(1j * y * loss)
                )
                r = self.steps * np.log1p(-d / (1 + phi))
                size = v.real + (r.real if r.real > 30 else math.log(max(abs(np.expm1(r)), 1e-300)))
            else:
                size = v.real
            size -= math.log(abs((c + 1j * y) * (c + 1 + 1j * y)))
            if size + math.log(y) < goal:
                return y
            y *= 1.1
            if y > most:
                return None

    def floor(self, c, eps):
        """Log of the part of M(c) that is below the aimed error of δ(ε)."""
        return (
            min(
                self.log_delta
                + self.setting.error
                - math.log(self.steps)
                - (self.log_mgf(c) - c * eps)
                - 5,
                self.setting.error - 20,
            )
            + self.log_mgf(c) / self.steps
        )

    def refine(self, c, y, eps):
        self.grid = self.make_grid(c, y, self.floor(c, eps))

    # Balls.

    def epsilon(self, eps, log=lambda *_: None):
        """ε from a value near it."""
        self.low = None
        self.grid = self.make_grid(0, 0, -math.inf)
        best = None
        for low in (None, self.find_low(0.97 * eps)):
            if low is None and best is not None:
                continue
            self.low = low
            self.grid = self.make_grid(0, 0, -math.inf)
            p, c = min((self.period(c, eps), c) for c in self.lines(eps))
            y = self.decay(c, eps, (4e5 if best is None else best[0]) * 2 * math.pi / p)
            if y is not None:
                best = (int(y * p / (2 * math.pi)) + 1, y, p, c, low)
        if best is None:
            raise ValueError("no decay")
        n, y, p, c, self.low = best
        self.refine(c, 1.3 * y, eps)
        log(
            f"eps={eps:.6g} c={c:.4g} top={self.top:.4g} low={self.low} n={n} nodes={self.grid.x.size}"
        )
        if self.grid.x.size * math.sqrt(n) > 1e7:
            raise ValueError("too many nodes")
        return self.contour(c, p, n, eps)

    def contour(self, c, period, n, eps):
        floor = self.floor(c, eps)
        flint.ctx.dps = int(self.setting.digits - floor / math.log(10))
        q, sigma = (arb(fmpq(v.numerator, v.denominator)) for v in (self.q_exact, self.sigma_exact))
        gl = [
            arb.legendre_p_root(self.setting.nodes, k, weight=True)
            for k in range(self.setting.nodes)
        ]
        ac, edge, step = arb(c), arb(self.edge), 2 * arb.pi() / arb(period)
        top, low = arb(self.top), None if self.low is None else arb(self.low)

        def keep(loss, at):
            return ((loss / at - at / loss) / edge).erfc() / 2 if loss > 0 else arb(1)

        level = arb(self.log_mgf(c) / self.steps)
        a, cutoff, z = [], [], []
        for piece, left, right in zip(self.pieces, self.grid.left, self.grid.right, strict=True):
            for lo, hi in zip(left, right, strict=True):
                middle, half = (
                    (arb(float(lo)) + arb(float(hi))) / 2,
                    (arb(float(hi)) - arb(float(lo))) / 2,
                )
                for r, w in gl:
                    x = middle + half * r
                    u, l = piece.balls(x, q, sigma)
                    v = u * w * half * (ac * l - level).exp()
                    if piece.jumps:
                        v *= keep(l, top)
                    if v.mid() == 0 or float(v.mid().log() + level) < floor:
                        continue
                    a.append(v)
                    s, co = (step * l).sin_cos()
                    z.append(acb(co.mid(), s.mid()))
                    if low is not None:
                        cutoff.append(keep(l, low) if piece.jumps else arb(1))
        if self.atomic:
            up, down = ((s / (2 * sigma * arb(2).sqrt())).erfc() / 2 for s in (-1, 1))
            a.append((1 - 2 * down - q * (up - down)) * (-level).exp())
            z.append(acb(1))
            cutoff.append(arb(1))
        # Powers of z and their sums are of fixed point, with M(c) about 1.
        bits = flint.ctx.prec
        unit = arb(2) ** bits

        def fixed(v):
            return int((v * unit).mid().floor().unique_fmpz())

        def times(p, z):
            return [
                ((a * c - b * d) >> bits, (a * d + b * c) >> bits)
                for (a, b), (c, d) in zip(p, z, strict=True)
            ]

        def matrix(columns):
            """Columns (j), or rows (j), of complex numbers, as a real matrix."""
            return fmpz_mat([[v[0] for v in r] + [v[1] for v in r] for r in columns])

        a = [(fixed(v), 0) for v in a]
        z = [(fixed(v.real), fixed(v.imag)) for v in z]
        cutoff = [fixed(v) for v in cutoff]
        block = max(1, math.isqrt(n) + 1)
        columns = [[(1 << bits, 0)] * len(z)]
        for _ in range(block - 1):
            columns.append(times(columns[-1], z))
        jump = times(columns[-1], z)
        real = matrix([[(v, -w) for v, w in r] for r in columns]).transpose()
        imaginary = matrix([[(w, v) for v, w in r] for r in columns]).transpose()
        del columns
        scale, square = (level * self.steps).exp(), unit**2

        def sums(batch):
            m = matrix(batch)
            r, i = (m * real).tolist(), (m * imaginary).tolist()
            return [
                [acb(arb(v) / square, arb(w) / square) for v, w in zip(x, y, strict=True)]
                for x, y in zip(r, i, strict=True)
            ]

        goal = arb(self.log_delta + self.setting.error - 3) + ac * arb(eps)
        f, row, done = [], a, 0
        while done < 2:
            batch = []
            for _ in range(min(16, block + 1)):
                batch.append(row)
                row = times(row, jump)
            m = sums(batch)
            if low is not None:
                m0 = sums(
                    [
                        [
                            (v * s >> bits, w * s >> bits)
                            for (v, w), s in zip(r, cutoff, strict=True)
                        ]
                        for r in batch
                    ]
                )
            for i in range(len(batch)):
                biggest = -math.inf
                for j in range(block):
                    t = acb(ac, step * len(f))
                    v = m[i][j].mid() ** self.steps
                    if low is not None:
                        v -= m0[i][j].mid() ** self.steps
                    v = (v * scale / (t * (t + 1))).mid()
                    size = abs(v).mid()
                    if size > 0:
                        biggest = max(biggest, float(size.log()))
                    f.append(v)
                done = done + 1 if biggest + math.log(float(step) * len(f)) < float(goal) else 0
                if done == 2:
                    break
            if len(f) > 40 * n + 1000:
                raise ValueError("the integrand does not decay")
        f[0] /= 2
        delta = arb(fmpq(self.delta_exact.numerator, self.delta_exact.denominator))
        e = arb(eps)
        for _ in range(12):
            turn, w = acb(0, -step * e).exp().mid(), acb(1)
            d = s = acb(0)
            for i, v in enumerate(f):
                u = (v * w).mid()
                d += u
                s += u * acb(ac, step * i)
                w = (w * turn).mid()
            factor = (-ac * e).exp() * step / arb.pi()
            d, s = (d.real * factor).mid(), (s.real * factor).mid()
            if not d > 0 or not s > 0:
                raise ValueError(f"δ = {d}")
            change = ((d / delta).log() * d / s).mid()
            e = (e + change).mid()
            if abs(float(change)) < 1e-25 * abs(eps):
                break
        return e


class Lattice:
    """ε of Poisson sampling, remove, without a contour: the loss on a lattice.

    Each loss below top is spread over the next 2r points of the lattice so that 2r moments are
    kept (central Lagrange weights; the T-fold convolution is stable), the T-th power is taken of
    polynomials of integers, and the kink at ε gets Euler–Maclaurin's terms. If any loss is above
    top, the sum exceeds ε, so that this part is known exactly.
    """

    def __init__(self, q, sigma, steps, delta, points, r, nodes, factor, bits):
        self.q, self.sigma, self.steps, self.delta = (
            Fraction(q),
            Fraction(sigma),
            steps,
            Fraction(delta),
        )
        self.points, self.r, self.nodes, self.factor, self.bits = points, r, nodes, factor, bits

    def epsilon(self, eps):
        for _ in range(8):
            found = self.attempt(eps)
            if found is not None and not found.is_finite():
                raise ArithmeticError("too few points")
            if found is None:
                eps *= 2
            elif abs(float(found) / eps - 1) < 0.05:
                return found
            else:
                eps = float(found)
        raise ValueError("no convergence on the lattice")

    def attempt(self, eps):
        flint.ctx.prec = self.bits + 40
        q, sigma, delta = (
            arb(fmpq(v.numerator, v.denominator)) for v in (self.q, self.sigma, self.delta)
        )
        steps, r, unit = self.steps, self.r, 1 << self.bits
        h = arb(eps) / self.points
        # The other losses take off at most −T log(1 − q), and hardly ever so many deviations.
        deviation = float(self.q) * math.sqrt(self.steps * math.expm1(min(float(sigma) ** -2, 100)))
        drift = min(
            float(-self.steps * (1 - q).log()), (self.factor + 0.7) * max(eps, 6 * deviation)
        )
        top = math.ceil((self.factor * eps + drift) / float(h)) + 2 * r + 8
        half = arb(0.5)

        def place(loss):  # x of a loss
            return sigma * sigma * (1 + (loss.exp() - 1) / q).log() + half

        def mass(x, mean):  # beyond x
            return ((x - mean) / (sigma * arb(2).sqrt())).erfc() / 2

        # Panels: to the left of loss 0, cut at −reach, then the cells of the lattice.
        reach = float(sigma) * math.sqrt(2 * (self.bits * math.log(2) + 10))
        wide = 0.35 * min(float(sigma), float(sigma) ** 2)
        cuts = [place(h * k) for k in range(top + 1)]
        low = math.floor(float((1 - q).log() / h))
        below = [place(h * k) for k in range(low + 1, 0)] if low < -1 else []
        cells = list(
            zip(
                range(low, top),
                [arb(-reach), *below, *cuts][: top - low],
                [*below, *cuts],
                strict=True,
            )
        )
        gl = [arb.legendre_p_root(self.nodes, k, weight=True) for k in range(self.nodes)]
        denominators = []
        stencil = range(1 - r, r + 1)
        for j in stencil:
            d = 1
            for i in stencil:
                if i != j:
                    d *= j - i
            denominators.append(d)
        weights = {}
        norm = 1 / (sigma * (2 * arb.pi()).sqrt())
        for cell, a, b in cells:
            n = max(1, math.ceil(float(b - a) / wide))
            total = [arb(0)] * (2 * r)
            for p in range(n):
                lo, hi = a + (b - a) * p / n, a + (b - a) * (p + 1) / n
                for g, w in gl:
                    x = (lo + hi) / 2 + (hi - lo) / 2 * g
                    plus = 1 + q * (((2 * x - 1) / (2 * sigma * sigma)).exp() - 1)
                    v = (-(x * x) / (2 * sigma * sigma)).exp() * norm * plus * w * (hi - lo) / 2
                    u = plus.log() / h - cell
                    left = [arb(1)]
                    for j in stencil:
                        left.append(left[-1] * (u - j))
                    right = arb(1)
                    for i in range(2 * r - 1, -1, -1):
                        total[i] += v * left[i] * right / denominators[i]
                        right *= u - stencil[i]
            for i, j in enumerate(stencil):
                weights[cell + j] = weights.get(cell + j, arb(0)) + total[i]
        x = cuts[top]
        upper = (1 - q) * mass(x, 0) + q * mass(x, 1)
        lower = mass(x, 0)
        # A law of mass 1 − upper: the nearest point takes what the quadrature left.
        rest = 1 - upper - sum(weights.values(), arb(0))
        if abs(float(rest.mid())) > 1e-12 * float(delta) / steps:
            raise ValueError("quadrature on the lattice")
        weights[0] += rest
        window = math.ceil(drift / float(h)) + 40 * r
        size = top + window + 1

        def times(a, b):
            c = (a * b).coeffs()[window : window + size]
            return fmpz_poly([v >> self.bits for v in c])

        one = [0] * size
        for k, v in weights.items():
            if k + window < size:
                one[k + window] = int((v * unit).mid().floor().unique_fmpz())
        power, square, t = None, fmpz_poly(one), steps
        while True:
            if t & 1:
                power = square if power is None else times(power, square)
            t >>= 1
            if not t:
                break
            square = times(square, square)
        coeffs = [int(v) for v in power.coeffs()]
        coeffs += [0] * (size - len(coeffs))
        law = [arb(v) / unit for v in coeffs]  # index k + window
        m0 = (1 - upper) ** steps
        m1 = sum((v * (-(h * k)).exp() for k, v in weights.items()), arb(0)) ** steps
        all_upper, all_lower = 1 - m0, 1 - (1 - lower) ** steps
        # δ at the points, by the put of each.
        values, s0, s1 = [], arb(0), arb(0)
        span = 8
        for i in range(size - span):
            k = i - window
            s0 += law[i]
            s1 += law[i] * (-(h * k)).exp()
            if k < self.points // 4:  # rings of what is at 0
                values.append(None)
                continue
            e = (h * k).exp()
            call = (m0 - s0) - e * (m1 - s1)
            f = [law[i + j] / h * (1 - (-(h * j)).exp()) for j in range(-span, span + 1)]
            for order, c in BERNOULLI:
                call += (
                    c * sum((w * v for w, v in zip(DIFFERENCES[order], f, strict=True)), arb(0)) * h
                )
            values.append((call + all_upper - e * all_lower).mid())
            if values[-1] < delta / 4 and k > self.points // 4 + 20:
                break
        at = next((i for i, v in enumerate(values) if v is not None and v < delta), None)
        if at is None:
            return None
        first = at - 5
        if first < window + self.points // 4:
            return arb(eps / 3)
        if at + 5 >= len(values):
            return arb(float(h) * (at - window))
        # Inverse interpolation of log δ.
        logs = [(values[first + j] / delta).log() for j in range(10)]
        found = arb(0)
        for j in range(10):
            term = h * (first + j - window)
            for i in range(10):
                if i != j:
                    term *= logs[i] / (logs[i] - logs[j])
            found += term
        return found.mid()


def differences(span, order):
    """Weights of the central difference of an order, on 2 span + 1 points of distance 1."""
    points = range(-span, span + 1)
    rows = [
        [Fraction(p) ** k for p in points] + [Fraction(math.factorial(order) if k == order else 0)]
        for k in range(len(points))
    ]
    for i in range(len(rows)):
        pivot = next(j for j in range(i, len(rows)) if rows[j][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for j in range(len(rows)):
            if j != i and rows[j][i] != 0:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [arb(fmpq(r[-1].numerator, r[-1].denominator)) for r in rows]


# ∫f from a = h (f(a)/2 + Σ f) + Σ over odd orders of c h^(order+1) f^(order)(a).
BERNOULLI = [
    (1, arb(fmpq(1, 12))),
    (3, arb(fmpq(-1, 720))),
    (5, arb(fmpq(1, 30240))),
    (7, arb(fmpq(-1, 1209600))),
]
DIFFERENCES = {order: differences(8, order) for order, _ in BERNOULLI}


def on_lattice(q, sigma, steps, delta, eps):
    """Returns ε of Poisson sampling, remove, and the relative difference between two lattices."""
    bits = 150 - 2 * int(
        (math.log(Fraction(delta).numerator) - math.log(Fraction(delta).denominator)) / math.log(2)
    )
    digits = min(bits // 7, 100)
    values: list = []
    base = 200 * (1 + digits // 50)
    for points in base, 3 * base:
        try:
            values = [
                Lattice(q, sigma, steps, delta, *s).epsilon(eps)
                for s in (
                    (points, 4 + digits // 15, 14 + bits // 25, 1.3, bits),
                    (int(1.45 * points), 5 + digits // 12, 18 + bits // 25, 1.5, bits + 40),
                )
            ]
        except ArithmeticError:
            continue
        difference = abs(float((values[0] - values[1]) / values[1]))
        if difference < 1e-10:
            break
    else:
        if not values:
            raise ValueError("too few points")
    return float(values[1]), difference


def one_step(law, q, sigma, delta):
    """ε of one step, from the closed form of δ(ε)."""
    flint.ctx.dps = 420
    q, sigma, delta = (
        arb(fmpq(v.numerator, v.denominator)) for v in map(Fraction, (q, sigma, delta))
    )

    def beyond(x, mean):
        return ((x - mean) / (sigma * arb(2).sqrt())).erfc() / 2

    def place(loss):  # x at which log(1 + qu) is a loss
        return sigma * sigma * (1 + (loss.exp() - 1) / q).log() + arb(0.5)

    def mixture(x, mean):
        return (1 - q) * beyond(x, 0) + q * beyond(x, mean)

    def exceeds(eps):
        if law == "poisson_remove":
            x = place(eps)
            return mixture(x, 1) - eps.exp() * beyond(x, 0) > delta
        if law == "poisson_add":
            if not (-eps).exp() > 1 - q:
                return False
            x = place(-eps)
            return (
                beyond(-x, 0) - eps.exp() * ((1 - q) * beyond(-x, 0) + q * beyond(-x, -1)) > delta
            )
        if law == "fixed_size":
            x = place(eps)
            return q * (beyond(x, 1) - (1 + (eps.exp() - 1) / q) * beyond(x, 0)) > delta
        a, b = arb(-1), 1 + 2 * sigma * sigma * (eps + 1 - q.log()) + 100
        for _ in range(200):
            x = ((a + b) / 2).mid()
            up = 1 + q * (((2 * x - 1) / (2 * sigma * sigma)).exp() - 1)
            down = 1 + q * (((-2 * x - 1) / (2 * sigma * sigma)).exp() - 1)
            a, b = (x, b) if (up / down).log() < eps else (a, x)
        return mixture(x, 1) - eps.exp() * mixture(x, -1) > delta

    a, b = arb(0), arb(2000)
    for _ in range(90):
        m = ((a + b) / 2).mid()
        a, b = (m, b) if exceeds(m) else (a, m)
    return float(b)


def contour(law, q, sigma, steps, delta, eps=None, log=lambda *_: None):
    """Returns ε of a law and the relative difference between the settings."""
    rough = Problem(law, q, sigma, steps, delta, ROUGH)
    eps = eps or rough.guess()
    for _ in range(8):
        last, eps = eps, float(rough.epsilon(eps, log))
        if eps <= 0:
            return 0.0, 0.0
        if abs(eps / last - 1) < 0.01:
            break
    else:
        raise ValueError("no convergence")
    values = []
    for s in SETTINGS:
        p = Problem(law, q, sigma, steps, delta, s)
        values.append(p.epsilon(eps, log))
        if abs(float(values[-1]) / eps - 1) > 0.02:
            raise ValueError("the rough value is not near")
        if p.chernoff(float(values[-1])) < p.log_delta - 1e-6:
            raise ValueError("Chernoff's bound is below δ")
    return float(values[1]), abs(float((values[0] - values[1]) / values[1]))


def limited(f, seconds):
    """Value of f, or None if it fails or takes too long."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return f()
    except Exception as e:  # Another method may do.
        print("  ", repr(e)[:100], flush=True)
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def solve(law, q, sigma, steps, delta):
    """Returns ε, the largest relative difference of any two computations, and the methods."""
    found, eps = [], None
    if law == "poisson_remove":
        guess = Problem(law, q, sigma, steps, delta, ROUGH).guess()
        v = limited(lambda: on_lattice(q, sigma, steps, delta, guess), LIMIT)
        if v is not None and v[1] < 1e-9:
            found.append((*v, "lattice"))
            eps = v[0]
    v = limited(
        lambda: contour(law, q, sigma, steps, delta, eps), LIMIT if eps is None else LIMIT // 12
    )
    if v is not None and v[1] < 1e-9:
        found.insert(0, (*v, "contour"))
    if steps == 1:
        found.append((one_step(law, q, sigma, delta), 0.0, "closed"))
    if not found:
        raise ValueError("no method")
    eps = found[0][0]
    if eps == 0:
        return 0.0, 0.0, ["contour"]
    differences = [abs(v / eps - 1) for v, _, _ in found] + [d for _, d, _ in found]
    return eps, max(differences), [m for _, _, m in found]


ADD_REMOVE, REPLACE, FIXED = "poisson_add_remove", "poisson_replace", "fixed_size"
COLUMNS = [
    "mechanism",
    "q",
    "dataset_size",
    "batch_size",
    "sigma",
    "steps",
    "delta",
    "epsilon",
    "epsilon_remove",
    "epsilon_add",
    "agreement",
    "method",
]


def rows():
    """Yields mechanism, q, data set size, batch size, σ, steps, δ."""
    for delta in ["1e-16", "1e-18", "1.1e-18", "1.13e-18", "1e-24", "1e-40", "1e-100"]:
        yield ADD_REMOVE, ".00033", "", "", "4", 10_000, delta
    yield ADD_REMOVE, ".00038", "", "", "4", 10_000, "1e-100"
    for steps, delta in (10_000, "1e-6"), (10_000, "1e-9"), (100_000, "1e-8"), (1_000_000, "1e-14"):
        yield ADD_REMOVE, "1e-5", "", "", "1", steps, delta
    some = []
    for i, q in enumerate(("1e-7", "1e-6", "1e-4", "1e-3")):
        for j, sigma in enumerate((".5", ".7", "1", "2")):
            for k, steps in enumerate((100, 10_000, 1_000_000)):
                for m, delta in enumerate(("1e-6", "1e-10", "1e-15")):
                    if (i + j + k + m) % 2 == 0:
                        some.append((ADD_REMOVE, q, "", "", sigma, steps, delta))
    yield from some[::2]
    for mechanism, sizes in (REPLACE, ("", "")), (FIXED, (10_000, 1)):
        for sigma in "1", "2":
            for delta in ["1e-18", "1e-20", "1e-30", "1e-100"]:
                yield mechanism, "1e-4", *sizes, sigma, 10_000, delta
    yield FIXED, "", 5647, 1, "7.17", 553, "3e-10"
    for delta in "1e-6", "1e-10":
        yield ADD_REMOVE, "1.4e-5", "", "", ".58", 26_430, delta
        yield REPLACE, "1.4e-5", "", "", ".58", 26_430, delta
        yield FIXED, "1.4e-5", 500_000, 7, ".58", 26_430, delta
    for delta in "1e-30", "1e-100", "1e-300":
        for sigma in ".6", "1":
            for steps in 1000, 100_000:
                yield ADD_REMOVE, ".01", "", "", sigma, steps, delta
        yield ADD_REMOVE, ".5", "", "", "3", 10, delta
    yield ADD_REMOVE, "2.61e-7", "", "", ".598", 237_641, "9.06e-14"
    yield ADD_REMOVE, "1.32e-7", "", "", ".557", 392_115, "1.5e-13"
    yield ADD_REMOVE, "3.57e-7", "", "", ".735", 2579, "2.13e-10"
    yield REPLACE, "2.45e-7", "", "", ".56", 14_161, "1.71e-8"
    for steps in 1, 2:
        for sigma in ".3", "1":
            for delta in "1e-6", "1e-30":
                yield ADD_REMOVE, ".1", "", "", sigma, steps, delta
                yield REPLACE, ".1", "", "", sigma, steps, delta
                yield FIXED, ".1", 1000, 100, sigma, steps, delta
    yield from some[1::2]
    yield ADD_REMOVE, ".00033", "", "", "4", 10_000, "1e-300"


def main():
    done = set()
    with OUT.open(newline="") as f:
        for r in csv.DictReader(line for line in f if not line.startswith("#")):
            done.add(tuple(r[c] for c in COLUMNS[:7]))
    for row in rows():
        mechanism, q, size, batch, sigma, steps, delta = row
        if tuple(map(str, row)) in done:
            continue
        start = time.time()
        exact = str(Fraction(batch, size)) if mechanism == FIXED else q
        laws = ("poisson_remove", "poisson_add") if mechanism == ADD_REMOVE else (mechanism,)
        try:
            values = [solve(law, exact, sigma, steps, delta) for law in laws]
        except ValueError as e:
            print("failed", row, repr(e), time.time() - start, flush=True)
            continue
        print(row, values, time.time() - start, flush=True)
        eps = max(v for v, _, _ in values)
        if eps == 0:
            continue
        agreement = max(d for _, d, _ in values)
        method = "+".join(max(values, key=lambda v: v[0])[2])
        if agreement > 1e-9:
            print("settings disagree", row, flush=True)
            continue
        both = [repr(v) for v, _, _ in values] if mechanism == ADD_REMOVE else ["", ""]
        with OUT.open("a", newline="") as f:
            csv.writer(f, lineterminator="\n").writerow(
                [*row, repr(eps), *both, f"{agreement:.1e}", method]
            )


LIMIT = 100  # seconds a computation


def expire(*_):
    raise TimeoutError


if __name__ == "__main__":
    signal.signal(signal.SIGPROF, expire)
    main()
