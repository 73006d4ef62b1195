// half-precision product whose epilogue adds a row and takes the maximum with 0
// task: mm_f16_relu
// expect: ok
//@ launch gemm<<<dim3(ceil_div(m, 64), ceil_div(n, 64)), 128, 24000>>>(a, b, bias, c, m, n, k)
#include <cuda_fp16.h>
#include <cutlass/cutlass.h>
#include <cutlass/gemm/kernel/default_gemm.h>
#include <cutlass/epilogue/thread/linear_combination_relu.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>
using H = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using Col = cutlass::layout::ColumnMajor;
using K = cutlass::gemm::kernel::DefaultGemm<H, Row, 1, H, Col, 1, H, Row, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<32, 32, 32>, cutlass::gemm::GemmShape<16, 8, 16>,
    cutlass::epilogue::thread::LinearCombinationRelu<H, 1, float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<1>, 2, false, cutlass::arch::OpMultiplyAdd>::GemmKernel;
extern "C" __global__ void __launch_bounds__(128) gemm(const half *a, const half *b, const half *bias, half *c, int m, int n, int k)
{
    extern __shared__ float4 raw[];
    static_assert(sizeof(typename K::SharedStorage) <= 24000, "shared memory");
    typename K::Params p({m, n, k}, {(m + 63) / 64, (n + 63) / 64, 1}, {(H *)a, Row(k)}, {(H *)b, Col(k)}, {(H *)bias, Row(0)},
        {(H *)c, Row(n)}, {1.f, 1.f});
    K()(p, *reinterpret_cast<typename K::SharedStorage *>(raw));
}
