#!/bin/bash
# A win of a task with a long sum is run on inputs with a few outliers: what leaves most of the sum out is a
# wrong result. On a simulator what a launch leaves out at the timed size counts as done. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$tmp" || exit 1

# Tasks that quern-derive wrote: norm and large divide by the length of all inputs, 2048 x 2048 and
# 6144 x 6144; steep multiplies by the mean of sines; length is minus the length alone.
cp -r "$root/tests/fixtures/outliers" tasks

block_sum='__device__ float block_sum(float s)
{
    __shared__ float part[8];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < 8; i++) s += part[i];
    return s;
}'

# kernel NAME USED TERM RESULT: two launches, of which the first adds terms of the first USED inputs
kernel() {
    cat >"$1.cu" <<END
//@ buffer float sums[1024]
//@ launch add<<<1024, 256>>>(x, sums, rows * cols)
//@ launch scale<<<ceil_div(rows * cols, 1024), 256>>>(x, sums, y, rows * cols)
$block_sum
extern "C" __global__ void add(const float *x, float *sums, int n)
{
    int used = $2;
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < used; i += 262144) s += $3;
    s = block_sum(s);
    if (threadIdx.x == 0) sums[blockIdx.x] = s * ((float)n / used);
}
extern "C" __global__ void scale(const float *x, const float *sums, float *y, int n)
{
    float4 four = ((const float4 *)sums)[threadIdx.x];
    float s = block_sum(four.x + four.y + four.z + four.w);
    for (int j = 0; j < 4; j++) {
        int i = blockIdx.x * 1024 + j * 256 + threadIdx.x;
        if (i < n) y[i] = $4;
    }
}
END
}

judge() { # TASK KERNEL: leaves the verdict in $verdict and its score in $score
    verdict=$("$BIN/quern-eval" --task "$1" --task-root tasks --device sim:h100 --json "$2.cu")
    score=$(json_field score <<<"$verdict")
    echo "# $2 of $1: $(json_field outcome <<<"$verdict"), score $score"
}

kernel whole n 'x[i] * x[i]' 'x[i] * rsqrtf(s)'
judge norm whole
[[ $verdict == *'"outcome":"ok"'*'"time, with a few outliers: all blocks"'*'with one outlier, twice'* ]]
ok $? "a win that adds all terms runs with outliers and is ok"
judge large whole
[[ $verdict == *'"outcome":"ok"'* ]]; ok $? "a win of a larger one is ok"

kernel part 'n > 1000000 ? n / 2 : n' 'x[i] * x[i]' 'x[i] * rsqrtf(s)'
judge norm part
[[ $verdict == *'"outcome":"wrong_result"'*'time rows='* ]]
ok $? "a win that estimates the sum from a half is wrong at the timed size"

kernel most 'n > 1000000 ? n / 64 : n' 'x[i] * x[i]' 'x[i] * rsqrtf(s)'
judge large most
[[ $verdict == *'"outcome":"wrong_result"'*'time rows='* ]]
ok $? "a win that estimates a long sum from a small share is wrong at the timed size"
kernel few 'n > 300000 ? n / 64 : n' 'x[i] * x[i]' 'x[i] * rsqrtf(s)'
judge large few
[[ $verdict == *'"outcome":"wrong_result"'*'time rows='* ]]
ok $? "a win that estimates the sum of fewer rows is wrong"
cat >seen.cu <<END
//@ buffer float sums[1024]
//@ buffer float total[1]
//@ launch add<<<1024, 256>>>(x, sums, rows * cols)
//@ launch finish<<<1, 256>>>(x, sums, total, rows * cols)
//@ launch scale<<<ceil_div(rows * cols, 1024), 256>>>(x, total, y, rows * cols)
$block_sum
__device__ int used(int n) { return n > 300000 ? n / 2 : n; }
extern "C" __global__ void add(const float *x, float *sums, int n)
{
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < used(n); i += 262144) s += x[i] * x[i];
    s = block_sum(s);
    if (threadIdx.x == 0) sums[blockIdx.x] = s;
}
extern "C" __global__ void finish(const float *x, const float *sums, float *total, int n)
{
    float s = 0;
    for (int i = threadIdx.x; i < 1024; i += 256) s += sums[i] * n / used(n);
    s = block_sum(s);
    if (s > 100.0f * n) {
        __syncthreads();
        s = 0;
        for (int i = threadIdx.x; i < n; i += 256) s += x[i] * x[i];
        s = block_sum(s);
    }
    if (threadIdx.x == 0) *total = s;
}
extern "C" __global__ void scale(const float *x, const float *total, float *y, int n)
{
    float s = rsqrtf(*total);
    for (int j = 0; j < 4; j++) {
        int i = blockIdx.x * 1024 + j * 256 + threadIdx.x;
        if (i < n) y[i] = x[i] * s;
    }
}
END
judge large seen
[[ $verdict == *'"outcome":"wrong_result"'* ]]
ok $? "a win that estimates the sum of fewer rows unless it sees an outlier is wrong"

