"""Loads acme/toy-kernel with the unmodified `kernels` package, as a user would; prints what happened as JSON."""

import json
import os

import kernels
from kernels._versions import _get_available_versions

REPO = "acme/toy-kernel"
OFFLINE = os.environ.get("HF_HUB_OFFLINE") == "1"


def outcome(load):
    """What `load` raises, as text, or "loaded"."""
    try:
        load()
    except Exception as error:
        return str(error)
    return "loaded"


versions = [1] if os.environ.get("ONLY") else [1, 2]
loaded = {version: kernels.get_kernel(REPO, version=version, trust_remote_code=[REPO]) for version in versions}
result = {
    "greetings": {version: module.greet() for version, module in loaded.items()},
    "variant": os.path.basename(os.path.dirname(loaded[1].__file__)),
    "commit": loaded[1].__file__.split("/snapshots/")[1].split("/")[0],
    "versions": sorted(_get_available_versions(REPO, local_files_only=OFFLINE)),
}
if not OFFLINE:
    assert kernels.has_kernel(REPO, version=1, trust_remote_code=[REPO])
    by_commit = kernels.get_kernel(REPO, revision=result["commit"], trust_remote_code=[REPO])
    assert by_commit.greet() == result["greetings"][1]
    result["untrusted"] = outcome(lambda: kernels.get_kernel(REPO, version=2))
    result["missing"] = outcome(lambda: kernels.get_kernel(REPO, version=9, trust_remote_code=[REPO]))
print(json.dumps(result))
