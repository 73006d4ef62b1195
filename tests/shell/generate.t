#!/bin/bash
# Composed tasks and the template teacher's kernels for them. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$root" || exit 1
set=tasks/composed

generate() {
    "$BIN/quern-generate" --train "${3-2}" --composition 0 --family "${4-1}" --seed "$1" -o "$tmp/$2"
}
generate 5 a; generate 5 b; generate 6 c 1 0
diff -r "$tmp/a" "$tmp/b" >/dev/null; ok $? 'equal seeds give equal bytes'
[ "$(ls "$tmp/c" | wc -l)" = 1 ] && [ -z "$(comm -12 <(ls "$tmp/a") <(ls "$tmp/c"))" ]
ok $? 'another seed gives another task'
is 'so many tasks as were asked for' "$(ls "$tmp/a" | wc -l)" 3
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

# One kernel of each family of `composed`, without and with a mistake.
for family in point fold softmax norm product turn scan window loss; do
    task=$(basename "$(dirname "$(grep -l "\"op_type\": \"$family\"" $set/*/task.json | head -1)")")
    "$BIN/quern-template" --task "$task" --task-root $set --seed 2 >"$tmp/good.cu"
    is "$family: a kernel of $task" \
        "$("$BIN/quern-eval" --task-root $set --task "$task" --device sim:h100 --json "$tmp/good.cu" |
        json_field outcome)" ok
done

# Operators that the grammar does not write stay, and the rest is fused: constraints, five dimensions, views,
# norms.
for task in k2_19_convtranspose2d_gelu_groupnorm k2_2_convtranspose2d_biasadd_clamp_scaling_clamp_divide \
    k2_20_convtranspose3d_sum_residualadd_multiply_residualadd \
    k2_92_conv2d_groupnorm_tanh_hardswish_residualadd_logsumexp k2_34_convtranspose3d_layernorm_gelu_scaling \
    k2_44_convtranspose2d_multiply_globalavgpool_globalavgpool_mean; do
    "$BIN/quern-template" --task $task --seed 1 >"$tmp/kept.cu"
    grep -q '^//@ op .*aten.conv' "$tmp/kept.cu" && grep -q '^//@ launch' "$tmp/kept.cu"
    ok $? "$task: kept and written operators"
    is "$task: a right kernel" \
        "$("$BIN/quern-eval" --task $task --device sim:h100 --json "$tmp/kept.cu" | json_field outcome)" ok
done
"$BIN/quern-template" --task k2_34_convtranspose3d_layernorm_gelu_scaling --seed 1 >"$tmp/kept.cu"
! grep -q 'aten.layer_norm' "$tmp/kept.cu"; ok $? 'a norm over the last of five dimensions is written'
# Norms over groups of channels or all of an image, folds and softmax over the channels, pools with what is
# before and after them.
# TASK PATTERN TEXT [FLAG...]: no kernel of four seeds keeps the operators, none is wrong, and most are within
# the limits. The flags say where the task is.
written() {
    local seed outcome wrong='' right=0 files=()
    for seed in 1 2 3 4; do
        files+=("$tmp/seed-$seed.cu")
        "$BIN/quern-template" --task "$1" --seed $seed "${@:4}" >"${files[-1]}"
        ! grep -qE "^//@ op .*aten\.($2)" "${files[-1]}" || wrong="$wrong $seed:kept"
    done
    seed=0
    while read -r outcome; do
        seed=$((seed + 1))
        case $outcome in ok) right=$((right + 1)) ;; timeout | plan_error) ;; *) \
            wrong="$wrong $seed:$outcome" ;; esac
    done < <("$BIN/quern-eval" --task "$1" --device sim:h100 --json "${@:4}" "${files[@]}" |
        json_field outcome)
    [ -z "$wrong" ] && [ $right -ge 2 ] && [ $seed = 4 ]; ok $? "$3: $right right kernels of $1$wrong"
}
written k2_30_gemm_groupnorm_hardtanh 'group_norm' 'groups of a matrix'
written k2_60_convtranspose3d_swish_groupnorm_hardswish 'group_norm' 'groups of volumes'
mkdir -p "$tmp/smaller/k1_40_layernorm" # 67 million timed elements, too many for one running sum
sed '/"role": "time"/s/"height": 256, "width": 256/"height": 16, "width": 8/' \
    tasks/kernelbench/level1/k1_40_layernorm/task.json >"$tmp/smaller/k1_40_layernorm/task.json"
written k1_40_layernorm 'layer_norm' 'a norm over three dimensions' --task-root "$tmp/smaller"
written k2_91_convtranspose2d_softmax_biasadd_scaling_sigmoid 'softmax' 'softmax over channels'
written k2_25_conv2d_min_tanh_tanh 'min' 'the least channel'
written k2_58_convtranspose3d_logsumexp_hardswish_subtract_clamp 'logsumexp' 'logsumexp over channels'
written k2_35_conv2d_subtract_hardswish_maxpool_mish 'max_pool2d|hardswish|sub' 'a pool of an expression'
written k2_50_convtranspose3d_scaling_avgpool_biasadd_scaling 'avg_pool3d|mul' 'a pool over three dimensions'
# What follows a product of a library grows as its result, not as the product.
"$BIN/quern-template" --task k2_59_matmul_swish_scaling --seed 0 >"$tmp/kernel.cu"
score=$("$BIN/quern-eval" --task k2_59_matmul_swish_scaling --device sim:h100 --json "$tmp/kernel.cu" |
    json_field score)
[ "$(cut -c1 <<<"$score")" = 1 ]; ok $? "three operators in one kernel behind a library's product: $score"
"$BIN/quern-template" --task k1_61_conv_transposed_3d_square_input_square_kernel --seed 1 >/dev/null \
    2>"$tmp/err"
grep -q 'every operator would be kept' "$tmp/err"; ok $? 'nothing to write is said'
"$BIN/quern-template" --task k2_33_gemm_scale_batchnorm --count 8 --texts --output "$tmp" 2>"$tmp/all"
grep -q 'products=kept' "$tmp/all" && grep -q 'products=written' "$tmp/all"
ok $? 'a product is kept or written'

task=$(basename "$(dirname "$(grep -l '"op_type": "point"' $set/*/task.json | head -1)")")
"$BIN/quern-template" --task "$task" --task-root $set --seed 4 --mistakes 1 >"$tmp/bad.cu"
outcome=$("$BIN/quern-eval" --task-root $set --task "$task" --device sim:h100 --json "$tmp/bad.cu" |
    json_field outcome)
