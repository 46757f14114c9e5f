"""The gradients of the three ragged products, each of which is again one of the three.

    ragged_dot      (lhs[m,k], rhs[g,n,k]) -> [m,n]
    ragged_dot_gkn  (lhs[m,k], rhs[g,k,n]) -> [m,n]
    tgmm            (lhs[m,k], grad[m,n])  -> [g,k,n]

For each product, GRADIENTS names the product that gives the gradient of its first and of its second argument, and the two
arguments of that: 0 and 1 are the product's own, `OUT` is the gradient of its result.
"""

OUT = 2

GRADIENTS = {
    "ragged_dot": (("ragged_dot_gkn", OUT, 1), ("tgmm", OUT, 0)),
    "ragged_dot_gkn": (("ragged_dot", OUT, 1), ("tgmm", 0, OUT)),
    "tgmm": (("ragged_dot", 1, OUT), ("ragged_dot_gkn", 0, OUT)),
}
