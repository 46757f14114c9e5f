"""The StableHLO text around a packaged TPU module: one symbolic program that serves every shape. Standard library only.

TorchTPU takes a program as text and refines its unknown sizes (`?`) for each call. So this is how a package reaches
PyTorch users who have no JAX. Sizes are read from the arguments with `get_dimension_size`; the shapes of the results are
passed as extra operands (`indices_of_shape_operands`), which refinement removes.
"""

TYPES = {
    "float64": "f64", "float32": "f32", "bfloat16": "bf16", "float16": "f16",
    "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "int4": "i4",
    "uint64": "ui64", "uint32": "ui32", "uint16": "ui16", "uint8": "ui8", "uint4": "ui4", "bool": "i1",
}  # fmt: skip
SCALAR = "tensor<i32>"


def program(op, module):
    """The text of a StableHLO module whose `main` takes the arguments of `op` and returns its results."""
    return _Program(op, module).text()


class _Program:
    """Emits one program, line by line."""

    def __init__(self, op, module):
        self.op, self.module = op, module
        self.lines = []
        self.known = {}  # expression or dimension (as text) -> SSA name of its value

    def text(self):
        arguments = [self.array(argument) for argument in self.op.arguments]
        results = [self.array(result) for result in self.op.results]
        operands = [self.operand(kind, what, arguments) for kind, what in self.module.operands]
        shapes = [self.vector(result.shape) for result in self.op.results]
        parameters = ", ".join(f"%arg{i}: {kind}" for i, kind in enumerate(arguments))
        returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
        positions = ", ".join(str(len(operands) + i) for i in range(len(shapes)))
        attributes = ", ".join([
            f'backend_config = "{escape(self.module.backend_config)}"',
            f'kernel_name = "{self.module.kernel}"',
            f"indices_of_shape_operands = dense<[{positions}]> : tensor<{len(shapes)}xi64>",
            f"operand_layouts = [{', '.join(layout(kind) for _, kind in operands + shapes)}]",
            f"result_layouts = [{', '.join(map(layout, results))}]",
        ])  # fmt: skip
        values = ", ".join(value for value, _ in operands + shapes)
        kinds = ", ".join(kind for _, kind in operands + shapes)
        out = "%out" if len(results) == 1 else f"%out:{len(results)}"
        outs = "%out" if len(results) == 1 else ", ".join(f"%out#{i}" for i in range(len(results)))
        body = "\n".join(f"    {line}" for line in self.lines)
        return (
            f"module @{self.module.kernel} {{\n  func.func public @main({parameters}) -> {returned} {{\n{body}\n"
            f"    {out} = stablehlo.custom_call @tpu_custom_call({values}) {{{attributes}}} : ({kinds}) -> {returned}\n"
            f"    return {outs} : {', '.join(results)}\n  }}\n}}\n"
        )

    def array(self, array):
        """The type of an argument or a result; every size that is not a number is unknown."""
        dtype = self.module.dtypes.get(array.dtype, array.dtype)
        return tensor(["?" if not isinstance(size, int) else size for size in array.shape], TYPES[dtype])

    def operand(self, kind, what, arguments):
        """An operand of the custom call as a pair of its SSA name and its type."""
        if kind == "argument":
            return f"%arg{what}", arguments[what]
        return (self.scalar(what), SCALAR) if kind == "expr" else self.vector(what)

    def vector(self, exprs):
        """A vector of int32, one element an expression."""
        kind = tensor([len(exprs)], "i32")
        if all(isinstance(expr, int) for expr in exprs):
            return self.emit(f"stablehlo.constant dense<{list(exprs)}> : {kind}"), kind
        one = tensor([1], "i32")
        parts = [self.emit(f"stablehlo.reshape {self.scalar(expr)} : ({SCALAR}) -> {one}") for expr in exprs]
        ones = ", ".join([one] * len(parts))
        return self.emit(f"stablehlo.concatenate {', '.join(parts)}, dim = 0 : ({ones}) -> {kind}"), kind

    def scalar(self, expr):
        """The SSA name of the int32 value of an expression."""
        key = repr(expr)
        if key not in self.known:
            self.known[key] = self.value(expr)
        return self.known[key]

    def value(self, expr):
        if isinstance(expr, int):
            return self.emit(f"stablehlo.constant dense<{expr}> : {SCALAR}")
        if isinstance(expr, str):
            place = ((i, a.shape.index(expr), a) for i, a in enumerate(self.op.arguments) if expr in a.shape)
            number, axis, argument = next(place)
            return self.emit(f"stablehlo.get_dimension_size %arg{number}, dim = {axis} : ({self.array(argument)}) -> {SCALAR}")
        name, a, b = expr[0], self.scalar(expr[1]), self.scalar(expr[2])
        simple = {"+": "add", "-": "subtract", "*": "multiply", "min": "minimum", "max": "maximum"}
        if name in simple:
            return self.binary(simple[name], a, b)
        if name == "ceildiv":  # for a positive divisor: floor((a + b - 1) / b)
            a = self.binary("subtract", self.binary("add", a, b), self.scalar(1))
        # StableHLO's remainder has the sign of the dividend; ours is that of the (positive) divisor.
        modulo = self.binary("remainder", self.binary("add", self.binary("remainder", a, b), b), b)
        return modulo if name == "mod" else self.binary("divide", self.binary("subtract", a, modulo), b)

    def binary(self, name, a, b):
        return self.emit(f"stablehlo.{name} {a}, {b} : {SCALAR}")

    def emit(self, operation):
        self.lines.append(f"%v{len(self.lines)} = {operation}")
        return f"%v{len(self.lines) - 1}"


def tensor(sizes, element):
    """A tensor type: `tensor<?x768xbf16>`."""
    return f"tensor<{'x'.join([*map(str, sizes), element])}>"


def layout(kind):
    """The row-major layout of a tensor type, as an attribute. (Each "x" of such a type's text ends a size.)"""
    rank = kind.count("x")
    return f"dense<{list(range(rank))[::-1]}> : tensor<{rank}xindex>" if rank else "dense<> : tensor<0xindex>"


def escape(text):
    """Text as it stands between the quotes of an MLIR string attribute."""
    return text.replace("\\", "\\5C").replace('"', "\\22")
