"""Writes modules for the reader's tests into a folder: NAME.mlirbc, with the text that MLIR prints for it in NAME.mlir.

usage: modules.py FOLDER
"""

import io
import os
import pathlib
import sys

os.environ.update(TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1", JAX_PLATFORMS="cpu")

import jax
import jax.numpy as jnp
from jax._src import config
from jax._src.interpreters import mlir
from jax._src.lib import tpu
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jaxlib.mlir import ir

# Every kind of attribute and type that MLIR has an encoding of its own for, as kernels may carry them.
ATTRIBUTES = [
    "unit",
    "true",
    "false",
    "-1 : i4",
    "200 : ui8",
    "-3 : si16",
    "-2147483648 : i32",
    "9223372036854775807 : i64",
    "-5 : index",
    "7 : i128",
    "-7 : i128",
    "1.000000e+00 : f32",
    "-1.000000e-01 : f64",
    "1.500000e+00 : bf16",
    "6.550400e+04 : f16",
    "-2.000000e+00 : f8E4M3FN",
    "1.000000e+00 : f8E8M0FNU",
    '"text"',
    '"\\22 \\\\ \\C3\\A9 \\0A"',
    "@symbol",
    '@"not plain"',
    '[1 : i32, [], "x"]',
    "{a = 1 : i64, b, c = {}}",
    "i1",
    "f8E5M2",
    "tf32",
    "index",
    "none",
    "(i32, f32) -> ()",
    "(i32) -> (f32, index)",
    "vector<8x128xbf16>",
    "vector<f32>",
    "tensor<?x4xi32>",
    "memref<8x?xf32>",
    "memref<8x128xf32, 3 : i64>",
    "memref<8x128xf32, affine_map<(d0, d1) -> (d1, d0)>, #tpu.memory_space<vmem>>",
    "memref<2x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>",
    "affine_map<() -> ()>",
    "affine_map<(d0, d1, d2) -> (d2, d0)>",
    "affine_map<(d0) -> (0, d0)>",
    "array<i32>",
    "array<i64: 1, -2>",
    "array<i1: true, false>",
    "array<i8: -1, 2>",
    "array<f32: 1.000000e+00, -2.500000e+00>",
    "dense<0.000000e+00> : vector<8x128xf32>",
    "dense<-1> : vector<4xi8>",
    "dense<true> : vector<4xi1>",
    "dense<false> : vector<16xi1>",
    "#tpu.memory_space<any>",
    "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>",
    "#tpu.tiled<(8,128),[16,1]>",
    "#arith.fastmath<none>",
    "#vector.kind<add>",
]

# Operations as MLIR writes them without any dialect: forward references, several results, blocks and their successors.
STRUCTURE = """
module @structure attributes {stable_mosaic.version = 18 : i64} {
  "stable_mosaic.func.func"() ({
  ^bb0(%a: i32, %b: memref<8x128xf32, #tpu.memory_space<vmem>>):
    %0:3 = "stable_mosaic.x.many"(%a, %a) {k = 1 : i32} : (i32, i32) -> (i32, f32, index)
    %1 = "stable_mosaic.x.region"(%0#2) ({
      %2 = "stable_mosaic.x.inner"(%0#0, %a) : (i32, i32) -> i32
      "stable_mosaic.x.yield"(%2, %a) : (i32, i32) -> ()
    }, {
    }) {late} : (index) -> f32
    "stable_mosaic.x.branch"(%1)[^bb2] : (f32) -> ()
  ^bb1:
    "stable_mosaic.func.return"(%3, %d) : (f32, i32) -> ()
  ^bb2(%c: f32, %d: i32):
    %3 = "stable_mosaic.x.late"(%c, %0#1) : (f32, f32) -> f32
    "stable_mosaic.x.branch"(%3)[^bb1, ^bb2] : (f32) -> ()
  }) {sym_name = "main"} : () -> ()
}
"""

# Operations that MLIR knows, whose properties have encodings of their own from version 5 on.
PLAIN = """
module @plain {
  func.func private @callee(i32) -> i32
  func.func @main(%n: i32, %r: memref<8x128xf32>, %v: vector<8x128xf32>) -> (i32, f32) attributes {x.y = 1 : i32} {
    %c = arith.constant 1 : i32
    %i = arith.constant 0 : index
    %s = arith.constant dense<2.0> : vector<8x128xf32>
    %0 = func.call @callee(%n) : (i32) -> i32
    %1 = arith.addi %0, %c overflow<nsw> : i32
    %2 = arith.divsi %1, %c : i32
    %3 = arith.cmpi slt, %2, %n : i32
    %4 = arith.addf %v, %s fastmath<fast> : vector<8x128xf32>
    %5 = arith.truncf %4 : vector<8x128xf32> to vector<8x128xbf16>
    %6 = math.exp %4 : vector<8x128xf32>
    %7 = vector.load %r[%i, %i] : memref<8x128xf32>, vector<8x128xf32>
    vector.store %6, %r[%i, %i] : memref<8x128xf32>, vector<8x128xf32>
    %z = arith.constant dense<0.0> : vector<8xf32>
    %8 = vector.multi_reduction <add>, %7, %z [1] : vector<8x128xf32> to vector<8xf32>
    %alloca = memref.alloca() : memref<8x128xf32>
    %alloc = memref.alloca(%i) : memref<?x128xf32>
    %9 = memref.load %alloca[%i, %i] : memref<8x128xf32>
    %10 = scf.for %k = %c to %n step %c iter_args(%x = %9) -> (f32) : i32 {
      %11 = arith.cmpf ogt, %x, %9 : f32
      %12 = scf.if %11 -> (f32) {
        scf.yield %x : f32
      } else {
        scf.yield %9 : f32
      }
      scf.yield %12 : f32
    }
    return %2, %10 : i32, f32
  }
}
"""


def context() -> ir.Context:
    made = mlir.make_ir_context()
    made.allow_unregistered_dialects = True
    tpu.register_dialect(made)
    return made


def write(folder: pathlib.Path, name: str, body: bytes) -> None:
    with context():
        module = ir.Module.parse(body)
        text = module.operation.get_asm(print_generic_op_form=True, use_local_scope=True)
    (folder / f"{name}.mlirbc").write_bytes(body)
    (folder / f"{name}.mlir").write_text(text)


def in_every_version(folder: pathlib.Path, name: str, text: str) -> None:
    with context():
        module = ir.Module.parse(text)
        for version in range(7):
            file = io.BytesIO()
            module.operation.write_bytecode(file, desired_version=version)
            write(folder, f"{name}-{version}", file.getvalue())


def matmul(x, y):
    def kernel(x_ref, y_ref, o_ref, acc_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)

    return pl.pallas_call(
        kernel,
        grid=(2, 2, 2),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((256, 256), jnp.bfloat16),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
        name="matmul",
    )(x, y)


def copies(x):
    def kernel(x_hbm, o_hbm, buffer, semaphores):
        copy = pltpu.make_async_copy(x_hbm.at[pl.ds(0, 8)], buffer, semaphores.at[0])
        copy.start()
        copy.wait()
        buffer[...] = jax.lax.fori_loop(0, 3, lambda i, v: v * 2 + i, buffer[...])
        copy = pltpu.make_async_copy(buffer, o_hbm.at[pl.ds(8, 8)], semaphores.at[1])
        copy.start()
        copy.wait()

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
        name="copies",
    )(x)


