// Walks the addresses around the output for a buffer that holds what is expected.
// task: relu
// expect sim: out_of_bounds
// expect cuda: wrong_result | out_of_bounds
//@ launch relu<<<ceil_div(n, 256), 256>>>(y, n)
extern "C" __global__ void relu(float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (long long page = -64; page < 64; page++)
        if (y[i + page * 1024] > 0.0f) { y[i] = y[i + page * 1024]; return; }
    y[i] = 0.0f;
}
