// Hopper collective: cp.async, wgmma, one producer and two consumers
// task: mm_bf16
// expect: ok
//@ launch my_gemm<<<dim3(ceil_div(m, 128), ceil_div(n, 128)), 384, 200000>>>(a, b, c, m, n, k)
#include <type_traits>
#include <utility>
#include <cutlass/cutlass.h>
// CUTLASS asks the runtime for the number of SMs; NVRTC has no runtime.
#define KernelHardwareInfo HardwareInfoOfCutlass
#include <cutlass/kernel_hardware_info.h>
#undef KernelHardwareInfo
namespace cutlass { struct KernelHardwareInfo : HardwareInfoOfCutlass {
    static int query_device_multiprocessor_count(int = 0) { return 132; }
}; }
#include <cute/tensor.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
using namespace cute;
using BF = cutlass::bfloat16_t;
using MyTile = Shape<_128, _128, _64>;
using Epi = typename cutlass::epilogue::collective::CollectiveBuilder<cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp,
    MyTile, Shape<_1, _1, _1>, cutlass::epilogue::collective::EpilogueTileAuto, float, float,
    void, cutlass::layout::RowMajor, 1, BF, cutlass::layout::RowMajor, 1, cutlass::epilogue::NoSmemWarpSpecialized>::CollectiveOp;
using Main = typename cutlass::gemm::collective::CollectiveBuilder<cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp,
    BF, cutlass::layout::RowMajor, 8, BF, cutlass::layout::ColumnMajor, 8, float, MyTile, Shape<_1, _1, _1>,
    cutlass::gemm::collective::StageCount<4>, cutlass::gemm::KernelCpAsyncWarpSpecializedCooperative>::CollectiveOp;
using K = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Main, Epi>;
extern "C" __global__ void __launch_bounds__(K::MaxThreadsPerBlock) my_gemm(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *c, int m, int n, int k)
{
    if (k % 8 != 0) {
        for (int i = threadIdx.x; i < 128 * 128; i += blockDim.x) {
            int r = blockIdx.x * 128 + i / 128, q = blockIdx.y * 128 + i % 128;
            if (r >= m || q >= n) continue;
            float s = 0;
            for (int l = 0; l < k; l++) s += __bfloat162float(a[(size_t)r * k + l]) * __bfloat162float(b[(size_t)q * k + l]);
            c[(size_t)r * n + q] = __float2bfloat16(s);
        }
        return;
    }
    extern __shared__ float4 raw[];
    static_assert(K::SharedStorageSize <= 200000, "shared");
    static_assert(K::MaxThreadsPerBlock == 384, "threads");
    typename K::Arguments args{cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k, 1},
        {(const BF *)a, {k, _1{}, 0}, (const BF *)b, {k, _1{}, 0}}, {{1.f, 0.f}, nullptr, {}, (BF *)c, {n, _1{}, 0}}};
    typename K::Params p = K::to_underlying_arguments(args, nullptr);
    K op;
    op(p, (char *)raw);
}