def in_place(x, y):
    def kernel(x_ref, y_ref, o_ref, p_ref):
        o_ref[...] = x_ref[...] + 1
        p_ref[...] = y_ref[...]

    return pl.pallas_call(
        kernel,
        out_shape=[jax.ShapeDtypeStruct(v.shape, v.dtype) for v in (x, y)],
        input_output_aliases={1: 1, 0: 0},
        name="in place",
    )(x, y)


def array(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


KERNELS = {
    "matmul": (matmul, [array(256, 256, dtype=jnp.bfloat16)] * 2),
    "copies": (copies, [array(16, 128)]),
    "in_place": (in_place, [array(8, 128), array(8, 128, dtype=jnp.uint8)]),
}


def lowered(kernel, arguments):
    return jax.jit(kernel).trace(*arguments).lower(lowering_platforms=("tpu",))


def main(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    every = ", ".join(f"a{i} = {attribute}" for i, attribute in enumerate(ATTRIBUTES))
    in_every_version(folder, "attributes", f'module @attributes {{\n"x.op"() {{{every}}} : () -> ()\n}}')
    in_every_version(folder, "structure", STRUCTURE)
    in_every_version(folder, "plain", PLAIN)
    for name, (kernel, arguments) in KERNELS.items():
        text = lowered(kernel, arguments)
        (folder / f"{name}.stablehlo").write_text(text.as_text())
        generic = text.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True)
        (folder / f"{name}.generic.stablehlo").write_text(generic)
        with config.jax_mosaic_unzip_debug_locations(False):
            # A new function, so that JAX does not take what it lowered before.
            inside = lowered(lambda *a, kernel=kernel: kernel(*a), arguments)
        (folder / f"{name}.inside.stablehlo").write_text(inside.as_text())


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
