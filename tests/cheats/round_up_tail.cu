// Writes whole vectors where the tail has less: right, and over the next buffer.
// task: relu
// expect: out_of_bounds
//@ launch relu<<<ceil_div(n, 1024), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i >= n) return;
    float v[4];
    for (int k = 0; k < 4; k++) v[k] = i + k < n ? fmaxf(x[i + k], 0.0f) : 0.0f;
    *(float4 *)(y + i) = make_float4(v[0], v[1], v[2], v[3]);
}
