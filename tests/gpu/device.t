#!/bin/bash
# The device cuda:N (QUERN_TEST_DEVICE, cuda:0 by default): exit statuses, faults by name, a runner that is
# replaced, two evaluators on one GPU, and the processes that are left when one of them is killed. TAP on
# stdout.
# limit: 600
. "$(dirname "$0")/../shell/verdicts.sh"
DEVICE=${QUERN_TEST_DEVICE:-cuda:0}
need_gpu "$DEVICE"
export QUERN_LOG=quiet QUERN_CACHE=$tmp/cache
left_s=20
cd "$root" || exit 1

judge() { # TASK FILE [FLAGS]: sets status, outcome and message
    local task=$1 file=$2; shift 2
    status=0
    timeout 120 "$BIN/quern-eval" --task "$task" --device "$DEVICE" --json "$@" "$file" >"$tmp/out" \
        2>"$tmp/err" || status=$?
    outcome=$(json_field outcome <"$tmp/out") message=$(json_field message <"$tmp/out")
}
good=tests/fixtures/kernels/ok.cu

# ---- verdicts and exit statuses ----
judge relu $good
[ "$status $outcome" = "0 ok" ]; ok $? 'a right kernel: ok, exit status 0'
if [ "${DEVICE%%:*}" = cuda ]; then
    grep -q '"predicted":false' "$tmp/out"
else
    grep -q '"predicted":true' "$tmp/out"
fi
ok $? 'the times of a verdict say whether they were measured'
awk "BEGIN { exit !($(json_field time_us <"$tmp/out") > $(json_field light_us <"$tmp/out") && $(json_field \
    light_us <"$tmp/out") > 0) }"
ok $? 'times of a verdict are above what bytes and flops allow'
if [ "${DEVICE%%:*}" = cuda ]; then # the speed of light is measured only on a GPU
    light=$(ls -i "$tmp"/cache/light-*.qa)
    [ -n "$light" ]; ok $? 'the first process has measured the speed of light of the GPU'
    judge relu $good
    [ "$(ls -i "$tmp"/cache/light-*.qa)" = "$light" ]
    ok $? 'the next process finds the measured speed of light'
    late=$("$BIN/quern-light" --device "$DEVICE" 2>"$tmp/err" | tee "$tmp/out" |
        awk '/answers late every/ {print $5}')
    ! grep -q 'NVIDIA H200' "$tmp/out" || awk "BEGIN { exit !(${late:-0} > 99.9 && ${late:-0} < 100.4) }"
    ok $? "how often the GPU's memory answers late is measured, which is known of an H200"
fi
judge relu tests/fixtures/kernels/wrong_result.cu
[ "$status $outcome" = "1 wrong_result" ]; ok $? 'a wrong kernel: wrong_result, exit status 1'
judge no-such-task $good
[ "$status" = 2 ]; ok $? 'no such task: exit status 2'
"$BIN/quern-eval" --task relu --device cuda:64 --json $good >"$tmp/out" 2>"$tmp/err"; status=$?
[ "$status" = 2 ] && grep -q 'quern-eval: ..*' "$tmp/err"
ok $? 'no such device: exit status 2, and a sentence'
for kernel in compile_error plan_count plan_launch_bounds plan_missing plan_no_kernel include_passwd \
    endless_loop trap; do
    check_verdict tests/fixtures/kernels/$kernel.cu
done

# ---- faults by name ----
fault() { # NAME OUTCOMES TEXT: the kernel on stdin gets one of the outcomes, and a message with the text
    cat >"$tmp/$1.cu"
    judge relu "$tmp/$1.cu"
    [ "$status" = 1 ] && grep -qE "^($2)$" <<<"$outcome" && grep -qiE -- "$3" <<<"$message"
    ok $? "$1: $outcome"
}
fault wild 'out_of_bounds' 'kernel relu' <<'END'
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n) { y[(size_t)1 << 44] = x[0]; }
END
fault misaligned 'out_of_bounds' 'misaligned|multiple of' <<'END'
//@ launch relu<<<1, 32>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{ *reinterpret_cast<float4 *>(y + 1) = make_float4(x[0], 0, 0, 0); }
END
fault assertion 'launch_error' 'relu' <<'END'
#include <assert.h>
//@ launch relu<<<1, 32>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n) { y[0] = x[0]; assert(n < 0); }
END
fault endless 'timeout' 'relu' <<'END'
//@ launch relu<<<1, 32>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{ volatile float *p = y; while (n) *p = x[0]; }
END
# A write just past the end of an output. The hardware reports no fault; the guard zone around the buffer
# shows it.
fault beyond 'out_of_bounds' 'y' <<'END'
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
    if (i == 0) y[n] = 1;
}
END

