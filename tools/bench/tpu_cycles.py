"""TPU cycles by a static model of the real compiler's schedule; needs `tpu_cycles`, which is not part of this project."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import common

TPUS = {"v6e": "v6e:2x2", "v7x": "tpu7x:2x2x1"}

# Our case, the peer's kernel in the tool's registry, and how many times the peer's cycles we may take, by TPU.
PEERS = {
    "ragged_dot qwen3 up decode": ("tk_v2/qwen3_up_dec", {"v6e": 1.15, "v7x": 1.5}),
    "ragged_dot qwen3 down decode": ("tk_v2/qwen3_down_dec", {"v6e": 1.15, "v7x": 1.5}),
    "ragged_dot qwen3 up prefill": ("tk_v2/qwen3_up_pre", {"v6e": 1.15, "v7x": 1.5}),
    "ragged_dot qwen3 down prefill": ("tk_v2/qwen3_down_pre", {"v6e": 1.15, "v7x": 1.5}),
    "matmul 4096^3": ("matmul/4096,4096,4096,1024,1024,1024", {}),
    "flash_attention llama3 4096": ("tk_splash/llama3_4k/1024,1024,1024,111,0,4", {}),
}


def tool():
    """The folder of the tool, or None."""
    place = os.environ.get("TPU_CYCLES")
    return pathlib.Path(place) if place and (pathlib.Path(place) / "static_profile.py").exists() else None


def rows(root):
    """One row a kernel and TPU: our cycles, the peer's, their ratio and its limit, and what each reads."""
    where = tool()
    if where is None:
        print("tpu-cycles: skipped, there is no tpu_cycles tool here (TPU_CYCLES=FOLDER says where it is)", file=sys.stderr)
        return []
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for case in common.rust(root, "modules", folder):
            peer, limits = PEERS[case["case"]]
            for tpu, topology in TPUS.items():
                ours, our_mb = price(where, [case["file"], "--inputs", inputs(folder, case)], topology, folder)
                theirs, their_mb = price(where, ["--kernel", peer], topology, folder)
                row = {"kernel": case["case"], "tpu": tpu, "ours": ours, "peer": theirs}
                row |= {"ratio": ours / theirs if ours and theirs else None, "limit": limits.get(tpu)}
                # Both must have been seen to read what the job takes: the model can lose copies that it does not follow.
                out.append(row | {"ours MB read": our_mb, "peer MB read": their_mb})
    return out


def inputs(folder, case):
    """The values of arguments that steer the kernel: the routing of the tool's own registry."""
    import numpy as np

    sys.path.insert(0, str(tool()))
    import kernels

    path = pathlib.Path(folder) / "in.npz"
    values = {}
    if "routing" in case:
        values = {f"arg{case['routing_argument']}": kernels.group_sizes_for(case["routing"])}
    np.savez(path, **values)
    return str(path)


def price(where, what, topology, folder):
    """Total cycles of one program and the megabytes that its kernels read from HBM; None if it could not be priced."""
    result = pathlib.Path(folder) / "out.json"
    result.unlink(missing_ok=True)
    cache = os.environ.get("TPU_CYCLES_CACHE", str(pathlib.Path(tempfile.gettempdir()) / "tpu_cycles"))
    env = dict(os.environ, TPU_CYCLES_PYTHON=sys.executable, TPU_CYCLES_CACHE=cache)
    command = [sys.executable, str(where / "static_profile.py"), *what, "--topology", topology, "--json", str(result)]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode or not result.exists():
        print(f"tpu-cycles: {' '.join(what)} on {topology}: {done.stdout.strip()[-400:]}", file=sys.stderr)
        return None, None
    priced = json.loads(result.read_text())
    read = sum(kernel["bytes_read"] * kernel["mult"] for kernel in priced["kernels"])
    return priced["total_cycles"], read / 1e6
