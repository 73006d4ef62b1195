// The kernel of the middle range leaves the second element of each pair out.
// task: kernelbench/level1/k1_5_matrix_scalar_multiplication
// expect: wrong_result
//@ when rows * cols < 20000
//@ launch one<<<ceil_div(rows * cols, 256), 256>>>(A, mul, rows * cols)
//@ when rows * cols < 500000
//@ launch two<<<ceil_div(rows * cols, 512), 256>>>(A, mul, rows * cols)
//@ otherwise
//@ launch four<<<ceil_div(rows * cols, 1024), 256>>>(A, mul, rows * cols)
template <int N> __device__ void scale(const float *x, float *y, int n, float by)
{
    int from = (blockIdx.x * 256 + threadIdx.x) * N;
    for (int i = from; i < from + N && i < n; i++) y[i] = x[i] * by;
}
extern "C" __global__ void one(const float *x, float *y, int n) { scale<1>(x, y, n, 3.14f); }
extern "C" __global__ void two(const float *x, float *y, int n) { scale<1>(x, y, n, 3.14f); }
extern "C" __global__ void four(const float *x, float *y, int n) { scale<4>(x, y, n, 3.14f); }
