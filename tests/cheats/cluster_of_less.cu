// Clusters that the grid is no multiple of: a device refuses the launch.
// task: relu
// expect: launch_error
// says sim: no multiple of its clusters
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void __cluster_dims__(4, 1, 1) relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
