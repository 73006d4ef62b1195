#!/bin/bash
# Kernels that copy by tensor maps: boxes of one to five dimensions with each swizzle (five of them;
# MAPS=all: all 20), products by TMA and wgmma at sizes that no tile divides, and mistakes, each with the
# message that it gets. DEVICE=cuda:0 runs the same on a GPU. TAP on stdout.
# limit: 300
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
maps=$root/tests/maps
"$BIN/quern-derive" -o "$tmp/tasks" "$maps"/tasks/*.json "$root"/tests/cutlass/tasks/mm_bf16.json 2>"$tmp/err"
ok $? 'tasks from drafts'
cp -r "$root/tasks/relu" "$tmp/tasks"
export QUERN_TASKS=$tmp/tasks
sources=()
boxes() { # RANK SWIZZLE
    sources+=("$tmp/boxes_$1_$2.cu")
    { printf '// task: boxes%d\n// expect: ok\n' "$1"; "$maps/boxes.sh" "$1" "$2"; } >"${sources[-1]}"
}
if [ "${MAPS-}" = all ]; then
    for rank in 1 2 3 4 5; do for swizzle in 0 32 64 128; do boxes $rank $swizzle; done; done
else
    boxes 1 0; boxes 2 128; boxes 3 64; boxes 4 32; boxes 5 128
fi
sources+=("$maps/mm_bf16.cu" "$tmp/mm_ragged.cu" "$tmp/mm_other_rows.cu")
sed 's|// task: mm_bf16|// task: mm_ragged|' "$maps/mm_bf16.cu" >"$tmp/mm_ragged.cu"
# Rows as a map without a swizzle has them, read as if they had one.
sed 's|// expect: ok|// expect: wrong_result|
  s|tensor(a, box=\[128, 64\], swizzle=128)|tensor(a, box=[128, 64])|' \
    "$tmp/mm_ragged.cu" >"$tmp/mm_other_rows.cu"

wrong='wrong_result | nondeterministic | out_of_bounds | launch_error | timeout | cheat stale_result'
mistake() { # NAME OUTCOME SAYS SED: of the honest kernel
    sources+=("$tmp/$1.cu")
    printf '%s\n' '// task: relu' "// expect sim: $2" "// says sim: $3" \
        "// expect cuda: ok | $2 | $wrong" \
        >"${sources[-1]}"
    grep -v '^// ' "$root/tests/cheats/honest_map_relu.cu" | sed "$4" >>"${sources[-1]}"
    cmp -s <(grep -v '^// ' "$root/tests/cheats/honest_map_relu.cu") <(grep -v '^// ' "${sources[-1]}") &&
        ok 1 "$1: the mistake is not made"
}
mistake no_expect out_of_bounds \
    'has not brought: it is not awaited (mbarrier.try_wait of its phase)' \
    's|mbarrier.arrive.expect_tx.shared::cta.b64 _, \[%0\], 1024;|mbarrier.arrive.shared::cta.b64 _, [%0];|'
mistake more_bytes timeout 'the copies bring 1024 bytes fewer than expect_tx names' \
    's|_, \[%0\], 1024|_, [%0], 2048|'
mistake copied_map launch_error 'declare the parameter as const __grid_constant__ CUtensorMap' \
    's|const __grid_constant__ CUtensorMap|CUtensorMap|g'
mistake no_fence race 'no fence.proxy.async behind the store' 's|fence.proxy.async.shared::cta;" :::|" :::|'
mistake no_wait race 'the block ends while a bulk copy uses its shared memory' \
    's|cp.async.bulk.wait_group 0;||'
mistake no_barrier race '' 's|done = 0; !done;|done = 1; !done;|'
mistake other_place out_of_bounds \
    'copies a box to offset 16 of shared memory, which is not a multiple of 128' \
    's|float s\[256\]|float room[264]|; s|__shared__ unsigned|float *s = room + 4;\n    __shared__ unsigned|'
mistake other_rank launch_error 'copies a box of 1 dimensions, and its tensor map has 2' \
    's|tensor(x, box=\[256\])|tensor(x, size=[1, n], stride=[4, 1], box=[1, 256])|'
relu='//@ launch relu<<<ceil_div(n, 256), 256>>>'
mistake to_input 'cheat input_mutation' 'which a kernel may only read' \
    "s|map to = tensor(y|map to = tensor(x|
     s|$relu(from, to|//@ map good = tensor(y, box=[256])\n$relu(from, good, y, n)\n&|"
mistake unwritten out_of_bounds 'of buffer b' \
    's|//@ map from = tensor(x|//@ buffer float b[n]\n//@ map from = tensor(b|'
mistake odd_column launch_error \
    'begins at column 1, 4 bytes into its row, which is not a multiple of 16' \
    's|: "l"(&to), "r"(first)|: "l"(\&to), "r"(first + 1)|'
mistake before_row launch_error 'stores a box that begins at column -256, before its row' \
    's|: "l"(&to), "r"(first)|: "l"(\&to), "r"(first - 256)|'
mistake whole_units out_of_bounds \
    'at the end of output y: the hardware writes whole units of 16 bytes' \
    's|256 > n \&\& n % 4|256 > n + 256|'
mistake left_out wrong_result '256 of 16777216 elements of output y are never written' \
    's|: "l"(&to), "r"(first)|: "l"(\&to), "r"(first == 12345 * 256 ? 0 : first)|'
check_verdicts 2 "${sources[@]}"
done_testing
