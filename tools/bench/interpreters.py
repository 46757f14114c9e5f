"""JAX's own Mosaic modules on the CPU: our executor, beside both of JAX's interpreters on the same kernel and tiles."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from functools import partial

import common


def rows(root):
    """One row a kernel and dtype."""
    subprocess.run(
        ["cargo", "build", "--quiet", "--release", "-p", "hub-cli", "--no-default-features", "--bin", "kernels-cli"],
        cwd=root,
        check=True,
    )
    sys.path.insert(0, str(root / "tools/conformance"))
    from jax.experimental.pallas import tpu as pltpu

    cli = root / os.environ.get("CARGO_TARGET_DIR", "target") / "release/kernels-cli"
    out = []
    # Each interpreter runs so large a part of the whole, in equal steps: minutes of the same say nothing more.
    for name, make, plain_part, simulated_part in (
        ("gmm m512 g8 k2048 n1536", gmm, 12, 12),
        ("flash 8 x 1024 x 128", flash, 1, 8),
    ):
        for dtype in ("float32", "bfloat16"):
            ours = executor(cli, *make(dtype, 1))
            plain = interpreted(True, *make(dtype, plain_part)) * plain_part
            simulated = interpreted(pltpu.InterpretParams(), *make(dtype, simulated_part)) * simulated_part
            out.append(
                {
                    "case": f"{name} {dtype}",
                    "ours": ours,
                    "interpret=True": plain,
                    "times faster": plain / ours,
                    "InterpretParams": simulated,
                    "times faster than it": simulated / ours,
                    "parts that they ran": f"1/{plain_part}, 1/{simulated_part}",
                }
            )
    return out


def gmm(dtype, part):
    """megablox with its default tiles; a part has one tile of n's twelve."""
    import jax
    import jax.numpy as jnp
    from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm
    from peers import noise

    operands = noise(1, (512, 2048), dtype), noise(2, (8, 2048, 1536 // part), dtype), jnp.full((8,), 64, jnp.int32)
    wanted = {"preferred_element_type": jnp.float32}
    return partial(gmm, **wanted), operands, partial(jax.lax.ragged_dot, **wanted)


def flash(dtype, part):
    """Flash attention with its default blocks; a part is one of the eight heads."""
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention, mha_reference
    from peers import noise

    operands = [noise(seed, (1, 8 // part, 1024, 128), dtype) for seed in (1, 2, 3)]
    scale = {"sm_scale": 128**-0.5}
    return partial(flash_attention, **scale), operands, partial(mha_reference, ab=None, **scale)


def interpreted(mode, function, operands, _reference):
    """Milliseconds of the kernel by one of JAX's interpreters, compiled and warm."""
    import jax
    from jax.experimental.pallas import tpu as pltpu

    jax.clear_caches()
    with pltpu.force_tpu_interpret_mode(mode):
        run = jax.jit(function).lower(*operands).compile()
    runs = 3 if mode is True else 1
    return common.milliseconds(lambda: jax.block_until_ready(run(*operands)), runs)


def executor(cli, function, operands, reference):
    """Milliseconds of the same kernel's Mosaic module by our executor, inside its process."""
    import capture
    import corpus
    import jax
    import numpy as np

    calls = []
    want = np.asarray(reference(*operands))
    with capture.capturing(calls.append, reference=lambda *_: [want]):
        jax.block_until_ready(jax.jit(function)(*operands))
    [call] = calls
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        case = corpus.Corpus(folder).add("case", call, *corpus.tolerance(call.module.operands))
        arguments = [word for path in case["args"] for word in ("--arg", path)]
        results = [word for pair in zip(case["outs"], case["results"]) for word in ("--out", pair[0], "--result-type", pair[1])]
        command = [cli, "run", case["module"], *arguments, *results, "--repeat", "25", "--exact", "--json"]
        said = json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout)
        if problem := corpus.compare(case, folder):
            raise RuntimeError(f"{call.module.name}: {problem}")
    return 1e3 * said["seconds"]
