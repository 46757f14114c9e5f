"""Integer expressions over the dimensions of a call, as index.json writes them.

An expression is an int, the name of a dimension, or `[operator, a, b]`, such as `["ceildiv", "n", 768]`. A demand is
`[comparison, a, b]`, such as `["<=", "k", 2048]`. Everything is an integer; divisors must be positive.
"""

import operator

from ._errors import BadIndex

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "ceildiv": lambda a, b: -(-a // b),
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": min,
    "max": max,
}
COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
DIVISIONS = ("ceildiv", "floordiv", "mod")
INT32 = range(-(2**31), 2**31)
MAX_DEPTH = 32


def check(expr, dims, where, depth=0):
    """Raises BadIndex, naming `where`, unless `expr` is an expression over the names in `dims`."""
    if type(expr) is int:
        if expr not in INT32:
            raise BadIndex(f"{where}: {expr} does not fit a 32-bit integer")
    elif isinstance(expr, str):
        if expr not in dims:
            raise BadIndex(f"{where}: unknown dimension {expr!r}; the operation has {', '.join(dims)}")
    elif depth >= MAX_DEPTH:
        raise BadIndex(f"{where}: an expression is nested more than {MAX_DEPTH} deep")
    elif isinstance(expr, list) and len(expr) == 3 and isinstance(expr[0], str) and expr[0] in OPERATORS:
        check(expr[1], dims, where, depth + 1)
        check(expr[2], dims, where, depth + 1)
        if expr[0] in DIVISIONS and type(expr[2]) is int and expr[2] <= 0:
            raise BadIndex(f"{where}: {render(expr)} divides by {expr[2]}; a divisor must be positive")
    else:
        raise BadIndex(f"{where}: {_short(expr)} is not an int, a dimension or [{' | '.join(OPERATORS)}, a, b]")


def check_demand(demand, dims, where):
    """Raises BadIndex, naming `where`, unless `demand` compares two expressions over the names in `dims`."""
    if not (isinstance(demand, list) and len(demand) == 3 and isinstance(demand[0], str) and demand[0] in COMPARISONS):
        raise BadIndex(f"{where}: {_short(demand)} is not [{' | '.join(COMPARISONS)}, a, b]")
    check(demand[1], dims, where)
    check(demand[2], dims, where)


def evaluate(expr, dims):
    """The value of a checked expression, for dimensions given by name."""
    if isinstance(expr, list):
        name, a, b = expr[0], evaluate(expr[1], dims), evaluate(expr[2], dims)
        if name in DIVISIONS and b <= 0:
            raise BadIndex(f"{render(expr)} divides by {b} for {describe(dims)}; a divisor must be positive")
        return OPERATORS[name](a, b)
    return dims[expr] if isinstance(expr, str) else expr


def holds(demand, dims):
    """Whether a checked demand is true, for dimensions given by name."""
    return COMPARISONS[demand[0]](evaluate(demand[1], dims), evaluate(demand[2], dims))


def render(expr):
    """An expression or a demand as people write it: `ceildiv(n, 768)`, `k % 128 == 0`."""
    if not isinstance(expr, list):
        return str(expr)
    name, a, b = expr[0], render(expr[1]), render(expr[2])
    if name in ("ceildiv", "floordiv", "min", "max"):
        return f"{name}({a}, {b})"
    text = f"{a} {'%' if name == 'mod' else name} {b}"
    return text if name in COMPARISONS else f"({text})"


def describe(dims):
    """Dimensions as people write them: `m=512, k=2048`."""
    return ", ".join(f"{name}={size}" for name, size in dims.items())


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
