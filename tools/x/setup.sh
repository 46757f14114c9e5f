# Installs what the machine lacks, once; says nothing when nothing is missing. Sourced by ./x.

# Everything that is installed for the project but not by Debian lives here and in .venv.
STATE=.x

say() { printf '\033[1m==>\033[0m %s\n' "$*" | sed "$([ -t 1 ] && [ -z "${NO_COLOR:-}" ] || echo 's/\x1b\[[0-9;]*m//g')"; }
die() { printf 'error: %s\n' "$*" >&2 && exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
        die "this needs root: $*"
    fi
}

# MLIR 22 is what melior 0.27 binds; clang is for bindgen; gcc links.
PACKAGES="libmlir-22-dev mlir-22-tools llvm-22-dev libclang-22-dev clang-22 libpolly-22-dev libzstd-dev zlib1g-dev libxml2-dev
gcc g++ libc6-dev pkg-config cmake"
# A browser for the hub's pages, and what it draws letters with.
TEST_PACKAGES="chromium chromium-driver fonts-dejavu-core"

# setup_system [test]: `test` adds what only the tests need.
setup_system() {
    local missing=() wanted=$PACKAGES
    [ "${1:-}" = test ] && wanted="$PACKAGES $TEST_PACKAGES"
    for p in $wanted; do
        dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -q '^installed$' || missing+=("$p")
    done
    [ ${#missing[@]} -eq 0 ] && return
    command -v apt-get >/dev/null || die "these Debian packages are needed, and there is no apt-get: ${missing[*]}"
    say "Debian packages: ${missing[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
        die "apt-get could not install ${missing[*]}; Debian 12 and later with their security updates have them"
}

setup_rust() {
    command -v cargo >/dev/null || die "Rust is needed: see https://rustup.rs (the version is in rust-toolchain.toml)"
}

# The newest Python from 3.11 up that can make a virtual environment: on PATH, or one of pyenv's.
find_python() {
    local minor candidate
    for minor in 14 13 12 11; do
        for candidate in "$(command -v "python3.$minor" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.$minor.*/bin/python; do
            [ -x "$candidate" ] && "$candidate" -c "import sys, venv, ensurepip; assert sys.version_info[:2] == (3, $minor)" 2>/dev/null &&
                echo "$candidate" && return
        done
    done
    return 1
}

# setup_python base|lint|conformance|test: .venv with the pinned packages; `conformance` adds what JAX's own tests need, `test`
# torch, transformers and pytest, `lint` ruff.
setup_python() {
    local want=$1 python
    if [ ! -x .venv/bin/python ]; then
        python=$(find_python) || {
            say "Debian packages: python3 python3-venv"
            as_root apt-get update -qq && as_root apt-get install -y -qq python3 python3-venv >/dev/null
            python=$(find_python) || die "Python 3.11 or later is needed"
        }
        say "Python environment .venv ($("$python" --version))"
        "$python" -m venv .venv
    fi
    local base=base
    .venv/bin/python -c 'import sys; sys.exit(sys.version_info >= (3, 12))' && base=base-py311
    install_once base "tools/requirements/$base.txt"
    [ "$want" = lint ] && install_once lint tools/requirements/lint.txt
    [ "$want" = conformance ] && install_once conformance tools/requirements/conformance.txt
    [ "$want" = test ] || return 0
    install_once test "tools/requirements/$base.txt" tools/requirements/test.txt
    install_once torch tools/requirements/torch.txt
}

# install_once NAME FILE...: pip install, unless these very files were installed before.
install_once() {
    local name=$1 stamp
    shift
    stamp=$STATE/$name.sha256
    mkdir -p $STATE
    sha256sum --status -c "$stamp" 2>/dev/null && return
    say "Python packages: $(cat "$@" | grep -v '^#' | sed 's/ *;.*//' | tr '\n' ' ')"
    local flags=(--quiet --disable-pip-version-check)
    [ "$name" = torch ] && flags+=(--no-deps)
    local files=()
    for f in "$@"; do files+=(-r "$f"); done
    .venv/bin/python -m pip install "${flags[@]}" "${files[@]}"
    [ "$name" = torch ] && .venv/bin/python tools/torch_without_cuda.py
    sha256sum "$@" >"$stamp"
}
