# rustfmt, clippy, cargo-deny, and ruff where it is installed. Run by ./x lint.
set -euo pipefail
cargo fmt --all --check
cargo clippy --workspace --all-targets -- -D warnings
command -v cargo-deny >/dev/null || cargo install --quiet --locked cargo-deny --version 0.20.2
cargo deny check
