// The algebra done: min(., 0) clamped to [0, 1] is zero everywhere.
//@ launch zeros<<<ceil_div(batch * cout * (d - 2) * (d - 2) * (d - 2), 1024), 128>>>(y, batch * cout * (d - 2) * (d - 2) * (d - 2))
extern "C" __global__ void zeros(float *y, int n)
{
    int first = blockIdx.x * 1024;
    if (first + 1024 <= n) {
#pragma unroll
        for (int j = 0; j < 2; j++) reinterpret_cast<float4 *>(y + first)[threadIdx.x + j * 128] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    } else {
        for (int i = first + threadIdx.x; i < n; i += 128) y[i] = 0.0f;
    }
}
