"""Tests of the expressions and demands of index.json."""

import pytest

DIMS = {"m": 1000, "k": 2048, "n": 768}


@pytest.fixture(scope="module")
def expr(part):
    return part("_expr")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (7, 7),
        ("m", 1000),
        (["+", "m", 24], 1024),
        (["-", "m", "k"], -1048),
        (["*", "n", 2], 1536),
        (["ceildiv", "m", 512], 2),
        (["ceildiv", 1024, 512], 2),
        (["floordiv", "m", 512], 1),
        (["floordiv", -1, 512], -1),
        (["mod", -1, 512], 511),
        (["mod", "m", 512], 488),
        (["min", "m", "n"], 768),
        (["max", "m", ["ceildiv", "k", 2]], 1024),
    ],
)
def test_values(expr, expression, value):
    expr.check(expression, DIMS, "here")
    assert expr.evaluate(expression, DIMS) == value


@pytest.mark.parametrize(
    ("demand", "true"),
    [
        (["<=", "k", 2048], True),
        (["<", "k", 2048], False),
        (["==", ["mod", "n", 256], 0], True),
        (["!=", "m", "k"], True),
        ([">", "m", "k"], False),
        ([">=", "m", 1000], True),
    ],
)
def test_demands(expr, demand, true):
    expr.check_demand(demand, DIMS, "here")
    assert expr.holds(demand, DIMS) is true


@pytest.mark.parametrize(
    "bad", [None, True, 1.5, [], ["+", 1], ["+", 1, 2, 3], ["/", 1, 2], ["<=", 1, 2], "q", {"m": 1}, [["+"], 1, 2], 2**31]
)
def test_malformed_expressions_are_refused(expr, bad):
    with pytest.raises(ValueError, match="^here: "):
        expr.check(bad, DIMS, "here")


@pytest.mark.parametrize("bad", [None, "m", ["+", 1, 2], ["<="], ["<=", 1], ["<=", "q", 1], [1, 2, 3]])
def test_malformed_demands_are_refused(expr, bad):
    with pytest.raises(ValueError, match="^here: "):
        expr.check_demand(bad, DIMS, "here")


def test_deep_nesting_is_refused(expr):
    deep = "m"
    for _ in range(5000):
        deep = ["+", deep, 1]
    with pytest.raises(ValueError, match="nested more than 32 deep"):
        expr.check(deep, DIMS, "here")


def test_a_divisor_must_be_positive(expr):
    with pytest.raises(ValueError, match="divides by 0"):
        expr.check(["mod", "m", 0], DIMS, "here")
    with pytest.raises(ValueError, match=r"ceildiv\(m, \(n - 768\)\) divides by 0 for m=1000"):
        expr.evaluate(["ceildiv", "m", ["-", "n", 768]], DIMS)


def test_rendering(expr):
    assert expr.render(["==", ["mod", ["+", "k", 1], 512], 0]) == "((k + 1) % 512) == 0"
