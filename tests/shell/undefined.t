#!/bin/bash
# Variables without a value: each task's baseline with an initialiser taken away is uninitialised, with the
# variable and its line; kernels in which such a value does not matter are ok. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$root" || exit 1

check_verdicts 2 tests/fixtures/undefined/*.cu

broken() { # TASK VARIABLE SED
    local file=$tmp/$1.cu json line message
    sed -E "$3" "tasks/$1/baseline.cu" >"$file"
    json=$("$BIN/quern-eval" --task "$1" --device sim:h100 --json "$file" 2>"$tmp/err")
    line=$(json_field line <<<"$json") message=$(json_field message <<<"$json")
    is "$1 without a value of $2" "$(json_field outcome <<<"$json")" uninitialised
    is "$1: the message names the variable" "$(grep -c "reads \`$2\`, which has no value" <<<"$message")" 1
    is "$1: the named line reads the variable" "$(sed -n "${line}p" "$file" | grep -cw "$2")" 1
}
for task in attention diag_matmul matmul matmul_bias_relu row_sum softmax residual_rmsnorm; do
    broken $task sum 's/float sum = 0.0f/float sum/'
done
broken conv3d_norm_min_clamp sum 's/float sum = bias\[co\]/float sum/'
done_testing
