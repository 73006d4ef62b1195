#!/bin/bash
# The baselines of a GPU: every task's baseline_cuda.cu and best.cu is correct on the simulator, unless it calls a library. A
# source that calls a library is refused as a candidate.
set -u
cd "$(dirname "$0")/../.."
BIN=$(cd "${QUERN_BUILD:-build}/bin" && pwd)
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
export QUERN_LOG=quiet
. tests/shell/verdicts.sh

n=0 kernels=0
for file in tasks/*/baseline_cuda.cu tasks/*/best.cu; do
    task=$(basename "$(dirname "$file")") want="ok "
    if grep -q '^//@ library ' "$file"; then want="plan_error "; else kernels=$((kernels + 1)); fi
    json=$("$BIN/quern-eval" --task "$task" --device sim:h100 --json "$file" 2>"$TMP/err")
    got="$(json_field outcome <<<"$json") $(grep -o "library calls are the harness's own" <<<"$json")"
    [ "$want" = "ok " ] || want="plan_error library calls are the harness's own"
    if [ "$got" = "$want" ]; then
        echo "ok $((++n)) - $file: ${want%% *}"
    else
        echo "not ok $((++n)) - $file"
        echo "# got '$got', expected '$want': $(json_field message <<<"$json") $(cat "$TMP/err")"
    fi
done
[ $kernels -ge 10 ] && echo "ok $((++n)) - $kernels of them are kernels alone" || echo "not ok $((++n)) - only $kernels are kernels alone"
echo "1..$n"
