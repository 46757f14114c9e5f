# Coverage-guided fuzzing of what reads other people's files. Run by ./x fuzz [TARGET] [SECONDS].
# What it finds on the way stays in target/fuzz/corpus; a crash is kept in fuzz/artifacts, and its name is printed.
set -euo pipefail
target=${1:-read_mosaic} seconds=${2:-300}
[ -f "fuzz/fuzz_targets/$target.rs" ] || {
    echo "error: there is no fuzz target $target; there are: $(basename -s .rs fuzz/fuzz_targets/*.rs | paste -sd ' ')" >&2
    exit 2
}
command -v cargo-fuzz >/dev/null || cargo install --quiet --locked cargo-fuzz --version 0.13.2
found=target/fuzz/corpus/$target
mkdir -p "$found"
# Instrumentation needs flags that the stable compiler takes only so. An input of 16 KiB may take what 1 MiB may.
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$PWD/target/fuzz"
cargo fuzz run "$target" "$found" "fuzz/corpus/$target" -- \
    -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=64 -print_final_stats=1
