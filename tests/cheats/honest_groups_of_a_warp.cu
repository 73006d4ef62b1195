// Groups of a warp that meet, part, and go through loops of different lengths: each has its own mask.
// task: relu
// expect: ok
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
template <int N> __device__ bool tiles_agree(int lane, float v)
{
    auto t = cg::tiled_partition<N>(cg::this_thread_block());
    int positive = 0, base = lane & ~(N - 1), same, has_zero = lane % 3 == 0;
    for (int j = 0; j < N; j++) positive += t.shfl(v, j) > 0;
    return __popc(t.ballot(v > 0)) == positive && t.any(v > 0) == (positive > 0) &&
           t.all(v > 0) == (positive == N) && __popc(t.match_any(lane & 1)) == (N + 1) / 2 &&
           t.match_all(base, same) && same && t.any(has_zero) >= has_zero &&
           cg::reduce(t, lane, cg::greater<int>()) == base + N - 1;
}
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x & 31;
    float v = i < n ? x[i] : 0;
    bool good = tiles_agree<16>(lane, v) & tiles_agree<8>(lane, v) & tiles_agree<4>(lane, v) &
                tiles_agree<2>(lane, v);
    auto third = cg::labeled_partition(cg::tiled_partition<32>(cg::this_thread_block()), lane % 3);
    good &= cg::reduce(third, 1, cg::plus<int>()) == (lane % 3 == 2 ? 10 : 11);
    unsigned own, tile = 0xffu << (lane & 24), odd = 0;
    if (v > 0) {
        auto g = cg::coalesced_threads();
        good &= g.all(v > 0) && g.size() == __popc(own = __activemask());
    } else {
        own = __activemask();
    }
    good &= __ballot_sync(own, v > 0) == (v > 0 ? own : 0) && __reduce_add_sync(own, 1) == __popc(own);
    for (int trip = 0; trip <= lane / 8; trip++) odd = __ballot_sync(tile, lane & 1);
    good &= odd == (tile & 0xaaaaaaaau);
    if (i < n) y[i] = good ? (v > 0 ? v : 0) : -1;
}
