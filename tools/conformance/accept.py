"""Which captured modules libtpu compiles. It may abort, so a child reads cases as JSON lines, and answers each with one."""

import base64
import json
import os
import pathlib
import subprocess
import sys

TOPOLOGY = "v6e:2x2"


def compile_all():
    """The child: compiles the module of each line of standard input."""
    import jax
    import numpy as np
    from corpus import EXTENDED
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    devices = np.array(topologies.get_topology_desc(topology_name=TOPOLOGY, platform="tpu").devices)
    names = {"bf16": "bfloat16", "f32": "float32", "i1": "bool"}

    meshes = {n: Mesh(devices[:n], ("x",)) for n in (1, 2, 3, 4)}

    def spec(kind, count):
        name, shape = kind.rstrip("]").split("[")
        shape = tuple(int(n) for n in shape.split(",") if n)
        dtype = EXTENDED.get(name) or np.dtype(names.get(name, name.replace("i", "int", 1)))
        sharding = NamedSharding(meshes[count], PartitionSpec("x") if count > 1 else PartitionSpec())
        return jax.ShapeDtypeStruct((count, *shape) if count > 1 else shape, dtype, sharding=sharding)

    def compile_one(case):
        count, config = case["devices"], case["config"]
        body = base64.b64encode(pathlib.Path(case["module"]).read_bytes()).decode()
        call = {"body": body, "serialization_format": 1, "needs_layout_passes": True}
        call |= {k: config[k] for k in ("has_communication", "collective_id") if k in config}
        top = {"custom_call_config": call}
        if limit := config.get("vmem_limit_bytes"):
            top["scoped_memory_configs"] = [{"memory_space": 1, "offset": 0, "size": limit}]
        results = [jax.ShapeDtypeStruct(s.shape, s.dtype) for s in (spec(kind, 1) for kind in case["results"])]
        kernel = jax.ffi.ffi_call(
            "tpu_custom_call",
            results,
            custom_call_api_version=1,
            legacy_backend_config=json.dumps(top),
            has_side_effect=True,
            input_output_aliases=dict(case["aliases"]),
        )
        run = kernel
        if count > 1:

            def inner(*shards):
                return [r[None] for r in kernel(*(shard[0] for shard in shards))]

            specs = (PartitionSpec("x"),) * len(case["operands"])
            run = jax.shard_map(inner, mesh=meshes[count], in_specs=specs, out_specs=PartitionSpec("x"), check_vma=False)
        operands = [spec(kind, count) for kind in case["operands"]]
        # A call without operands would otherwise be for the host.
        where = NamedSharding(meshes[count], PartitionSpec("x") if count > 1 else PartitionSpec())
        jax.jit(run, out_shardings=where).trace(*operands).lower(lowering_platforms=("tpu",)).compile()

    for line in sys.stdin:
        answer = {"accepted": True}
        try:
            compile_one(json.loads(line))
        except Exception as error:
            message = [part.strip() for part in str(error).splitlines() if part.strip()]
            answer = {"accepted": False, "why": " ".join(message)[:400]}
        print("ANSWER " + json.dumps(answer), flush=True)


def start():
    """A child that compiles."""
    needed = {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    pipe = subprocess.PIPE
    command = [sys.executable, __file__]
    return subprocess.Popen(command, env=os.environ | needed, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)


def verdicts(cases, known, folder):
    """Yields (digest, verdict) for each case that `known` does not hold; a crash is a refusal."""
    child = None
    for case in cases:
        if case["digest"] in known:
            continue
        if child is None:
            child = start()
        child.stdin.write(json.dumps(case | {"module": str(folder / case["module"])}) + "\n")
        child.stdin.flush()
        answer = {"accepted": False, "why": "the compiler aborted"}
        for line in child.stdout:
            if line.startswith("ANSWER "):
                answer = json.loads(line.removeprefix("ANSWER "))
                break
        else:
            child.wait()
            child = None
        yield case["digest"], answer
    if child:
        child.stdin.close()
        child.wait()


if __name__ == "__main__":
    compile_all()
