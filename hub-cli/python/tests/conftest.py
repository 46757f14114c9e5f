"""The environment and the fixtures of the Python tests.

They run with `.venv/bin/python -m pytest hub-cli/python/tests`. Without TESSERA_PACKAGE they test the Python files with
stand-in modules that Pallas wrote; with it, set to a built variant folder, they test that. Tests that need torch or
transformers are skipped, with that reason, where those are not installed.
"""

import importlib
import os
import pathlib
import subprocess
import sys

import pytest

# libtpu compiles without a TPU, but must not look for one; several processes may load it at a time.
ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "JAX_PLATFORMS": "cpu",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    "HF_HUB_OFFLINE": "1",
}
os.environ.update(ENVIRONMENT)
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The variant folder under test."""
    import variant

    return variant.assemble(tmp_path_factory.mktemp("package") / "torch-universal", "_ragged_dot_tpu_test")


@pytest.fixture(scope="session")
def package(folder):
    """The package under test, imported."""
    import variant

    return variant.load(folder)


@pytest.fixture(scope="session")
def part(package):
    """Imports one of the package's files: `part("_index")`."""
    return lambda name: importlib.import_module(f"{package.__name__}.{name}")


@pytest.fixture(scope="session")
def child():
    """Runs a program in a fresh Python process, which must succeed, and returns what it printed."""

    def run(program, *arguments, **environment):
        command = [sys.executable, "-c", program] if isinstance(program, str) else [sys.executable, str(program)]
        command += map(str, arguments)
        env = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])} | environment
        result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900, check=False)
        assert result.returncode == 0, f"{result.stdout[-4000:]}\n{result.stderr[-8000:]}"
        return result.stdout

    return run
