// A cluster's interface where every block is one: its barrier, and its shared memory by rank.
// task: row_sum
// expect: ok
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
//@ launch row_sum<<<rows, 128>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float part[128];
    cg::cluster_group cluster = cg::this_cluster();
    float sum = 0;
    for (int c = threadIdx.x; c < cols; c += 128) sum += x[(long long)blockIdx.x * cols + c];
    part[threadIdx.x] = sum;
    cluster.sync();
    if (threadIdx.x) return;
    for (unsigned b = 0; b < cluster.num_blocks(); b++) {
        const float *of = cluster.map_shared_rank(part, b);
        for (int i = b ? 0 : 1; i < 128; i++) sum += of[i];
    }
    y[blockIdx.x] = sum;
}
