#!/bin/bash
# Kernels that the generator draws: right ones, and mistakes that the judge refuses. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$root" || exit 1

# judged TASK FILE...: the outcomes, in their order
judged() { "$BIN/quern-eval" --task "$1" --device sim:h100 --json "${@:2}" | json_field outcome; }

# Of each kind of loop: elements, rows, products and tiles, an operator that stays, half types, a moved axis.
for task in silu_bias softmax residual_rmsnorm matmul_bias_relu linear_silu_scale_bf16 turn_leaky_res_gelu; do
    "$BIN/quern-kernel" --task $task --seed 1 --count 2 --output "$tmp"
    is "$task: right kernels" "$(judged $task "$tmp/$task"-[12].cu | paste -sd ' ')" 'ok ok'
done

# A norm of n numbers, of which a joined tensor has 2 n: its results are stored once each.
"$BIN/quern-kernel" --task mirrored_norm --task-root tests/fixtures/layout --seed 1 >"$tmp/mirrored.cu"
grep -q 'for (.* < count_1; ' "$tmp/mirrored.cu" && ! grep -q 'for (.* \* n; ' "$tmp/mirrored.cu"
ok $? 'results that a fold of fewer elements comes before are stored once each'

# Of each mistake the first two of each task.
for task in softmax layernorm matmul row_sum gelu; do
    "$BIN/quern-kernel" --task $task --seed 40 --count 90 --mistakes 1 --texts --output "$tmp" 2>"$tmp/texts"
    seed=40
    while read -r mistake; do
        for i in 1 2; do
            [ ! -e "$tmp/$mistake-$i.$task" ] && mv "$tmp/$task-$seed.cu" "$tmp/$mistake-$i.$task" && break
        done
        seed=$((seed + 1))
    done < <(sed -n 's/.*mistake=//p' "$tmp/texts")
done
kinds=0 taken=''
for mistake in missing_guard missing_barrier missing_wait swapped_axes wrong_identity stale_partial \
    wrong_constant off_by_one too_few_blocks undeclared_name; do
    found=0
    for file in "$tmp/$mistake"-*; do
        [ -e "$file" ] && [ $found -lt 2 ] || continue
        found=$((found + 1))
        cp "$file" "$tmp/wrong.cu"
        [ "$(judged "${file##*.}" "$tmp/wrong.cu")" != ok ] || taken="$taken ${file##*/}"
    done
    [ $found -gt 0 ] && kinds=$((kinds + 1))
done
is 'kinds of mistakes' $kinds 10
is 'mistakes that the judge takes' "$taken" ''
done_testing
