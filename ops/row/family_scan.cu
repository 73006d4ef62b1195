/* Kernels of cumulative sums, products and logarithms of sums of exponentials, in the parts that
 * family_scan.c puts together. */

//@ functions
#ifndef OP_SCAN
#define OP_SCAN
struct op_scan_sum {
    template <typename T> __device__ T operator()(T a, T b) { return a + b; }
};
struct op_scan_product {
    template <typename T> __device__ T operator()(T a, T b) { return a * b; }
};
struct op_scan_log {
    template <typename T> __device__ T operator()(T a, T b)
    {
        const T most = a > b || a != a ? a : b, least = a > b || a != a ? b : a;
        return most == least ? most + log((T)2) : most + log1p(exp(least - most));
    }
};
#endif

//@ across: a thread a row
    const index r = blockIdx.x * (index)128 + threadIdx.x;
    if (r >= @rows@) return;
    index i = r / @inner@ * @row_step@ + r % @inner@;
    T v = NONE;
#pragma unroll 4
    for (index k = 0; k < @n@; k++, i += @inner@) {
        v = f(v, @x@);
        y0[i] = (@stored@)v;
    }

//@ totals
    __shared__ T shared[32];
    const index first = blockIdx.x * (index)@n@;
    const index from = blockIdx.y * (index)@part@;
    const index to = from + @part@ < @n@ ? from + @part@ : @n@;
    T v = NONE;
#pragma unroll 4
    for (index k = from + threadIdx.x; k < to; k += @threads@) {
        const index i = first + k;
        v = f(v, @x@);
    }
    v = op_block_reduce(v, f, shared);
    if (threadIdx.x == 0) t@t@[blockIdx.x * (index)@parts@ + blockIdx.y] = v;

//@ carry
    for (int k = threadIdx.x; k < blockIdx.y; k += @threads@)
        carry = f(carry, t@t@[blockIdx.x * (index)@parts@ + k]);
    carry = op_block_reduce(carry, f, shared);

//@ tile: a warp scans 128 elements, four rows of lanes
    for (index tile = from; tile < to; tile += @tile@) {
        const index at = tile + warp * 128 + lane;
        T v[4], total = NONE, before = carry;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const index i = first + at + k * 32;
            v[k] = NONE;
            if (at + k * 32 < to) v[k] = @x@;
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
#pragma unroll @unroll@
            for (int d = 1; d < 32; d *= 2) {
                const T o = __shfl_up_sync(0xffffffffu, v[k], d);
                if (lane >= d) v[k] = f(o, v[k]);
            }
            v[k] = f(total, v[k]);
            total = __shfl_sync(0xffffffffu, v[k], 31);
        }
        __syncthreads();
        if (lane == 0) shared[warp] = total;
        __syncthreads();
#pragma unroll @unroll@
        for (int w = 0; w < @warps@; w++) {
            if (w < warp) before = f(before, shared[w]);
            carry = f(carry, shared[w]);
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (at + k * 32 < to)
                y0[first + at + k * 32] = (@stored@)f(before, v[k]);
    }

//@ parts
    __shared__ T shared[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const index first = blockIdx.x * (index)@n@;
    const index from = blockIdx.y * (index)@part@;
    const index to = from + @part@ < @n@ ? from + @part@ : @n@;
    T carry = NONE;

//@ rounds: in round m, each second run of 2^m elements of `own` takes the last element of the run before
            __syncthreads();
            for (unsigned m = 0; m <= (unsigned)power; m++) {
                if (row < rows) {
                    const unsigned run = 1u << m;
                    const unsigned first = (threadIdx.x >> m) << (m + 1) | run;
                    const unsigned to = first + threadIdx.x % run;
                    own[to] = f(own[first - 1], own[to]);
                }
                __syncthreads();
            }

//@ rows
    __shared__ T shared[@shared@];
    const unsigned width = 1u << power, lane = threadIdx.x;
    T *own = shared + 2 * width * threadIdx.y;
    for (unsigned block = blockIdx.x * blockDim.y; block < (unsigned)rows;
         block += blockDim.y * gridDim.x) {
        const unsigned row = block + threadIdx.y;
        const @type@ *in = @place@ + row * (unsigned)n;
        @stored@ *to_row = y0 + row * (unsigned)n;
        T carry = NONE;
        for (unsigned at = 0; at < (unsigned)n; at += 2 * width) {
            const unsigned i = at + lane, k = at + width + lane;
            if (row < rows) {
                own[lane] = i < n ? (T)@cast@in[i] : NONE;
                own[width + lane] = k < n ? (T)@cast@in[k] : NONE;
                if (lane == 0) own[0] = f(carry, own[0]);
            }

//@ rows_end
            if (row < rows) {
                if (i < n) to_row[i] = (@stored@)own[lane];
                if (k < n) to_row[k] = (@stored@)own[width + lane];
                carry = own[2 * width - 1];
            }
            __syncthreads();
        }
    }
