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

# In one process of libraries a candidate that writes behind its variable, where those of libraries and of
# other modules lie, changes no verdict behind it: an honest one is right and as fast as by itself.
task=k2_12_gemm_multiply_leakyrelu
file=tasks/kernelbench/level2/$task/task.json
beside() { # STATEMENT: the task's op lines and a kernel beside them
    sed -n '/^  "graph": \[/,/^  \]/p' "$file" | sed -n 's/^    "\(.*\)",\{0,1\}$/\/\/@ op \1/p'
    cat <<END
//@ buffer unsigned spare[1]
//@ launch beside<<<256, 256>>>(spare)
__device__ unsigned own[64];
extern "C" __global__ void beside(unsigned *spare)
{
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    if (!i) spare[0] = own[0] = 1;
    $1
}
END
}
beside '' >"$tmp/honest.cu"
beside '((volatile unsigned *)own)[64 + i] = i * 2654435761u;' >"$tmp/spoil.cu"
judge "$task" "$tmp/honest.cu"
alone=$score
is 'a kernel beside op lines is right' "$outcome" ok
timeout 400 "$BIN/quern-eval" --task "$task" --device "$DEVICE" --json "$tmp/spoil.cu" "$tmp/honest.cu" \
    "$tmp/spoil.cu" "$tmp/honest.cu" "$tmp/honest.cu" >"$tmp/out" 2>"$tmp/err"
while read -r line; do
    json_field outcome <<<"$line"
    json_field score <<<"$line"
done <"$tmp/out" | paste - - | sed -n '2p;4p;5p' >"$tmp/honest"
is 'three honest ones behind it are right' "$(cut -f1 "$tmp/honest" | paste -sd ' ')" 'ok ok ok'
awk -v alone="$alone" '{ d = $2 / alone - 1; bad += d < -0.03 || d > 0.03 } END { exit bad > 0 || NR != 3 }' \
    "$tmp/honest"
ok $? "and as fast as by themselves: $alone, $(cut -f2 "$tmp/honest" | paste -sd ' ')"
done_testing
