#!/bin/bash
# Every fuzz target on its seeds and, for a short while each, on their mutants. TAP on stdout.
# QUERN_FUZZ_SECONDS (2) is the time of one target; QUERN_FUZZ_SEED (1) names the mutants. A crashing
# input is kept in the test's folder as <target>/crash-<digest>.
set -u
root=${QUERN_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
fuzz=$(cd "${QUERN_BUILD:-$root/build}/fuzz" && pwd) || { echo "Bail out! no fuzz targets are built (make test builds them)"; exit 1; }
seconds=${QUERN_FUZZ_SECONDS:-2} seed=${QUERN_FUZZ_SEED:-1}
export QUERN_LOG=quiet

# The parsers of foreign bytes; other targets that are there run too.
required="artifact headers plan ptx reply safetensors tokenizer"

# Beside tests/fuzz/seeds/NAME and tests/fixtures/NAME, which every target takes.
more_seeds() { # NAME
    case $1 in
    headers | plan) echo "$root/tests/fixtures/kernels" "$root/tests/cheats" ;;
    esac
}

n=0 failed=0
for name in $required; do
    [ -x "$fuzz/fuzz_$name" ] && continue
    echo "not ok $((++n)) - the target fuzz_$name exists"
    failed=1
done
for target in "$fuzz"/fuzz_*; do
    case $target in *.tmp) continue ;; esac
    name=${target##*/fuzz_}
    seeds=()
    for s in "$root/tests/fuzz/seeds/$name" "$root/tests/fixtures/$name" $(more_seeds "$name"); do [ -e "$s" ] && seeds+=("$s"); done
    if [ ${#seeds[@]} = 0 ]; then
        echo "not ok $((++n)) - fuzz_$name has seeds in tests/fuzz/seeds/$name"
        failed=1
        continue
    fi
    mkdir -p "$name" && cd "$name" || exit 1
    timeout -k 5 $((seconds + 100)) "$target" --seconds "$seconds" --seed "$seed" "${seeds[@]}" >out 2>err
    rc=$?
    cd ..
    if [ $rc = 0 ] && grep -q '^fuzz: [1-9][0-9]* seeds, [1-9][0-9]* mutants, no crash$' "$name/out"; then
        echo "ok $((++n)) - fuzz_$name: $(sed -n 's/^fuzz: //p' "$name/out")"
        rm -rf "$name"
    else
        echo "not ok $((++n)) - fuzz_$name ended with $rc: $PWD/$name"
        tail -n 30 "$name/err" | sed 's/^/# /'
        failed=1
    fi
done
echo "1..$n"
exit $failed