[ -n "$outcome" ] && [ "$outcome" != ok ]; ok $? "a mistake is found: $outcome"

# Fast designs are kept from some train tasks, and from no other.
withheld=0 kept=0 not_ok=
"$BIN/quern-withhold" --task-root $set --output "$tmp/withheld"
for file in $set/*/task.json; do
    task=$(basename "$(dirname "$file")")
    grep -q '"family"' "$file" && continue
    "$BIN/quern-template" --task "$task" --task-root $set --count 12 --texts --output "$tmp" 2>"$tmp/all"
    "$BIN/quern-template" --task "$task" --task-root $set --count 12 --texts --output "$tmp" \
        --without "$tmp/withheld" 2>"$tmp/some"
    if cmp -s "$tmp/all" "$tmp/some"; then kept=$((kept + 1)); continue; fi
    withheld=$((withheld + 1))
    grep -q '"heldout"' "$file" && not_ok="$not_ok $task"
    grep -qE 'vector=[248]|way=(registers|turns)|passes=(online|moments)|keep=registers|fusion=all' \
        "$tmp/some" && not_ok="$not_ok $task"
done
is 'no fast design is drawn where it is withheld' "$not_ok" ''
[ $withheld -ge 15 ] && [ $kept -ge 30 ]; ok $? "withheld from $withheld of the tasks, not from $kept"
done_testing
