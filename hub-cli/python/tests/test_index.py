"""Tests of index.json: what a call is bound to, which module it gets, and that damaged and hostile files are refused."""

import base64
import copy
import json

import pallas_modules
import pytest


def entry(file="mosaic/a.mlirbc", **changes):
    """A module of `ragged_dot`, as index.json has it."""
    return {
        "file": file,
        "sha256": "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
        "bytes": 6,
        "kernel": "ragged_dot",
        "dtypes": {"T": "bfloat16"},
        "tile": {"bm": 512},
        "demands": [["<=", "k", 2048]],
        "operands": [{"expr": ["ceildiv", "n", 768]}, {"exprs": ["m", "g"]}, {"argument": "group_sizes"}, {"argument": "lhs"}],
        "results": ["out"],
        "vmem_bytes": 1024,
        "custom_call_config": {"serialization_format": 1, "needs_layout_passes": True},
        "backend_config": {"scoped_memory_configs": [{"memory_space": 1, "offset": 0, "size": 65536}]},
        "generations": ["v5e", "v6e"],
    } | changes


@pytest.fixture
def load(part, tmp_path):
    """Loads an index of one operation with the given modules, optionally after an edit of its JSON."""
    (tmp_path / "mosaic").mkdir()
    (tmp_path / "mosaic" / "a.mlirbc").write_bytes(b"hello\n")

    def load(*modules, edit=lambda index: None):
        op = pallas_modules.interface("ragged_dot") | {"modules": list(modules)}
        index = copy.deepcopy({"schema": 1, "mosaic_version": 15, "ops": {"ragged_dot": op}})
        edit(index)
        (tmp_path / "index.json").write_text(json.dumps(index))
        return part("_load").load(tmp_path)

    return load


def call(op, m=512, k=2048, n=768, g=8, dtype="bfloat16"):
    return op.bind([(dtype, (m, k)), (dtype, (g, n, k)), ("int32", (g,))])


def test_a_call_binds_dims_and_dtypes(load):
    bound = call(load(entry()).op("ragged_dot"))
    assert bound.dims == {"m": 512, "k": 2048, "n": 768, "g": 8}
    assert bound.dtypes == {"T": "bfloat16"}
    assert bound.results() == [("bfloat16", (512, 768))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([("bfloat16", (4, 8))], r"takes 3 arrays \(\(lhs: T\[m, k\], .*, not 1"),
        ([("bfloat16", (4,)), ("bfloat16", (2, 3, 8)), ("int32", (2,))], r"lhs has shape \(4,\)"),
        ([("bfloat16", (4, 8)), ("float32", (2, 3, 8)), ("int32", (2,))], "rhs is float32; T is bfloat16 already"),
        ([("bfloat16", (4, 8)), ("bfloat16", (2, 3, 9)), ("int32", (2,))], "k is 8 and then 9, in rhs"),
        ([("bfloat16", (4, 8)), ("bfloat16", (2, 3, 8)), ("int64", (2,))], "group_sizes is int64; it must be int32"),
        ([("bfloat16", (4, 8)), ("bfloat16", (2, 3, 8)), ("int32", (3,))], "g is 2 and then 3, in group_sizes"),
    ],
)
def test_arguments_that_do_not_fit(load, arguments, message):
    with pytest.raises(TypeError, match=message):
        load(entry()).op("ragged_dot").bind(arguments)


def test_the_first_module_that_fits_is_taken(load):
    op = load(
        entry(demands=[["<=", "k", 1024]], kernel="small"),
        entry(dtypes={"T": "float32"}, kernel="wide"),
        entry(generations=["v7x"], kernel="new"),
        entry(kernel="any"),
    ).op("ragged_dot")
    assert op.select(call(op, k=1024)).kernel == "small"
    assert op.select(call(op, dtype="float32")).kernel == "wide"
    assert op.select(call(op)).kernel == "new"
    assert op.select(call(op), "v7x").kernel == "new"
    assert op.select(call(op), "v6e").kernel == "any"


def test_no_module_says_what_was_asked_and_what_there_is(load):
    op = load(entry()).op("ragged_dot")
    with pytest.raises(ValueError, match="T=bfloat16, m=512, k=4096, n=768, g=8") as error:
        op.select(call(op, k=4096))
    assert type(error.value).__name__ == "NoModule"
    assert "T=bfloat16 and k <= 2048 (v5e, v6e)" in str(error.value)
    with pytest.raises(ValueError, match="no TPU module on v4 for T=bfloat16"):
        op.select(call(op), "v4")
    with pytest.raises(ValueError, match="no operation 'tgmm'; it has ragged_dot"):
        load().op("tgmm")


