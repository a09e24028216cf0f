#!/usr/bin/env python3
"""Finds the polynomial coefficients of src/base/elementary_f32.h and elementary_f64.h.

    tools/minimax.py            all of them
    tools/minimax.py sin_f32    one

For each entry of the table below it looks for the polynomial p of a given degree that minimises the largest
|weight(x) * (p(x) - target(x))| on an interval (Remez' exchange algorithm, in 120 digits), then rounds the coefficients
to the precision in which they are used. It prints them as C literals, and the error before and after rounding.

Needs the mpmath package. Not part of the build: run it to check a coefficient or to change a degree.
"""

import sys

import mpmath
from mpmath import mp, mpf

mp.dps = 120
SAMPLES_PER_COEFFICIENT = 40  # points of the grid on which extrema are looked for
CHECKS_PER_COEFFICIENT = 100  # points at which the rounded polynomial is checked
EXCHANGES = 30  # Remez converges quadratically; the entries here need fewer than ten
NEAR_ZERO = mpf("1e-20")  # nearer than this a target is taken to be constant


def away_from_zero(function):
    """The function, but constant very near zero, where differences like (e^x - 1 - x) / x^2 lose all their digits."""
    return lambda x: function(x if abs(x) > NEAR_ZERO else (NEAR_ZERO if x >= 0 else -NEAR_ZERO))


def evaluate(coefficients, x):
    return mpmath.polyval(coefficients[::-1], x)


