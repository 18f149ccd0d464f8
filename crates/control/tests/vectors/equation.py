"""Writes equation.csv and timeout_probability.csv: the equations of `src/equation.rs`, computed anew.

    pip install mpmath && python3 equation.py

Written from the papers' formulas, not from the Rust: 60 decimal digits, no rearrangement, each input the
double that its text stands for. Printed with 17 digits.
"""

from mpmath import binomial, mp, mpf, nstr, sqrt

mp.dps = 60
ONE = mpf(1)


def window(p):
    return sqrt(8 / (3 * p))


def closed(p):
    """P(Q), closed form, unclamped [lossy §5]."""
    w = window(p)
    # (1 - p)^w needs more digits than p has zeros
    with mp.workdps(mp.dps + 20):
        return (2 - p) * p ** (w - 3) / (2 * (1 - (1 - p) ** w))


def corrected_sum(p):
    """P(Q), the sum to k = 2 with p^(w-k), w real, unclamped."""
    w = window(p)
    with mp.workdps(mp.dps + 20):
        return sum(binomial(w, k) * (1 - p) ** k * p ** (w - k) for k in range(3)) / (1 - (1 - p) ** w)


SHARE = {
    "simple": lambda b, p: mpf(0),
    "complex": lambda b, p: min(ONE, 3 * sqrt(3 * b * p / 8)),
    "modified": lambda b, p: min(ONE, closed(p)),
    "rfc5348": lambda b, p: 3 * sqrt(3 * b * p / 8),
}

# size B, RTT ms, RTO ms, b: RFC 5348's with t_RTO = 4R, a satellite, a modem of the paper, a LAN
PATHS = [(1460, 100, 400, 1), (1000, 550, 1000, 1), (256, 1639, 2717, 2), (65535, 1, 200, 1)]
LOSS = "1e-8 1e-6 1e-4 0.001 0.005 0.01 0.02 0.05 0.1 0.15 0.2 0.25 0.251 0.3 0.415 0.5 0.718 0.719 0.8 0.9 0.99 1".split()


def main():
    with open("equation.csv", "w") as f:
        print("# made by equation.py; rate_bps = 8 size / (triple_dup_s + timeout_s)", file=f)
        print("equation,size_b,rtt_ms,rto_ms,b,p,triple_dup_s,timeout_s,rate_bps", file=f)
        for name, share in SHARE.items():
            for size, rtt, rto, b in PATHS:
                for text in LOSS:
                    p = mpf(float(text))
                    dup = mpf(rtt) / 1000 * sqrt(2 * b * p / 3)
                    out = mpf(rto) / 1000 * share(b, p) * p * (1 + 32 * p**2)
                    row = [nstr(x, 17, strip_zeros=False) for x in (dup, out, 8 * size / (dup + out))]
                    print(name, size, rtt, rto, b, text, *row, sep=",", file=f)
    with open("timeout_probability.csv", "w") as f:
        print("# made by equation.py; unclamped, so above 1 in places", file=f)
        print("p,w,closed,sum", file=f)
        for text in LOSS:
            p = mpf(float(text))
            print(text, *(nstr(x, 17, strip_zeros=False) for x in (window(p), closed(p), corrected_sum(p))), sep=",", file=f)


main()
