// bf16 product of two factors by rows
// task: mm_bf16_nn
// expect: ok
//@ launch gemm<<<dim3(ceil_div(m, 64), ceil_div(n, 64)), 128, 40000>>>(a, b, c, m, n, k)
#include <cuda_bf16.h>
#include <cutlass/cutlass.h>
#include <cutlass/gemm/kernel/default_gemm.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>
using Element = cutlass::bfloat16_t;
using Row = cutlass::layout::RowMajor;
using LayoutB = cutlass::layout::RowMajor;
template <int ALIGN, int STAGES> using Kernel = typename cutlass::gemm::kernel::DefaultGemm<Element, Row, ALIGN, Element, LayoutB,
    ALIGN, Element, Row, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, cutlass::gemm::GemmShape<64, 64, 32>,
    cutlass::gemm::GemmShape<32, 32, 32>, cutlass::gemm::GemmShape<16, 8, 16>,
    cutlass::epilogue::thread::LinearCombination<Element, 1, float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<1>, STAGES, false, cutlass::arch::OpMultiplyAdd>::GemmKernel;
template <typename K> __device__ void run(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *c, int m, int n, int k)
{
    extern __shared__ float4 raw[];
    static_assert(sizeof(typename K::SharedStorage) <= 40000, "shared memory");
    typename K::Params p({m, n, k}, {(m + 63) / 64, (n + 63) / 64, 1}, {(Element *)a, Row(k)}, {(Element *)b, LayoutB(n)},
        {(Element *)c, Row(n)}, {(Element *)c, Row(n)}, {1.f, 0.f});
    K()(p, *reinterpret_cast<typename K::SharedStorage *>(raw));
}
extern "C" __global__ void __launch_bounds__(128) gemm(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *c, int m, int n, int k)
{
    if (k % 8 == 0 && n % 8 == 0)
        run<Kernel<8, 3>>(a, b, c, m, n, k);
    else
        run<Kernel<1, 2>>(a, b, c, m, n, k);
}
