// CuTe tensors and a SIMT product over them
// task: mm_f32
// expect: ok
//@ launch gemm<<<dim3(ceil_div(m, 32), ceil_div(n, 32)), 256>>>(a, b, c, m, n, k)
#include <cute/tensor.hpp>
using namespace cute;
extern "C" __global__ void gemm(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float sa[32 * 8], sb[32 * 8];
    Tensor A = make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(k, _1{}));
    Tensor B = make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(_1{}, n));
    Tensor C = make_tensor(make_gmem_ptr(c), make_shape(m, n), make_stride(n, _1{}));
    Tensor SA = make_tensor(make_smem_ptr(sa), Layout<Shape<_32, _8>>{}), SB = make_tensor(make_smem_ptr(sb), Layout<Shape<_32, _8>>{});
    auto threads = Layout<Shape<_16, _16>>{};
    Tensor ta = local_partition(SA, threads, threadIdx.x, Step<_1, X>{}), tb = local_partition(SB, threads, threadIdx.x, Step<X, _1>{});
    Tensor acc = make_tensor<float>(Layout<Shape<_2, _2>>{});
    clear(acc);
    int m0 = blockIdx.x * 32, n0 = blockIdx.y * 32, r = threadIdx.x % 32, q = threadIdx.x / 32;
    for (int k0 = 0; k0 < k; k0 += 8) {
        SA(r, q) = m0 + r < m && k0 + q < k ? A(m0 + r, k0 + q) : 0.0f;
        SB(r, q) = n0 + r < n && k0 + q < k ? B(n0 + r, k0 + q) : 0.0f;
        __syncthreads();
        cute::gemm(ta, tb, acc);
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            int row = m0 + threadIdx.x % 16 + 16 * i, col = n0 + threadIdx.x / 16 + 16 * j;
            if (row < m && col < n) C(row, col) = acc(i, j);
        }
}
