// The elementwise kernel of an eager framework: a block takes 1024 elements, eight a thread in two 16-byte
// accesses that are both under way before the first is used; the last block takes what is left.
//@ launch gelu<<<ceil_div(n, 1024), 128>>>(x, y, n)
__device__ float gelu_one(float x)
{
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
}

extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    int first = blockIdx.x * 1024;
    if (first + 1024 <= n) {
        float4 v[2];
#pragma unroll
        for (int j = 0; j < 2; j++) v[j] = reinterpret_cast<const float4 *>(x + first)[threadIdx.x + j * 128];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            v[j].x = gelu_one(v[j].x);
            v[j].y = gelu_one(v[j].y);
            v[j].z = gelu_one(v[j].z);
            v[j].w = gelu_one(v[j].w);
            reinterpret_cast<float4 *>(y + first)[threadIdx.x + j * 128] = v[j];
        }
    } else {
        for (int i = first + threadIdx.x; i < n; i += 128) y[i] = gelu_one(x[i]);
    }
}
