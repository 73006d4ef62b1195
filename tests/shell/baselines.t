#!/bin/bash
# The baselines of a GPU: every task's baseline_cuda.cu and best.cu is correct on the simulator, unless it
# calls a library. A source that calls a library is refused as a candidate. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$root" || exit 1

kernels=0
for file in tasks/*/baseline_cuda.cu tasks/*/best.cu; do
    task=$(basename "$(dirname "$file")") want="ok "
    if grep -q '^//@ library ' "$file"; then want="plan_error "; else kernels=$((kernels + 1)); fi
    json=$("$BIN/quern-eval" --task "$task" --device sim:h100 --json "$file" 2>"$tmp/err")
    got="$(json_field outcome <<<"$json") $(grep -o "library calls are the harness's own" <<<"$json")"
    [ "$want" = "ok " ] || want="plan_error library calls are the harness's own"
    is "$file: ${want%% *}" "$got" "$want"
    [ "$got" = "$want" ] || echo "# message: $(json_field message <<<"$json")"
done
[ $kernels -ge 10 ]; ok $? "$kernels of the baselines are kernels alone"
done_testing
