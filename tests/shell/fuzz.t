#!/bin/bash
# Every fuzz target on its seeds and, for a short time, on mutants of them. QUERN_FUZZ_SECONDS (2) is the time
# of one target; QUERN_FUZZ_SEED (1) selects the mutants. A crashing input stays in the test's folder as
# <target>/crash-<digest>. TAP on stdout.
. "$(dirname "$0")/tap.sh"
fuzz=$(cd "$BUILD/fuzz" && pwd) ||
    { echo "Bail out! no fuzz targets are built (make test builds them)"; exit 1; }
seconds=${QUERN_FUZZ_SECONDS:-2} seed=${QUERN_FUZZ_SEED:-1}
export QUERN_LOG=quiet
logs=()
cd "$kept" || exit 1

# The parsers of untrusted bytes must have a target. All other targets run too.
required="artifact headers op_line plan program pt2 ptx reply safetensors settings tokenizer"

# Seeds of a target besides tests/fuzz/seeds/NAME and tests/fixtures/NAME.
more_seeds() { # NAME
    case $1 in
    headers | plan) echo "$root/tests/fixtures/kernels" "$root/tests/cheats" ;;
    esac
}

for name in $required; do
    [ -x "$fuzz/fuzz_$name" ] || ok 1 "the target fuzz_$name exists"
done
for target in "$fuzz"/fuzz_*; do
    case $target in *.tmp) continue ;; esac
    name=${target##*/fuzz_}
    seeds=()
    for s in "$root/tests/fuzz/seeds/$name" "$root/tests/fixtures/$name" $(more_seeds "$name"); do
        [ -e "$s" ] && seeds+=("$s")
    done
    if [ ${#seeds[@]} = 0 ]; then
        ok 1 "fuzz_$name has seeds in tests/fuzz/seeds/$name"
        continue
    fi
    mkdir -p "$name" && cd "$name" || exit 1
    timeout -k 5 $((seconds + 100)) "$target" --seconds "$seconds" --seed "$seed" "${seeds[@]}" >out 2>err
    rc=$?
    cd ..
    if [ $rc = 0 ] && grep -q '^fuzz: [1-9][0-9]* seeds, [1-9][0-9]* mutants, no crash$' "$name/out"; then
        ok 0 "fuzz_$name: $(sed -n 's/^fuzz: //p' "$name/out")"
        rm -rf "$name"
    else
        ok 1 "fuzz_$name ended with $rc: $PWD/$name"
        tail -n 30 "$name/err" | sed 's/^/# /'
    fi
done
done_testing
