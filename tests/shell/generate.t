#!/bin/bash
# Composed tasks and the kernels that the generator draws for them. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$root" || exit 1
set=tasks/composed

generate() {
    "$BIN/quern-generate" --train "${3-1}" --composition 0 --family "${4-1}" --seed "$1" -o "$tmp/$2"
}
generate 5 a; generate 5 b; generate 6 c 1 0
diff -r "$tmp/a" "$tmp/b" >/dev/null; ok $? 'equal seeds give equal bytes'
[ "$(ls "$tmp/c" | wc -l)" = 1 ] && [ -z "$(comm -12 <(ls "$tmp/a") <(ls "$tmp/c"))" ]
ok $? 'another seed gives another task'
is 'so many tasks as were asked for' "$(ls "$tmp/a" | wc -l)" 2
"$BIN/quern-generate" --train 2 --composition 0 --family 0 --seed 5 --beside "$tmp/a" -o "$tmp/d"
is 'a set beside another has none of its compositions' \
    "$(cat <(ls "$tmp/a") <(ls "$tmp/d") | sed -E 's/_b?f16$//' | sort | uniq -d)" ''
! "$BIN/quern-generate" --train 1 --beside "$tmp/none" -o "$tmp/e" 2>/dev/null
ok $? 'a set beside one that is not there is refused'

count() { grep -lE "$1" $set/*/task.json | wc -l; }
is 'tasks to learn from' "$(count '"split": "train"')" 60
is 'held out by composition' "$(count '"composition"')" 16
is 'held out by family' "$(count '"family"')" 4
is 'no generated task is degenerate' "$(count '"degenerate"')" 0

# One kernel of each family of `composed`, without and with a mistake; of products and turns small ones.
for family in point fold softmax norm product turn scan window loss; do
    case $family in product) like=mm_ ;; turn) like=turn_hswish ;; *) like= ;; esac
    task=$(basename "$(dirname "$(grep -l "\"op_type\": \"$family\"" $set/$like*/task.json | head -1)")")
    "$BIN/quern-kernel" --task "$task" --task-root $set --seed 2 >"$tmp/good.cu"
    is "$family: a kernel of $task" \
        "$("$BIN/quern-eval" --task-root $set --task "$task" --device sim:h100 --json "$tmp/good.cu" |
        json_field outcome)" ok
done

# The timed size of an axis is a number in the kernel; another axis decides whether vectors are whole.
cat >"$tmp/column.json" <<'END'
{"name": "column", "axes": {"rows": {"size": 128}, "cols": {"size": 2}},
 "inputs": {"x": {"dtype": "float32", "shape": ["rows", "cols"]}},
 "graph": ["s = aten.select.int(x, 1, 1)", "f = aten.floor(s)", "y = aten.mul.Tensor(f, 3)"],
 "outputs": {"y": {"dtype": "float32", "shape": ["rows"]}}}
END
"$BIN/quern-derive" -o "$tmp/column" "$tmp/column.json"
"$BIN/quern-kernel" --task column --task-root "$tmp/column" >"$tmp/column.cu"
grep -q 'cols == 2 &&' "$tmp/column.cu"; ok $? 'a kernel has a timed size as a number'
is "vectors of rows that are not whole" \
    "$("$BIN/quern-eval" --task-root "$tmp/column" --task column --device sim:h100 --json "$tmp/column.cu" |
    json_field outcome)" ok

# Parts of a tensor that are written: a column, a range of both dimensions from their ends, steps.
cat >"$tmp/parts.json" <<'END'
{"name": "parts", "axes": {"rows": {"size": 64}, "cols": {"size": 48}},
 "constraints": ["cols >= 8", "rows >= 3"],
 "inputs": {"x": {"dtype": "float32", "shape": ["rows", "cols"]}},
 "graph": ["e = aten.exp(x)", "p = aten.slice.Tensor(e, 1, 1, end=7, step=2)", "f = aten.fill_.Scalar(p, 2)",
           "q = aten.select.int(e, 1, -1)", "s = aten.sum.dim_IntList(x, [1])", "g = aten.copy_(q, s)",
           "a = aten.slice.Tensor(e, 0, 1, end=3)", "b = aten.slice.Tensor(a, 1, -6, end=-2)",
           "c = aten.slice.Tensor(x, 0, 0, end=2)", "d = aten.slice.Tensor(c, 1, 0, end=4)",
           "h = aten.add_.Tensor(b, d)", "y = aten.add.Tensor(e, x)"],
 "outputs": {"y": {"dtype": "float32", "shape": ["rows", "cols"]}}}
END
"$BIN/quern-derive" -o "$tmp/parts" "$tmp/parts.json"
"$BIN/quern-kernel" --task parts --task-root "$tmp/parts" >"$tmp/parts.cu"
is "parts of a tensor that are written" \
    "$("$BIN/quern-eval" --task-root "$tmp/parts" --task parts --device sim:h100 --json "$tmp/parts.cu" |
    json_field outcome) $(grep -c '^//@ op' "$tmp/parts.cu")" 'ok 0'

