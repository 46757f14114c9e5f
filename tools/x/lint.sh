# rustfmt, clippy, cargo-deny and ruff. Run by ./x lint.
set -euo pipefail
cargo fmt --all --check
cargo clippy --workspace --all-targets -- -D warnings
command -v cargo-deny >/dev/null || cargo install --quiet --locked cargo-deny --version 0.20.2
if curl --silent --head --max-time 10 https://github.com >/dev/null; then
    cargo deny check
else
    echo "lint: github.com is out of reach, so the RustSec advisories were not checked" >&2
    cargo deny check bans licenses sources
fi
.venv/bin/ruff check .
.venv/bin/ruff format --check .