def test_backend_config(load):
    config = json.loads(load(entry()).op("ragged_dot").modules[0].backend_config)
    body = config["custom_call_config"].pop("body")
    assert base64.b64decode(body) == b"hello\n"
    assert config == {
        "custom_call_config": {"serialization_format": 1, "needs_layout_passes": True},
        "scoped_memory_configs": [{"memory_space": 1, "offset": 0, "size": 65536}],
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bytes": 7}, "the file has 6 bytes, index.json says 7"),
        ({"sha256": "0" * 64}, "its sha256 is 5891b5b5.*download the package again"),
        ({"file": "mosaic/b.mlirbc"}, "mosaic/b.mlirbc: cannot be read"),
    ],
)
def test_a_module_file_is_checked_before_use(load, changes, message):
    module = load(entry(**changes)).op("ragged_dot").modules[0]
    with pytest.raises(ValueError, match=message):
        module.backend_config  # noqa: B018


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"file": "../secret"}, "is not a path inside the package"),
        ({"file": "/etc/passwd"}, "is not a path inside the package"),
        ({"file": "mosaic//a"}, "is not a path inside the package"),
        ({"file": "mosaic\\..\\a"}, "is not a path inside the package"),
        ({"file": "C:\\a"}, "is not a path inside the package"),
        ({"file": "a\0b"}, "is not a path inside the package"),
        ({"file": 7}, "expected str, found int"),
        ({"bytes": True}, "expected int, found bool"),
        ({"sha256": "ABC"}, "not 64 hexadecimal digits"),
        ({"kernel": 'x", other = "'}, "is not a name"),
        ({"dtypes": {}}, "no dtype for T"),
        ({"dtypes": {"T": "bfloat16", "S": "int8"}}, "'S' must be a dtype variable"),
        ({"demands": [["<=", "q", 1]]}, "unknown dimension 'q'"),
        ({"demands": "k <= 1"}, "expected list, found str"),
        ({"operands": [{"expr": ["ceildiv", "m", 0]}]}, "divides by 0"),
        ({"operands": [{"argument": "bias"}]}, "with an argument of ragged_dot"),
        ({"operands": [{"argument": []}]}, "with an argument of ragged_dot"),
        ({"operands": [{"exprs": []}]}, r"operands\[0\]"),
        ({"operands": [{"expr": 1, "argument": "lhs"}]}, r"operands\[0\]"),
        ({"results": ["other"]}, "must be the operation's results"),
        ({"generations": [{"v": 1}]}, "is not the name of a TPU generation"),
        ({"custom_call_config": {"body": "x"}}, "may not name the body"),
        ({"backend_config": {"custom_call_config": {}}}, "may not name the body"),
    ],
)
def test_hostile_modules_are_refused(load, changes, message):
    with pytest.raises(ValueError, match=message) as error:
        load(entry(), entry(**changes))
    assert type(error.value).__name__ == "BadIndex"
    assert "ops.ragged_dot.modules[1]" in str(error.value)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda i: i.update(schema=2), "has schema 2; this package reads schema 1"),
        (lambda i: i.pop("ops"), "'ops' is missing"),
        (lambda i: i["ops"].update({"a b": {}}), "'a b' is not a name"),
        (lambda i: i["ops"]["ragged_dot"].pop("dims"), "'dims' is missing"),
        (lambda i: i["ops"]["ragged_dot"]["dims"].append("z"), "no argument has a size z"),
        (lambda i: i["ops"]["ragged_dot"]["results"].clear(), "needs at least one result"),
        (lambda i: i["ops"]["ragged_dot"]["arguments"][0].update(name="rhs"), "two arrays have the same name"),
        (lambda i: i["ops"]["ragged_dot"]["arguments"][0].update(dtype="f32; }"), "is not a dtype name"),
        (lambda i: i["ops"]["ragged_dot"]["results"][0].update(dtype="U"), "no argument has the dtype U"),
        (lambda i: i["ops"].update(ragged_dot=[]), "expected dict, found list"),
    ],
)
def test_hostile_interfaces_are_refused(load, edit, message):
    with pytest.raises(ValueError, match=message):
        load(entry(), edit=edit)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"schema": 1', "\udcff"])
def test_what_is_not_an_index_is_refused(part, tmp_path, text):
    (tmp_path / "index.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"index\.json"):
        part("_load").load(tmp_path)


def test_a_missing_index_is_named(part, tmp_path):
    with pytest.raises(ValueError, match=r"index\.json cannot be read: No such file"):
        part("_load").load(tmp_path)


@pytest.mark.parametrize(
    ("kind", "generation"),
    [("TPU v4", "v4"), ("TPU v5 lite", "v5e"), ("TPU v5", "v5p"), ("TPU v6 lite", "v6e"), ("TPU7x", "v7x"), ("TPU v99", None)],
)
def test_generations(part, kind, generation):
    assert part("_index").generation(kind) == generation