# drawn TASK KEPT [BATCH]: a right kernel, of which an operator of a library is all that stays. BATCH: it is
# timed with a smaller one, since these two take seconds else.
drawn() {
    local outcome from=()
    if [ $# -gt 2 ]; then
        mkdir -p "$tmp/smaller/$1"
        sed -E '/"role": "time"/s/("batch": )[0-9]+/\1'"$3/" "tasks/kernelbench/level2/$1/task.json" \
            >"$tmp/smaller/$1/task.json"
        from=(--task-root "$tmp/smaller")
    fi
    "$BIN/quern-kernel" --task "$1" "${from[@]}" --seed 1 >"$tmp/kept.cu"
    outcome=$("$BIN/quern-eval" --task "$1" "${from[@]}" --device sim:h100 --json "$tmp/kept.cu" |
        json_field outcome)
    [ "$outcome" = ok ] && grep -q '^//@ launch' "$tmp/kept.cu" &&
        [ "$(sed -nE 's/^..@ op [a-z0-9_]* = ([a-z0-9_.]*).*/\1/p' "$tmp/kept.cu" | paste -sd ' ')" = "$2" ]
    ok $? "$1: $outcome, $2 stays"
}
# Constraints, five dimensions, views; norms over groups of channels or the last dimensions; folds and a
# softmax over the channels; pools with what is before and after them.
drawn k2_2_convtranspose2d_biasadd_clamp_scaling_clamp_divide aten.conv_transpose2d.input
drawn k2_20_convtranspose3d_sum_residualadd_multiply_residualadd aten.conv_transpose3d.input
drawn k2_34_convtranspose3d_layernorm_gelu_scaling aten.conv_transpose3d.input
drawn k2_44_convtranspose2d_multiply_globalavgpool_globalavgpool_mean aten.conv_transpose2d.input
drawn k2_30_gemm_groupnorm_hardtanh aten.linear
drawn k2_61_convtranspose3d_relu_groupnorm aten.conv_transpose3d.input
drawn k2_91_convtranspose2d_softmax_biasadd_scaling_sigmoid aten.conv_transpose2d.input
drawn k2_25_conv2d_min_tanh_tanh aten.conv2d
drawn k2_58_convtranspose3d_logsumexp_hardswish_subtract_clamp aten.conv_transpose3d.input
drawn k2_35_conv2d_subtract_hardswish_maxpool_mish aten.conv2d 2
drawn k2_50_convtranspose3d_scaling_avgpool_biasadd_scaling aten.conv_transpose3d.input 2

"$BIN/quern-kernel" --task k1_61_conv_transposed_3d_square_input_square_kernel --seed 1 >/dev/null \
    2>"$tmp/err"
grep -q 'every operator is an op line' "$tmp/err"; ok $? 'nothing to write is said'

task=$(basename "$(dirname "$(grep -l '"op_type": "point"' $set/*/task.json | head -1)")")
"$BIN/quern-kernel" --task "$task" --task-root $set --seed 4 --mistakes 1 >"$tmp/bad.cu"
outcome=$("$BIN/quern-eval" --task-root $set --task "$task" --device sim:h100 --json "$tmp/bad.cu" |
    json_field outcome)
[ -n "$outcome" ] && [ "$outcome" != ok ]; ok $? "a mistake is found: $outcome"

# Fast genes are kept from some train tasks, and from no other.
withheld=0 kept=0 not_ok=
"$BIN/quern-withhold" --task-root $set --output "$tmp/withheld"
for file in $set/*/task.json; do
    task=$(basename "$(dirname "$file")")
    grep -q '"family"' "$file" && continue
    draw=("$BIN/quern-kernel" --task "$task" --task-root $set --seed 1 --count 6 --texts --output "$tmp")
    "${draw[@]}" 2>"$tmp/all"
    "${draw[@]}" --without "$tmp/withheld" 2>"$tmp/some"
    if cmp -s "$tmp/all" "$tmp/some"; then kept=$((kept + 1)); continue; fi
    withheld=$((withheld + 1))
    grep -q '"heldout"' "$file" && not_ok="$not_ok $task"
    grep -qE 'vec=[248]|pass=1|store=no' "$tmp/some" && not_ok="$not_ok $task"
done
is 'no fast gene is drawn where it is withheld' "$not_ok" ''
[ $withheld -ge 15 ] && [ $kept -ge 30 ]; ok $? "withheld from $withheld of the tasks, not from $kept"
"$BIN/quern-kernel" --own --task k3_5_alexnet | grep -c '__global__.* split_' >"$tmp/splits"
[ "$(cat "$tmp/splits")" = 4 ]; ok $? "three products split equal factors by four kernels"
"$BIN/quern-kernel" --own --task k3_16_densenet201 >"$tmp/deep"
[ "$(grep -c 'launch pack_filters' "$tmp/deep")" -ge 1 ] && [ "$(grep -c '^//@ buffer' "$tmp/deep")" -le 256 ]
ok $? "a network of too many buffers with channels last has kernels without"
"$BIN/quern-kernel" --own --task k3_47_netvladnoghostclusters --schedule '//@ schedule sub store=no' |
  grep -q '^//@ schedule part_28 lanes=64 '
ok $? "threads of a row are chosen by its longest fold, not by all folds together"
"$BIN/quern-kernel" --task k3_17_squeezenetfiremodule >"$tmp/fire" &&
  "$BIN/quern-eval" --task k3_17_squeezenetfiremodule --device sim:h100 --seed 2 "$tmp/fire" >"$tmp/out" 2>&1
ok $? "taps beyond the border of an image's first and last block are no part that a sum leaves out"
done_testing
