// The clamp leaves only zeros, so only zeros are written. Right, by algebra: the task is tagged degenerate and counts in no mean.
// task: conv3d_norm_min_clamp
// expect: ok
//@ launch zero<<<min(ceil_div(batch * cout * (d - 2) * (d - 2) * (d - 2), 256), 2048), 256>>>(y, batch * cout * (d - 2) * (d - 2) * (d - 2))
extern "C" __global__ void zero(float *y, int n)
{
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) y[i] = 0.0f;
}
