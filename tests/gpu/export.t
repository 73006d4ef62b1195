#!/bin/bash
# Exported kernels on a GPU (QUERN_TEST_DEVICE, cuda:0 by default): the PyTorch package on other streams, in
# CUDA graphs, under torch.compile and outside of what was verified, its time beside its verdict's; and the C
# package. TAP on stdout.
# limit: 600
. "$(dirname "$0")/../shell/verdicts.sh"
DEVICE=${QUERN_TEST_DEVICE:-cuda:0}
need_gpu "$DEVICE"
[ "${DEVICE%%:*}" = cuda ] || skip_all 'needs a GPU'
export QUERN_LOG=quiet QUERN_CACHE=$tmp/cache CUDA_VISIBLE_DEVICES=${DEVICE#cuda:}
op=$root/tests/fixtures/op_lines

cat >rows.cu <<'END'
//@ launch row_sums<<<rows, 256>>>(x, y, cols)
extern "C" __global__ void row_sums(const float *x, float *y, int cols)
{
    __shared__ float s[8];
    const float4 *row = (const float4 *)(x + (size_t)blockIdx.x * cols);
    float sum = 0;
    if (cols % 4 == 0) {
        for (int c = threadIdx.x; c < cols / 4; c += 256) {
            float4 v = row[c];
            sum += v.x + v.y + v.z + v.w;
        }
    } else {
        for (int c = threadIdx.x; c < cols; c += 256) sum += x[(size_t)blockIdx.x * cols + c];
    }
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}
END
run quern-export --task row_sum --device cuda:0 --to torch --name fast_rows -o fast_rows rows.cu
ok $? 'a kernel that the GPU judged is exported'
run quern-export --task op_layer --task-root "$op/tasks" --device cuda:0 --to torch --name fast_layer \
    -o fast_layer "$op/fused_rest.cu"
ok $? 'a kernel beside an operator is exported'
run quern-export --task row_sum --device cuda:0 --to c --name c_rows -o c_rows rows.cu
ok $? "a C package of the GPU's kernel is written"

if python3 -c 'import torch' 2>/dev/null; then
  PYTHONPATH=$tmp python3 "$root/tests/gpu/export_torch.py" >torch.tap 2>torch.err
  rc=$?
  while IFS= read -r line; do
    case $line in
      'ok '*) ok 0 "${line#ok }" ;;
      'not ok '*) ok 1 "${line#not ok }" ;;
      *) echo "$line" ;;
    esac
  done <torch.tap
  [ $rc = 0 ]; ok $? 'the checks in PyTorch ran to their end'
  [ $rc = 0 ] || sed 's/^/# /' torch.err
  python3 fast_layer/test_package.py >out 2>err; ok $? "the package's own test passes"
  sed 's/^/# /' out
fi

cat >main.c <<'END'
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include "c_rows.h"
#define CHECK(x) do { int status_ = (x); if (status_) return printf("%s: %d\n", #x, status_), 1; } while (0)
int main(void)
{
    enum { rows = 1000, cols = 777 };
    static float x[rows * cols], y[rows];
    CUdevice d; CUcontext c; CUdeviceptr dx, dy; CUstream s;
    c_rows_kernels k;
    CHECK(cuInit(0)); CHECK(cuDeviceGet(&d, 0));
    CHECK(cuDevicePrimaryCtxRetain(&c, d)); CHECK(cuCtxSetCurrent(c));
    CHECK(cuMemAlloc(&dx, sizeof x)); CHECK(cuMemAlloc(&dy, sizeof y)); CHECK(cuStreamCreate(&s, 1));
    for (int i = 0; i < rows * cols; i++) x[i] = (float)(i % 7);
    CHECK(cuMemcpyHtoD(dx, x, sizeof x));
    CHECK(c_rows_load(&k));
    CHECK(c_rows_launch(&k, s, rows, cols, dx, dy, 0));
    CHECK(cuStreamSynchronize(s));
    CHECK(cuMemcpyDtoH(y, dy, sizeof y));
    for (int r = 0; r < rows; r++) {
        double sum = 0;
        for (int i = 0; i < cols; i++) sum += x[r * cols + i];
        if (y[r] != sum) return printf("row %d: %g, expected %g\n", r, y[r], sum), 1;
    }
    c_rows_unload(&k);
    return puts("right"), 0;
}
END
cuda=${CUDA_HOME:-/usr/local/cuda}
lib=$(ldconfig -p | sed -n 's/.*libcuda\.so\.1 .*=> //p' | head -1)
gcc -std=c11 -Wall -Werror -I"$cuda/include" -Ic_rows -o main main.c c_rows/c_rows.c "$lib" >out 2>err &&
    ./main >out 2>err
ok $? 'the C package gives the right sums'
done_testing
