// SIMT product, four stages of cp.async
// task: mm_f32
// expect: ok
//@ launch gemm<<<dim3(ceil_div(m, 128), ceil_div(n, 128)), 256, 40000>>>(a, b, c, m, n, k)
#include <cutlass/cutlass.h>
#include <cutlass/gemm/kernel/default_gemm.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>
using Element = float;
using Row = cutlass::layout::RowMajor;
using LayoutB = cutlass::layout::RowMajor;
template <int ALIGN, int STAGES> using Kernel = typename cutlass::gemm::kernel::DefaultGemm<Element, Row, ALIGN, Element, LayoutB,
    ALIGN, Element, Row, float, cutlass::arch::OpClassSimt, cutlass::arch::Sm80, cutlass::gemm::GemmShape<128, 128, 8>,
    cutlass::gemm::GemmShape<32, 64, 8>, cutlass::gemm::GemmShape<1, 1, 1>,
    cutlass::epilogue::thread::LinearCombination<Element, 1, float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<1>, STAGES, false, cutlass::arch::OpMultiplyAdd>::GemmKernel;
template <typename K> __device__ void run(const float *a, const float *b, float *c, int m, int n, int k)
{
    extern __shared__ float4 raw[];
    static_assert(sizeof(typename K::SharedStorage) <= 40000, "shared memory");
    typename K::Params p({m, n, k}, {(m + 127) / 128, (n + 127) / 128, 1}, {(Element *)a, Row(k)}, {(Element *)b, LayoutB(n)},
        {(Element *)c, Row(n)}, {(Element *)c, Row(n)}, {1.f, 0.f});
    K()(p, *reinterpret_cast<typename K::SharedStorage *>(raw));
}
extern "C" __global__ void __launch_bounds__(256) gemm(const float *a, const float *b, float *c, int m, int n, int k)
{
    run<Kernel<1, 4>>(a, b, c, m, n, k);
}
