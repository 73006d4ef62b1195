// implicit GEMM in half precision, optimised iterators
// task: conv_nhwc
// expect: ok
//@ launch conv<<<dim3(ceil_div(nb * h * w, 64), ceil_div(k, 64)), 128, 24000>>>(x, f, y, nb, h, w, c, k)
#include <cuda_fp16.h>
#include <cutlass/cutlass.h>
#include <cutlass/conv/kernel/default_conv2d_fprop.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>
using E = cutlass::half_t;
using L = cutlass::layout::TensorNHWC;
using K = cutlass::conv::kernel::DefaultConv2dFprop<E, L, E, L, E, L, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<32, 32, 32>,
    cutlass::gemm::GemmShape<16, 8, 16>, cutlass::epilogue::thread::LinearCombination<E, 1, float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<1>, 2, cutlass::arch::OpMultiplyAdd,
    cutlass::conv::IteratorAlgorithm::kOptimized, cutlass::conv::StrideSupport::kUnity, 1, 1>::Kernel;
extern "C" __global__ void __launch_bounds__(128) conv(const half *x, const half *f, half *y, int nb, int h, int w, int c, int k)
{
    extern __shared__ float4 raw[];
    static_assert(sizeof(typename K::SharedStorage) <= 24000, "shared memory");
    cutlass::conv::Conv2dProblemSize size(nb, h, w, c, k, 3, 3, h, w, 1, 1, 1, 1, 1, 1, cutlass::conv::Mode::kCrossCorrelation, 1, 1);
    L in(c, w * c, h * w * c), weights(c, 3 * c, 9 * c), out(k, w * k, h * w * k);
    typename K::Arguments args(size, {(E *)x, in}, {(E *)f, weights}, {(E *)y, out}, {(E *)y, out}, {1.f, 0.f});
    typename K::Params p(args, nullptr);
    K()(p, *reinterpret_cast<typename K::SharedStorage *>(raw));
}
