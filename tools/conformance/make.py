"""Makes the peers' modules, inputs and expected results: `make.py FOLDER [NAME...]`. Nothing that it makes is committed."""

import hashlib
import importlib
import importlib.metadata
import os
import pathlib
import re
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import jax

if jax.__version_info__ < (0, 11):
    print(f"skipped: the kernels are those of JAX 0.12, and this is {jax.__version__}")
    sys.exit()

import capture
import corpus
import modules
import numpy as np
from jax.experimental.pallas import tpu as pltpu

FAMILIES = [
    "matmul",
    "grouped",
    "tokamax",
    "flash",
    "splash",
    "paged",
    "random",
    "manual",
    "ring",
    "operations",
    "structure",
    "copies",
]


# Serialized forms of versions that changed an operation of the kernel; the newest is what every other case has.
VERSIONS = {
    "double-buffered-f32": range(2, 18),
    "paged-f32": (3, 7, 13),
    "gmm-f32": (2, 12),
    "threefry": (5,),
    "ring-all-gather": (7, 14),
}


def stablehlo(function, operands):
    """What `jax.jit(f).lower().as_text()` prints on a machine with a TPU."""
    return jax.jit(function).trace(*operands).lower(lowering_platforms=("tpu",)).as_text()


def kernels(text):
    """The names of the kernels that a StableHLO text calls, in order."""
    return re.findall(r"custom_call @tpu_custom_call.*?kernel_name = \"([^\"]*)\"", text)


def agree(peer, got, want):
    """Fails if the peer's kernel in interpret mode is not what its reference says: then it is no oracle."""
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(
            np.asarray(a, np.float64), np.asarray(b, np.float64), peer.rtol, peer.atol, err_msg=f"{peer.name}: interpret mode"
        )


def refuse(name, error):
    """The peers are kernels that JAX lowers."""
    raise RuntimeError(f"JAX does not lower {name}") from error


def make(folder, wanted=()):
    """Writes the cases of all peers, or of those whose name contains one of `wanted`."""
    made = corpus.Corpus(folder)
    families = [importlib.import_module(f"peers.{family}") for family in FAMILIES]
    peers = [p for family in families for p in family.peers() if not wanted or any(w in p.name for w in wanted)]
    with capture.capturing(None, refuse) as recorder:
        for peer in peers:
            run(peer, recorder, made)
    for peer in peers:
        if peer.text:
            text = stablehlo(*peer.text)
            mine = {c["kernel"]: c for c in made.cases if c["name"].split(".")[0] == peer.name}
            made.add_text(peer.name, text, [mine[name] for name in kernels(text)])
    return made


def run(peer, recorder, made):
    """Runs one peer, and adds each kernel that ran as a case."""
    start = time.perf_counter()
    calls = []
    # The simulator keeps the devices of its last kernel.
    pltpu.reset_tpu_interpret_mode_state()
    recorder.sink, recorder.reference = calls.append, peer.reference
    got, want = jax.block_until_ready(peer.run())
    jax.effects_barrier()
    agree(peer, got, want)
    if not calls:
        raise RuntimeError(f"{peer.name}: no kernel ran")
    cases = []
    for i, call in enumerate(calls):
        cases.append(made.add(peer.name if len(calls) == 1 else f"{peer.name}.{i}", call, peer.rtol, peer.atol))
    for version in VERSIONS.get(peer.name, ()):
        made.add_version(cases[0], version, modules.at_version(calls[0].module.bytecode, version))
    print(f"{peer.name}: {len(calls)} calls, {time.perf_counter() - start:.1f} s", flush=True)


def stamp():
    """What the cases depend on: these sources, and the packages."""
    sources = sorted(pathlib.Path(__file__).parent.glob("**/*.py"))
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("jax", "jaxlib", "numpy", "tokamax")]
    return hashlib.sha256(repr((versions, [source.read_text() for source in sources])).encode()).hexdigest()


def main(folder, wanted):
    """Makes the cases, unless the folder holds just these."""
    kept, wish = pathlib.Path(folder) / "stamp", stamp() + repr((folder, wanted))
    if not (kept.exists() and kept.read_text() == wish):
        kept.unlink(missing_ok=True)
        make(folder, wanted).save()
        kept.write_text(wish)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
