#!/bin/bash
# A candidate of op lines alone on a real GPU (QUERN_TEST_DEVICE, cuda:0 by default) is the baseline: it
# scores 1.0 within the measurement's noise, for operators whose eager route is a library call and for others.
# A candidate that keeps the library call and fuses the rest is correct. TAP on stdout.
# limit: 900
. "$(dirname "$0")/../shell/verdicts.sh"
DEVICE=${QUERN_TEST_DEVICE:-cuda:0}
need_gpu "$DEVICE"
export QUERN_LOG=quiet QUERN_CACHE=$tmp/cache
cd "$root" || exit 1

judge() { # TASK FILE: sets outcome and score
    timeout 200 "$BIN/quern-eval" --task "$1" --device "$DEVICE" --json "$2" >"$tmp/out" 2>"$tmp/err"
    outcome=$(json_field outcome <"$tmp/out") score=$(json_field score <"$tmp/out")
}

# cuBLAS, cuDNN, cuDNN with plain kernels behind it, plain kernels alone.
for task in k1_1_square_matrix_multiplication k2_12_gemm_multiply_leakyrelu k2_1_conv2d_relu_biasadd \
    k2_2_convtranspose2d_biasadd_clamp_scaling_clamp_divide k1_23_softmax; do
    file=$(ls tasks/kernelbench/level?/"$task"*/task.json 2>/dev/null | head -1)
    [ -n "$file" ] || { ok 1 "no task $task"; continue; }
    name=$(basename "$(dirname "$file")")
    sed -n '/^  "graph": \[/,/^  \]/p' "$file" |
        sed -n 's/^    "\(.*\)",\{0,1\}$/\/\/@ op \1/p' >"$tmp/ops.cu"
    judge "$name" "$tmp/ops.cu"
    [ "$outcome" = ok ] && awk "BEGIN { exit !($score > 0.95 && $score < 1.05) }"
    ok $? "$name: only op lines: $outcome, score $score"
done

# Drawn by the generator: the best of some seeds.
task=k2_2_convtranspose2d_biasadd_clamp_scaling_clamp_divide best=0 bad=
for seed in 1 2 3 4; do
    "$BIN/quern-kernel" --task $task --seed $seed >"$tmp/fused.cu"
    judge $task "$tmp/fused.cu"
    [ "$outcome" = ok ] || bad="$bad $outcome"
    awk "BEGIN { exit !(${score:-0} > $best) }" && best=$score
done
is 'kernels beside a library call are correct' "$bad" ''
awk "BEGIN { exit !($best > 1) }"; ok $? "kernels beside a library call are faster than eager PyTorch: $best"
done_testing
