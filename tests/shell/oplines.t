#!/bin/bash
# `//@ op` lines: kernels that keep some operators of a task, mistakes with their sentences, and a task's
# graph as its own candidate. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$root" || exit 1
fixtures=tests/fixtures/op_lines

# One process judges all kernels of one task. In several parts they get the same verdicts as in one.
declare -A files=()
for file in $fixtures/*.cu; do
    read_fields "$file"
    files[$task]+=" $file"
done
parts() { # KERNELS TASK
    QUERN_TASKS=; [ "$2" = op_layer ] && QUERN_TASKS=$fixtures/tasks
    QUERN_TEST=${1:+parts=$1} QUERN_TASKS=$QUERN_TASKS "$BIN/quern-eval" --task "$2" --json ${files[$2]}
}
differ= verdicts=0
for task in "${!files[@]}"; do
    parts "" "$task" >"$tmp/one" 2>"$tmp/err"
    rc=$?
    readarray -t jsons <"$tmp/one"
    verdicts=$((verdicts + ${#jsons[@]})) k=0 wrong=0
    for file in ${files[$task]}; do
        say_verdict "$file" "${jsons[k]-}" "$tmp/err"
        [[ ${jsons[k++]-} == *'"outcome":"ok"'* ]] || wrong=1
    done
    [ "$rc" = $wrong ]; ok $? "$task: exit status $rc"
    for kernels in 1 3; do
        parts $kernels "$task" >"$tmp/parts"
        cmp -s "$tmp/one" "$tmp/parts" || differ+=" $task:$kernels"
    done
done
is "verdicts of kernels in parts of 1 and of 3, where they differ from those in one" "$differ" ""
is "each kernel in one part has a verdict" $verdicts $(ls $fixtures/*.cu | wc -l)

export QUERN_TASKS=$fixtures/tasks
QUERN_CACHE= "$BIN/quern-eval" --task op_layer --json $fixtures/only_ops.cu >"$tmp/a"
is "the graph's own lines score exactly 1" "$(json_field score <"$tmp/a")" "1.0"
QUERN_CACHE= "$BIN/quern-eval" --task op_layer --json $fixtures/only_ops.cu >"$tmp/b"
is "two runs give equal bytes" "$(cksum <"$tmp/a")" "$(cksum <"$tmp/b")"
score=$("$BIN/quern-eval" --task op_layer --json $fixtures/fused_rest.cu | json_field score)
awk "BEGIN { exit !($score > 1) }"; ok $? "one kernel in place of four is faster than the graph: $score"
text=$("$BIN/quern-eval" --task op_layer --profile $fixtures/fused_rest.cu)
is "registers and occupancy are those of the candidate's own kernel" \
    "$(grep -cE '^  registers  [1-9][0-9]* a thread.*occupancy' <<<"$text")" 1
text=$("$BIN/quern-eval" --task op_layer --profile $fixtures/only_ops.cu)
is "a plan without kernels has no registers and no occupancy" \
    "$(grep -c '^  registers.* a thread' <<<"$text")" 0
"$BIN/quern-eval" --task op_layer --json --baseline $fixtures/fused_rest.cu $fixtures/only_ops.cu >"$tmp/c"
awk "BEGIN { exit !($(json_field score <"$tmp/c") < 1) }"; ok $? "a baseline can mix operators and kernels"

# A plan that does what the task needs is right at the timed size, and one that leaves a sum out there is
# wrong.
short=$fixtures/short_rows.cu
early='if (cols > 4096) { for (int i = tid; i < cols; i += blockDim.x) mul[i] = y[i] * y[i]; return; }'
sed "s/  float mean = 0.0f;/$early\\n&/" $short >"$tmp/skips.cu"
judged() {
    QUERN_TASKS= "$BIN/quern-eval" --task k2_28_bmm_instancenorm_sum_residualadd_multiply --json "$1" |
        json_field outcome
}
is "a right plan, and one that skips a sum at the timed size" \
    "$(judged $short) $(judged "$tmp/skips.cu")" "ok wrong_result"

# Rows that a block keeps in registers, with and without vectors, and longer ones; the place of the least
# across rows.
printf '//@ op %s\n' 'y = aten.softmax.int(x, -1)' 'z = aten.log_softmax.int(x, -1)' \
    'least = aten.argmin(x, 0)' 'at = aten.to.dtype(least, torch.int32)' >"$tmp/long.cu"
is "softmax and argmin of long rows" \
    "$("$BIN/quern-eval" --task long_rows --json "$tmp/long.cu" | json_field outcome)" ok
done_testing
