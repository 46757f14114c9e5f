"""Makes PyPI's torch importable on a machine without CUDA: `python tools/torch_without_cuda.py`.

PyPI's x86-64 Linux torch is the CUDA build, and the NVIDIA wheels that it depends on are 1.9 GB or more of downloads that
a machine without a GPU never runs. `pip install --no-deps torch` leaves them out, but then the dynamic loader cannot find
them. This script writes tiny stand-ins for the missing libraries into `nvidia/cu13/lib`, which is on torch's RPATH: they
define exactly the symbols, with exactly the versions, that torch's libraries ask for, and report that there is no device.

Run it with the Python of the virtual environment that holds torch. It needs `cc` and `readelf`, takes about a second,
does nothing when torch imports already, and never replaces a library that is there.
"""

import collections
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

NVIDIA_LIBRARY = re.compile(r"lib(cu|nccl|nv)[\w-]*\.so[.\d]*")
NVIDIA_SYMBOL = re.compile(r"(cu[A-Z]|cu(da|dnn|pti|file|sparse|blas|solver|rand|fft)|nccl|nv(rtc|shmem|JitLink|ml))\w*")
# The driver's library is only opened with dlopen, by code that copes with its absence; a stand-in would look like a GPU.
NEVER = {"libcuda.so.1", "libnvidia-ml.so.1"}

NO_DEVICE = 100  # cudaErrorNoDevice
BODIES = {
    "cudaGetDeviceCount": f"int NAME(int *count) {{ *count = 0; return {NO_DEVICE}; }}",
    "cudaGetDevice": f"int NAME(int *device) {{ *device = 0; return {NO_DEVICE}; }}",
    "cudaDriverGetVersion": "int NAME(int *version) { *version = 0; return 0; }",
    "cudaRuntimeGetVersion": "int NAME(int *version) { *version = 0; return 0; }",
    "__cudaRegisterFatBinary": "static long handle[16]; void *NAME(void *binary) { return handle; }",
}
TEXT_BODY = 'const char *NAME(int error) { return "this machine has no CUDA libraries"; }'
OTHER_BODY = "long NAME(void) { return 0; }"


def readelf(library: pathlib.Path) -> str:
    """What readelf says about the dynamic section, the symbol versions and the dynamic symbols of a library."""
    command = ["readelf", "--wide", "--dynamic", "--version-info", "--dyn-syms", str(library)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wanted(torch_lib: pathlib.Path) -> dict[str, dict[str, set[str]]]:
    """The NVIDIA libraries that torch's own libraries need: {library: {symbol version or "": symbols}}."""
    libraries: dict[str, dict[str, set[str]]] = collections.defaultdict(lambda: collections.defaultdict(set))
    loose, defined = set(), set()
    for path in sorted(torch_lib.glob("*.so*")):
        text = readelf(path)
        for name in re.findall(r"\(NEEDED\).*\[(.+?)\]", text):
            if NVIDIA_LIBRARY.fullmatch(name):
                libraries[name]  # a library may be needed although no symbol of it is
        origin, file = {}, ""
        for line in text.splitlines():
            if found := re.search(r"File: (\S+)", line):
                file = found[1]
            elif found := re.search(r"Name: (\S+)\s+Flags: \S+\s+Version: \d+", line):
                origin[found[1]] = file
        for section, name in re.findall(r"^ *\d+: .* (UND|ABS|\d+) (\S+)(?: \(\d+\))?$", text, re.MULTILINE):
            symbol, _, version = name.partition("@")
            if section != "UND":
                defined.add(symbol)
            elif version and NVIDIA_LIBRARY.fullmatch(origin.get(version, "")):
                libraries[origin[version]][version].add(symbol)
            elif not version and NVIDIA_SYMBOL.fullmatch(symbol):
                loose.add(symbol)
    # Symbols without a version are looked up in every loaded library, so it does not matter which stand-in has them.
    if loose - defined:
        home = next(name for name in sorted(libraries) if name.startswith("libcudart."))
        libraries[home][""] |= loose - defined
    return {name: symbols for name, symbols in libraries.items() if name not in NEVER}


def source(symbols: set[str]) -> str:
    """C source that defines every symbol."""
    lines = []
    for name in sorted(symbols):
        body = BODIES.get(name, TEXT_BODY if name.endswith(("GetErrorString", "GetErrorName")) else OTHER_BODY)
        lines.append(body.replace("NAME", name))
    return "\n".join(lines) + "\n"


def build(name: str, versions: dict[str, set[str]], folder: pathlib.Path) -> None:
    """Compiles the stand-in `folder/name`."""
    with tempfile.TemporaryDirectory() as temporary:
        scratch = pathlib.Path(temporary)
        (scratch / "stub.c").write_text(source(set().union(*versions.values())))
        (scratch / "stub.map").write_text(
            "".join(f"{version} {{ global: {'; '.join(sorted(names))}; }};\n" for version, names in versions.items() if version)
        )
        command = ["cc", "-shared", "-fPIC", "-O1", "-s", "-w", "-nostdlib", f"-Wl,-soname,{name}"]
        if any(versions):
            command.append(f"-Wl,--version-script={scratch / 'stub.map'}")
        output = scratch / name
        subprocess.run([*command, "-o", str(output), str(scratch / "stub.c")], check=True)
        shutil.copyfile(output, folder / name)


def imports() -> bool:
    """Whether a fresh interpreter can import torch."""
    return subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def main() -> int:
    """Writes the stand-ins that are missing; 0 when torch can be imported afterwards."""
    site = pathlib.Path(sysconfig.get_paths()["platlib"])
    if not (site / "torch" / "lib").is_dir():
        print(
            f"torch is not installed in {site}; first run: {sys.executable} -m pip install --no-deps torch",
            file=sys.stderr,
        )
        return 1
    if imports():
        return 0
    for tool in ("cc", "readelf"):
        if shutil.which(tool) is None:
            print(
                f"{tool} is needed to write stand-ins for the CUDA libraries (Debian: apt-get install gcc binutils)",
                file=sys.stderr,
            )
            return 1
    present = {path.name for path in (site / "nvidia").glob("*/lib/*")} | {
        path.name for path in (site / "torch" / "lib").iterdir()
    }
    folder = site / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    for name, versions in sorted(wanted(site / "torch" / "lib").items()):
        if name not in present:
            build(name, versions, folder)
            print(f"wrote a stand-in for {name}: {sum(map(len, versions.values()))} symbols")
    if imports():
        return 0
    subprocess.run([sys.executable, "-c", "import torch"], check=False)
    print("torch still cannot be imported; the error above says why", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
