/* Kernels that select the k-th element of a row. */

//@ order: op_order(v): bits that rise with v; all are set of NaN.
#ifndef OP_ORDER
#define OP_ORDER
__device__ unsigned op_order(float v)
{
    const unsigned bits = __float_as_uint(v == 0 ? 0.0f : v);
    return v == v ? bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u) : 0xffffffffu;
}
__device__ unsigned long long op_order(double v)
{
    const unsigned long long bits = __double_as_longlong(v == 0 ? 0.0 : v);
    const unsigned long long all = 0xffffffffffffffffULL;
    return v == v ? bits ^ (bits >> 63 ? all : 0x8000000000000000ULL) : all;
}
#endif

//@ select
    __shared__ int counts[4], found;
    const int ends = (n + blockDim.x - 1) / blockDim.x * blockDim.x;
    U wanted = 0, known = 0;
    if (threadIdx.x == 0) found = n;
    for (int digit = BITS - 2; digit >= LEAST; digit -= 2) {
        int own[4] = {0, 0, 0, 0};
        if (threadIdx.x < 4) counts[threadIdx.x] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < ends; i += blockDim.x) {
            const U v = i < n ? op_order((T)x[i * inner]) : 0;
            const bool has = i < n && (v & known) == wanted;
#pragma unroll
            for (int j = 0; j < 4; j++)
                own[j] += __popc(__ballot_sync(0xffffffffu, has && (v >> digit & 3) == j));
        }
        if (threadIdx.x % 32 == 0)
            for (int j = 0; j < 4; j++) atomicAdd(&counts[j], own[j]);
        __syncthreads();
        int j = 0, left[4];
        for (int m = 0; m < 4; m++) left[m] = counts[m];
        __syncthreads();
        while (j < 3 && left[j] <= k) k -= left[j++];
        wanted |= (U)j << digit, known |= (U)3 << digit;
    }
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        if ((op_order((T)x[i * inner]) & known) == wanted) atomicMin(&found, i);
    __syncthreads();
    if (threadIdx.x == 0) y0[row] = x[found * inner], y1[row] = found;

//@ nans
    int nans = 0;
    for (int i = threadIdx.x; i < @ends@; i += blockDim.x)
        nans += __syncthreads_count(i < n && (T)x[i * inner] != (T)x[i * inner]);
    if (nans) k = n - 1;