# ---- limits ----
limit() { # NAME OUTCOMES: the kernel on stdin gets one of the outcomes within a minute
    cat >"$tmp/$1.cu"
    local start=$SECONDS
    judge relu "$tmp/$1.cu"
    grep -qE "^($2)$" <<<"$outcome" && [ $((SECONDS - start)) -lt 60 ]
    ok $? "$1: $outcome"
}
limit 'a buffer of 16 TiB' 'plan_error|launch_error' <<'END'
//@ buffer float huge[4398046511104]
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, huge, n)
extern "C" __global__ void relu(const float *x, float *y, float *huge, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
END
limit 'a variable of 8 GiB' 'compile_error|launch_error|unsupported|ok' <<'END'
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__device__ float huge[1LL << 31];
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    huge[i] = 1;
    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
END
check_verdict tests/cheats/hostile_printf_flood.cu
check_verdict tests/cheats/hostile_recursion.cu
none_left; ok $? 'no process is left'

# ---- one evaluator, hostile and honest kernels alternately: the runner is replaced ----
"$BIN/quern-gpubench" --device "$DEVICE" --parts hostile --hostile 8 --hangs 2 --output "$tmp/hostile.tsv" \
    >"$tmp/out" 2>"$tmp/err"; status=$?
[ $status = 0 ] &&
    [ "$(awk -F'\t' '$2 == "honest verdicts that changed" {print $3}' "$tmp/hostile.tsv")" = 0 ]
ok $? 'honest verdicts between hostile ones are what they are alone'

# ---- two evaluators on one GPU ----
for i in 1 2; do
    "$BIN/quern-eval" --task softmax --device "$DEVICE" --json tasks/softmax/baseline.cu >"$tmp/both.$i" \
        2>"$tmp/err.$i" &
done
wait
[ "$(json_field outcome <"$tmp/both.1") $(json_field outcome <"$tmp/both.2")" = "ok ok" ]
ok $? 'two evaluators at the same time: both ok'
awk "BEGIN { a = $(json_field speedup <"$tmp/both.1"); b = $(json_field speedup \
    <"$tmp/both.2"); exit !(a > 0 && b / a < 1.03 && a / b < 1.03) }"
rc=$? both="$(json_field speedup <"$tmp/both.1") $(json_field speedup <"$tmp/both.2")"
ok $rc "speedups of two evaluators at the same time are within 3%: $both"
"$BIN/quern-eval" --task relu --device "$DEVICE" --json "$tmp/endless.cu" >"$tmp/both.1" 2>"$tmp/err.1" &
judge softmax tasks/softmax/baseline.cu
wait
[ "$(json_field outcome <"$tmp/both.1") $outcome" = "timeout ok" ]
ok $? 'an honest kernel beside one that hangs: ok'

# ---- kill -9 ----
start() {
    "$BIN/quern-eval" --task relu --device "$DEVICE" --json "$tmp/endless.cu" >"$tmp/out" 2>"$tmp/err" & \
        evaluator=$!
}
if [ "${DEVICE%%:*}" = cuda ]; then
    start
    wait_for '[ -n "$(ours quern-cudarunner)" ]'; sleep 0.5
    kill -9 $(ours quern-cudarunner); killed=$?
    timeout 60 tail --pid=$evaluator -f /dev/null; s=$?
    wait $evaluator; status=$?
    [ $killed = 0 ] && [ $s = 0 ] && [ -s "$tmp/out" ] && { [ $status = 1 ] || [ $status = 3 ]; }
    ok $? "the runner killed in the middle of a job: a verdict ($(json_field outcome <"$tmp/out"))"
    none_left; ok $? 'no process is left'
    judge relu $good
    [ "$status $outcome" = "0 ok" ]; ok $? 'the GPU works on'
else
    for name in 'the runner killed' 'no process is left' 'the GPU works on'; do
        ok 0 "$name # skip a simulator has no runner"
    done
fi
for moment in 0.1 0.4 0.8 1.5; do
    start
    sleep $moment
    kill -9 $evaluator
    wait $evaluator 2>/dev/null
    none_left; ok $? "the evaluator killed after $moment s: no process is left"
done
judge relu $good
[ "$status $outcome" = "0 ok" ]; ok $? 'the GPU works on'
done_testing
