"""JAX's own Mosaic modules on the CPU: our executor, beside both of JAX's interpreters on the same kernel and tiles."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import common


def rows(root):
    """One row a kernel and dtype."""
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "hub-cli", "--bin", "kernels-cli"], cwd=root, check=True)
    sys.path.insert(0, str(root / "tools/conformance"))
    from jax.experimental.pallas import tpu as pltpu

    cli = root / os.environ.get("CARGO_TARGET_DIR", "target") / "release/kernels-cli"
    out = []
    for name, part, make in (("gmm m512 g8 k2048 n1536", 12, gmm), ("flash 8 x 1024 x 128", 8, flash)):
        for dtype in ("float32", "bfloat16"):
            whole, piece = make(dtype, 1), make(dtype, part)
            ours = executor(cli, *whole)
            plain = interpreted(True, *whole)
            # Callbacks for every access: the whole takes many minutes, a part of equal steps says as much.
            simulated = interpreted(pltpu.InterpretParams(), *piece) * part
            out.append(
                {
                    "case": f"{name} {dtype}",
                    "ours": ours,
                    "interpret=True": plain,
                    "x faster": plain / ours,
                    "InterpretParams": simulated,
                    "x faster than it": simulated / ours,
                    "of it measured": f"1/{part}",
                }
            )
    return out


def gmm(dtype, part):
    """megablox with its default tiles; a part has one tile of n's twelve."""
    import jax.numpy as jnp
    from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm
    from peers import noise

    operands = noise(1, (512, 2048), dtype), noise(2, (8, 2048, 1536 // part), dtype), jnp.full((8,), 64, jnp.int32)
    return lambda lhs, rhs, sizes: gmm(lhs, rhs, sizes, preferred_element_type=jnp.float32), operands


def flash(dtype, part):
    """Flash attention with its default blocks; a part is one of the eight heads."""
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention
    from peers import noise

    operands = [noise(seed, (1, 8 // part, 1024, 128), dtype) for seed in (1, 2, 3)]
    return lambda q, k, v: flash_attention(q, k, v, sm_scale=128**-0.5), operands


def interpreted(mode, function, operands):
    """Milliseconds of the kernel by one of JAX's interpreters, compiled and warm."""
    import jax
    from jax.experimental.pallas import tpu as pltpu

    jax.clear_caches()
    with pltpu.force_tpu_interpret_mode(mode):
        run = jax.jit(function).lower(*operands).compile()
    runs = 3 if mode is True else 1
    return common.milliseconds(lambda: jax.block_until_ready(run(*operands)), runs)


def executor(cli, function, operands):
    """Milliseconds of the same kernel's Mosaic module by our executor, inside its process."""
    import capture
    import corpus
    import jax

    calls = []
    with capture.capturing(calls.append):
        jax.block_until_ready(jax.jit(function)(*operands))
    [call] = calls
    with tempfile.TemporaryDirectory() as folder:
        case = corpus.Corpus(folder).add("case", call, 1e-2, 1e-2)
        arguments = [word for path in case["args"] for word in ("--arg", path)]
        results = [word for pair in zip(case["outs"], case["results"]) for word in ("--out", pair[0], "--result-type", pair[1])]
        command = [cli, "run", case["module"], *arguments, *results, "--repeat", "5", "--json"]
        said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        if problem := corpus.compare(case):
            raise RuntimeError(f"{pathlib.Path(case['module']).stem}: {problem}")
    return 1e3 * said["seconds"]