def remez(target, weight, low, high, degree):
    """Coefficients, lowest power first, and the largest weighted error."""
    count = degree + 1
    size = SAMPLES_PER_COEFFICIENT * (count + 1)
    # Chebyshev's distribution: dense at the ends, where the extrema are.
    grid = [(low + high) / 2 - (high - low) / 2 * mpmath.cos(mpmath.pi * i / size) for i in range(size + 1)]
    goal = [target(x) for x in grid]
    weights = [weight(x) for x in grid]
    # Points of no weight constrain nothing and would make the system singular.
    usable = [i for i in range(size + 1) if weights[i] != 0]
    places = [usable[(len(usable) - 1) * i // count] for i in range(count + 1)]
    best = None
    for _ in range(EXCHANGES):
        rows = mpmath.matrix(count + 1, count + 1)
        right = mpmath.matrix(count + 1, 1)
        for i, place in enumerate(places):
            for j in range(count):
                rows[i, j] = grid[place] ** j
            rows[i, count] = (-1) ** i / weights[place]
            right[i] = goal[place]
        answer = mpmath.lu_solve(rows, right)
        coefficients = [answer[j] for j in range(count)]
        error = [weights[i] * (evaluate(coefficients, grid[i]) - goal[i]) for i in range(size + 1)]
        largest = max(abs(e) for e in error)
        if best is None or largest < best[1]:
            best = (coefficients, largest)
        # One extremum for each run of equal sign.
        runs = []
        for i in usable:
            if runs and (error[i] >= 0) == (error[runs[-1]] >= 0):
                if abs(error[i]) > abs(error[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > count + 1:
            runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
        if len(runs) < count + 1 or runs == places:
            break
        places = runs
    return best


def round_to(value, digits):
    """The nearest number of that many binary digits."""
    if value == 0:
        return value
    _, exponent = mpmath.frexp(value)
    return mpmath.ldexp(mpmath.nint(mpmath.ldexp(value, digits - exponent)), exponent - digits)


def fit(target, weight, low, high, degree, digits):
    """Rounded coefficients, lowest power first, and the largest weighted errors before and after rounding."""
    exact, error = remez(target, weight, low, high, degree)
    rounded = [round_to(c, digits) for c in exact]
    size = CHECKS_PER_COEFFICIENT * (degree + 1)
    points = [low + (high - low) * i / size for i in range(size + 1)]
    return rounded, error, max(abs(weight(x) * (evaluate(rounded, x) - target(x))) for x in points)


def literal(value, digits):
    text = float(value).hex()
    mantissa, exponent = text.split("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return mantissa + "p" + exponent + ("f" if digits == 24 else "")


def exp_tail(x):
    return (mpmath.expm1(x) - x) / x ** 2


def log_tail(x):
    return (mpmath.log1p(x) - x + x * x / 2) / x ** 3


def atanh_tail(z):
    """R of log((1 + s) / (1 - s)) = 2 s + s z R(z), z = s^2."""
    s = mpmath.sqrt(z)
    return (2 * mpmath.atanh(s) / s - 2) / z


def atanh_tail_2(z):
    """What is left of atanh(s) / s after 1 + z / 3, over z^2."""
    s = mpmath.sqrt(z)
    return (mpmath.atanh(s) / s - 1 - z / 3) / z ** 2


def erf_small(z):
    x = mpmath.sqrt(z)
    return mpmath.erf(x) / x - 1


def minus_log_erfc(x):
    return -mpmath.log(mpmath.erfc(x))


def sin_tail(z):
    x = mpmath.sqrt(z)
    return (mpmath.sin(x) / x - 1) / z


def cos_tail(z):
    return (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z ** 2


HALF_LN2 = mpmath.log(2) / 2 * mpf("1.0001")  # a little more, because the reduced argument is rounded
LOG_LOW = mpmath.sqrt(mpf(1) / 2) - 1
LOG_HIGH = mpmath.sqrt(mpf(2)) - 1
ATANH_HIGH = ((mpmath.sqrt(mpf(2)) - 1) / (mpmath.sqrt(mpf(2)) + 1)) ** 2 * mpf("1.0001")
QUARTER_PI_SQUARE = (mpmath.pi / 4 * mpf("1.0001")) ** 2
ERF_SPLIT_F32 = mpf("0.9375")
ERF_SPLIT_F64 = mpf(1)
ERF_CENTRE = mpf("3")


def erfcx_mapped(t):
    """exp(x^2) erfc(x) as a function of t = (x - c) / (x + c)."""
    x = ERF_CENTRE * (1 + t) / (1 - t)
    return mpmath.exp(x * x) * mpmath.erfc(x)


def erfcx_weight(t):
    x = ERF_CENTRE * (1 + t) / (1 - t)
    return mpmath.exp(-x * x)


def mapped(x):
    return (x - ERF_CENTRE) / (x + ERF_CENTRE)


# name: target, weight, low, high, degree, binary digits. The weights make the error relative to the whole result.
TABLE = {
    "exp_f32": (exp_tail, lambda x: abs(x ** 2 / mpmath.expm1(x)), -HALF_LN2, HALF_LN2, 4, 24),
    "exp_f64": (exp_tail, lambda x: abs(x ** 2 / mpmath.expm1(x)), -HALF_LN2, HALF_LN2, 10, 53),
    "log_f32": (log_tail, lambda x: x ** 3 / mpmath.log1p(x), LOG_LOW, LOG_HIGH, 8, 24),
    "log_f64": (atanh_tail, lambda z: z / 2, mpf(0), ATANH_HIGH, 6, 53),
    "pow_f64": (atanh_tail_2, lambda z: z ** 2, mpf(0), ATANH_HIGH, 7, 53),
    "erf_small_f32": (erf_small, lambda z: mpf(1), mpf(0), ERF_SPLIT_F32 ** 2, 6, 24),
    "erf_large_f32": (minus_log_erfc, lambda x: mpmath.erfc(x) / mpmath.erf(x), ERF_SPLIT_F32, mpf(4), 6, 24),
    "erf_small_f64": (erf_small, lambda z: mpf(1), mpf(0), ERF_SPLIT_F64 ** 2, 12, 53),
    "erf_large_f64": (erfcx_mapped, erfcx_weight, mapped(ERF_SPLIT_F64), mapped(mpf(6)), 12, 53),
    "sin_f32": (sin_tail, lambda z: z, mpf(0), QUARTER_PI_SQUARE, 2, 24),
    "cos_f32": (cos_tail, lambda z: z ** 2 / mpmath.cos(mpmath.sqrt(z)), mpf(0), QUARTER_PI_SQUARE, 2, 24),
    "sin_f64": (sin_tail, lambda z: z, mpf(0), QUARTER_PI_SQUARE, 5, 53),
    "cos_f64": (cos_tail, lambda z: z ** 2 / mpmath.cos(mpmath.sqrt(z)), mpf(0), QUARTER_PI_SQUARE, 5, 53),
}


def main(names):
    for name in names or TABLE:
        target, weight, low, high, degree, digits = TABLE[name]
        coefficients, exact, rounded = fit(away_from_zero(target), away_from_zero(weight), low, high, degree, digits)
        before, after = (float(mpmath.log(error, 2)) for error in (exact, rounded))
        print(f"{name}: error 2^{before:.1f}, rounded 2^{after:.1f}; highest power first")
        for coefficient in reversed(coefficients):
            print(f"    {literal(coefficient, digits)}")


if __name__ == "__main__":
    main(sys.argv[1:])
