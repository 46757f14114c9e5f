"""Makes and loads variant folders to test: a built package's, or one put together here from the repository's own files."""

import importlib.util
import json
import os
import pathlib
import shutil
import sys

COMMON = pathlib.Path(__file__).parents[1]
GLUE = COMMON.parents[1] / "kernels" / "packages" / "ragged-dot-tpu" / "python"
BUILT = os.environ.get("TESSERA_PACKAGE")


def assemble(folder, id):
    """Puts the variant under test into `folder` (which does not exist yet), under its own id, and returns it."""
    if BUILT:
        shutil.copytree(BUILT, folder)
        metadata = json.loads((folder / "metadata.json").read_text())
    else:
        import pallas_modules

        folder.mkdir(parents=True)
        for file in [*COMMON.glob("*.py"), *GLUE.glob("*.py")]:
            shutil.copyfile(file, folder / file.name)
        pallas_modules.write(folder)
        metadata = {"name": "ragged-dot-tpu", "version": 1, "license": "apache-2.0"}
        metadata |= {"python-depends": [], "backend": {"type": "cpu"}}
    metadata["id"] = id
    metadata.pop("digest", None)
    (folder / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")
    return folder


def load(folder):
    """Imports a variant as Hugging Face's kernels does: its __init__.py, under the id in its metadata."""
    id = json.loads((folder / "metadata.json").read_text())["id"]
    spec = importlib.util.spec_from_file_location(id, folder / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[id] = module
    spec.loader.exec_module(module)
    return module
