#!/bin/bash
# Contents at the ends of what types hold: rows of the largest and least integers of a range, numbers that a
# short integer does not hold, sums of half types that are large, edges of intervals. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$tmp" || exit 1

draft() { # NAME AXES INPUTS GRAPH
    echo "{\"name\": \"$1\", \"axes\": {$2}, \"inputs\": {$3}, \"outputs\": {\"y\": {}}," \
        "\"graph\": [$4]}" >"$1.json"
}
axes='"rows": {"size": 1024}, "cols": {"size": 1024}'
draft sums "$axes" \
    '"x": {"dtype": "int32", "shape": ["rows", "cols"], "draw": "integer", "low": -100000, "high": 100000}' \
    '"s = aten.sum.dim_IntList(x, [1])", "y = aten.to.dtype(s, torch.int32)"'
draft counts '"rows": {"size": 4096}, "cols": {"size": 64}' \
    '"x": {"dtype": "int64", "shape": ["rows"], "draw": "integer", "low": 0, "high": "cols - 1"}' \
    '"h = aten.one_hot(x, cols)", "s = aten.sum.dim_IntList(h, [0])", "y = aten.to.dtype(s, torch.int32)"'
draft whole "$axes" '"x": {"dtype": "float32", "shape": ["rows", "cols"]}' \
    '"h = aten.mul.Tensor(x, 10.0)", "y = aten.to.dtype(h, torch.int32)"'
draft halves "$axes" '"x": {"dtype": "float16", "shape": ["rows", "cols"]}' \
    '"y = aten.sum.dim_IntList(x, [1])"'
draft bins "$axes" '"x": {"dtype": "float32", "shape": ["rows", "cols"]}' \
    '"e = aten.linspace(-2.1, 2.9, 50)", "b = aten.bucketize.Tensor(x, e)",
    "y = aten.to.dtype(b, torch.int32)"'
"$BIN/quern-derive" -o tasks {sums,counts,whole,halves,bins}.json >derived
ok $? "five tasks are derived"

# A warp adds a row.
row() { # TYPE_IN TYPE_OUT SUM TERM RESULT
    cat <<END
//@ launch k<<<ceil_div(rows, 4), 128>>>(x, y, rows, cols)
#include <cuda_fp16.h>
extern "C" __global__ void k(const $1 *x, $2 *y, int rows, int cols)
{
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    $3 s = 0;
    for (int c = lane; c < cols; c += 32) s += ($3)$4;
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (lane == 0) y[row] = $5;
}
END
}
count() { # RESULT
    cat <<END
//@ launch k<<<cols, 512>>>(x, y, rows)
extern "C" __global__ void k(const long long *x, int *y, int rows)
{
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    for (int r = threadIdx.x; r < rows; r += 512)
        if (x[r] == blockIdx.x) atomicAdd(&s, 1);
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = $1;
}
END
}
each() { # RESULT
    cat <<END
//@ launch k<<<ceil_div(rows * cols, 256), 256>>>(x, y, rows * cols)
extern "C" __global__ void k(const float *x, int *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = $1;
}
END
}
bins() { # LAST: as eager PyTorch computes the edges
    cat <<END
//@ launch k<<<ceil_div(rows * cols, 256), 256>>>(x, y, rows * cols)
extern "C" __global__ void k(const float *x, int *y, int n)
{
    __shared__ float e[50];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, low = 0, high = 50;
    if (t < 50) e[t] = t < 25 ? -2.1f + 5.0f / 49 * t : $1 - 5.0f / 49 * (49 - t);
    __syncthreads();
    while (low < high && i < n) {
        int m = (low + high) / 2;
        if (e[m] >= x[i])
            high = m;
        else
            low = m + 1;
    }
    if (i < n) y[i] = low;
}
END
}
judged() { # NAME TASK OUTCOME; the kernel is on stdin
    cat >k.cu
    is "$1" "$("$BIN/quern-eval" --task "$2" --task-root tasks --device sim:h100 --seed "${4-1}" --json k.cu \
        2>err | json_field outcome)" "$3"
}
at='x[(long long)row * cols + c]'
judged "a sum of integers is right" sums ok < <(row int int int "$at" s)
judged "a sum of integers in float32 is not" sums wrong_result < <(row int int float "$at" '(int)s')
judged "nor is one of 24 bits" sums wrong_result < <(row int int int "$at" '(s << 8 >> 8)')
judged "a count of classes is right" counts ok < <(count s)
judged "a count of eight bits is not" counts wrong_result < <(count '(unsigned char)s')
judged "a conversion to integers is right" whole ok < <(each '(int)(x[i] * 10.0f)')
judged "one through 16 bits is not" whole wrong_result < <(each '(short)(x[i] * 10.0f)')
judged "a sum of halves is right" halves ok < <(row __half __half float "$at" '__float2half(s)')
judged "one that ends at 1000 is not" halves wrong_result \
    < <(row __half __half float "$at" '__float2half(fminf(fmaxf(s, -1000.0f), 1000.0f))')
for seed in 1 2 3; do judged "edges as eager has them, seed $seed" bins ok "$seed" < <(bins 2.9f); done
judged "edges that are off by 1e-4 are not right" bins wrong_result < <(bins 2.9003f)
done_testing
