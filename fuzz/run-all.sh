#!/usr/bin/env bash
# Runs every target for SECONDS (default 60), one after another, and continues after a crash.
#     run-all.sh [SECONDS]
# FUZZ_FLAGS: options of `cargo fuzz`, for example "--sanitizer none".
set -euo pipefail
cd "$(dirname "$0")"
read -ra flags <<<"${FUZZ_FLAGS:-}"
failed=()

cargo run --release --example seeds
cargo fuzz build --fuzz-dir . "${flags[@]}"
for target in fuzz_targets/*.rs; do
    target=$(basename "$target" .rs)
    printf '\n== %s\n' "$target"
    cargo fuzz run --fuzz-dir . "${flags[@]}" "$target" -- -max_total_time="${1:-60}" -timeout=20 \
        -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=65536 -print_final_stats=1 ||
        failed+=("$target")
done

printf '\n%s of the targets failed: %s\n' "${#failed[@]}" "${failed[*]:-none}"
test ${#failed[@]} = 0
