// half-precision product, two stages through registers
// task: mm_f16
// expect: ok
//@ launch gemm<<<dim3(ceil_div(m, 64), ceil_div(n, 64)), 128, 24000>>>(a, b, c, m, n, k)
#include <cuda_fp16.h>
#include <cutlass/cutlass.h>
#include <cutlass/gemm/kernel/default_gemm.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>
using Element = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using LayoutB = cutlass::layout::ColumnMajor;
template <int ALIGN, int STAGES> using Kernel = typename cutlass::gemm::kernel::DefaultGemm<Element, Row, ALIGN, Element, LayoutB,
    ALIGN, Element, Row, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, cutlass::gemm::GemmShape<64, 64, 32>,
    cutlass::gemm::GemmShape<32, 32, 32>, cutlass::gemm::GemmShape<16, 8, 16>,
    cutlass::epilogue::thread::LinearCombination<Element, 1, float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<1>, STAGES, false, cutlass::arch::OpMultiplyAdd>::GemmKernel;
template <typename K> __device__ void run(const half *a, const half *b, half *c, int m, int n, int k)
{
    extern __shared__ float4 raw[];
    static_assert(sizeof(typename K::SharedStorage) <= 24000, "shared memory");
    typename K::Params p({m, n, k}, {(m + 63) / 64, (n + 63) / 64, 1}, {(Element *)a, Row(k)}, {(Element *)b, LayoutB(k)},
        {(Element *)c, Row(n)}, {(Element *)c, Row(n)}, {1.f, 0.f});
    K()(p, *reinterpret_cast<typename K::SharedStorage *>(raw));
}
extern "C" __global__ void __launch_bounds__(128) gemm(const half *a, const half *b, half *c, int m, int n, int k)
{
    run<Kernel<1, 2>>(a, b, c, m, n, k);
}
