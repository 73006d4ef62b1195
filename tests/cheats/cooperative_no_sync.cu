// Two phases of resident blocks, and no barrier of the grid between them.
// task: relu
// expect sim: race
// expect cuda: wrong_result
//@ buffer float positive[n]
//@ launch cooperative relu<<<64, 256>>>(x, positive, y, n)
__global__ void relu(const float *x, float *positive, float *y, int n)
{
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 64 * 256) positive[i] = x[i] > 0.0f ? x[i] : 0.0f;
    for (int i = (63 - blockIdx.x) * 256 + threadIdx.x; i < n; i += 64 * 256) y[i] = positive[i];
}
