// SIMT products of a batch
// task: bmm_f32
// expect: ok
//@ launch gemm<<<dim3(ceil_div(m, 64), ceil_div(n, 64), b), 128, 12000>>>(x, z, y, b, m, n, k)
#include <cutlass/cutlass.h>
#include <cutlass/gemm/kernel/default_gemm.h>
#include <cutlass/gemm/kernel/gemm_batched.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>
using Row = cutlass::layout::RowMajor;
using Base = cutlass::gemm::kernel::DefaultGemm<float, Row, 1, float, Row, 1, float, Row, float, cutlass::arch::OpClassSimt,
    cutlass::arch::Sm80, cutlass::gemm::GemmShape<64, 64, 8>, cutlass::gemm::GemmShape<32, 32, 8>, cutlass::gemm::GemmShape<1, 1, 1>,
    cutlass::epilogue::thread::LinearCombination<float, 1, float, float>,
    cutlass::gemm::threadblock::GemmBatchedIdentityThreadblockSwizzle, 2, false, cutlass::arch::OpMultiplyAdd>::GemmKernel;
using K = cutlass::gemm::kernel::GemmBatched<Base::Mma, Base::Epilogue, cutlass::gemm::threadblock::GemmBatchedIdentityThreadblockSwizzle>;
extern "C" __global__ void __launch_bounds__(128) gemm(const float *x, const float *z, float *y, int batch, int m, int n, int k)
{
    extern __shared__ float4 raw[];
    static_assert(sizeof(typename K::SharedStorage) <= 12000, "shared memory");
    typename K::Params p({m, n, k}, {(m + 63) / 64, (n + 63) / 64, batch}, {(float *)x, Row(k)}, (int64_t)m * k, {(float *)z, Row(n)},
        (int64_t)k * n, {y, Row(n)}, (int64_t)m * n, {y, Row(n)}, (int64_t)m * n, {1.f, 0.f}, batch);
    K()(p, *reinterpret_cast<typename K::SharedStorage *>(raw));
}
