/* Kernels of running extremes and their places. */

//@ functions: op_extreme_N: what stays of an element and one behind it.
#ifndef OP_EXTREME
#define OP_EXTREME
template <int LEAST, typename T>
__device__ void op_extreme(T before, long long place, T &v, long long &own)
{
    const bool better = LEAST ? v <= before : v >= before;
    if (v == v && (before != before || !better)) v = before, own = place;
}
#endif

//@ along
    for (long long first = blockIdx.x * 32LL; first < rows; first += gridDim.x * 32LL) {
        const long long row = first + threadIdx.y;
        T carry = NONE, *v = values[threadIdx.y];
        long long last = 0, *at = places[threadIdx.y];
        for (int column = 0; column < n; column += 32) {
            if (row < rows) {
                for (int k = lane; k < 32; k += 16) {
                    const int i = column + k;
                    v[k] = i < n ? (T)x[row * n + i] : NONE;
                    at[k] = i;
                }
                if (lane == 0) op_extreme<LEAST>(carry, last, v[0], at[0]);
            }
            __syncthreads();
            for (int s = 16, d = 1; s >= 1; s /= 2, d *= 2) {
                const int i = (2 * lane + 1) * d - 1;
                if (row < rows && lane < s) op_extreme<LEAST>(v[i], at[i], v[i + d], at[i + d]);
                __syncthreads();
            }
            for (int s = 2, d = 8; d >= 1; s *= 2, d /= 2) {
                const int i = 2 * (lane + 1) * d - 1;
                if (row < rows && lane < s - 1)
                    op_extreme<LEAST>(v[i], at[i], v[i + d], at[i + d]);
                __syncthreads();
            }
            if (row < rows) {
                for (int k = lane; k < 32; k += 16)
                    if (column + k < n)
                        y0[row * n + column + k] = (S)v[k], y1[row * n + column + k] = at[k];
                carry = v[31], last = at[31];
            }
            __syncthreads();
        }
    }

//@ across
    const long long in_row = blockIdx.y * (long long)blockDim.x + threadIdx.x;
    if (in_row >= inner) return;
    for (long long row = blockIdx.x; row < rows / inner; row += gridDim.x) {
        long long i = row * n * inner + in_row, place = 0;
        T best = NONE;
        for (long long k = 0; k < n; k++, i += inner) {
            T v = (T)x[i];
            long long own = k;
            op_extreme<LEAST>(best, place, v, own);
            best = v, place = own;
            y0[i] = (S)best, y1[i] = place;
        }
    }