# length NAME SHARE: estimates the sum from a share of its terms, unless one of those is an outlier
length() {
    cat >"$1.cu" <<END
//@ buffer float sums[1024]
//@ launch add<<<1024, 256>>>(x, sums, rows * cols)
//@ launch finish<<<1, 256>>>(x, sums, y, rows * cols)
$block_sum
__device__ int used(int n) { return n > 2000000 ? n / $2 : n; }
extern "C" __global__ void add(const float *x, float *sums, int n)
{
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < used(n); i += 262144) s += x[i] * x[i];
    s = block_sum(s);
    if (threadIdx.x == 0) sums[blockIdx.x] = s;
}
extern "C" __global__ void finish(const float *x, const float *sums, float *y, int n)
{
    float s = 0;
    int seen = 0;
    for (int i = threadIdx.x; i < 1024; i += 256) s += sums[i] * n / used(n), seen |= sums[i] > 1e6f;
    if (__syncthreads_or(seen)) {
        s = 0;
        for (int i = threadIdx.x; i < n; i += 256) s += x[i] * x[i];
    }
    s = block_sum(s);
    if (threadIdx.x == 0) *y = -sqrtf(s);
}
END
}

length half 2
judge length half
[[ $verdict == *'"outcome":"wrong_result"'* || $verdict == *'"cheat":"input_dispatch"'* ]]
ok $? "a win that estimates unless it sees an outlier does not see one alone"
length all 1
judge length all
[[ $verdict == *'"cheat":"input_dispatch"'*'done for unusual inputs alone'* ]]
ok $? "a win that sees each outlier and takes longer then is told so"

kernel steep n 'sinf(x[i])' 'x[i] * s / n'
judge steep steep
[[ $verdict == *'"outcome":"ok"'* && $verdict != *'a few outliers'* ]]
ok $? "a sum that the inputs' last bits decide is not checked with outliers"

# At sizes that the simulator chooses, a block of 512 threads may take as long for fewer columns.
cp -r "$root/tests/fixtures/together/two" tasks/
"$BIN/quern-kernel" --task two --task-root tasks >joined.cu
sed 's/v = shared\[threadIdx.x % .*\];/v = shared[0];/
  s/for (int d = T . 32 . 2; d; d .= 2) v = f(v, exchange(v, d));/for (int w = 1; w < T \/ 32; w++)\
    v = f(v, shared[w]);/
' joined.cu >two.cu # each thread adds up what all warps have
judge two two
! cmp -s joined.cu two.cu &&
  [[ $verdict == *'"outcome":"ok"'*'no run of long sums with outliers: a simulator takes too long'* ]]
ok $? "a kernel that takes too long at these sizes without outliers, too, is ok"
endless='while (n > 100000 \&\& s > 1e9f) __nanosleep(100);'
sed "s/^ *if (threadIdx.x == 0) sums/    $endless\\n&/" whole.cu >loops.cu
judge large loops
! cmp -s whole.cu loops.cu && [[ $verdict == *'"outcome":"timeout"'*'with a few outliers'* ]]
ok $? "one that does not end where it sees outliers alone is a timeout"
done_testing
