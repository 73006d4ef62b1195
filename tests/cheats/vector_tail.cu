// Reads whole vectors up to the end, over it where the length is no multiple of four. The message names the buffer read.
// task: relu
// expect sim: out_of_bounds
// expect cuda: out_of_bounds | launch_error | wrong_result
// says sim: reads 16 bytes at offset 112 of input x, which has 124 bytes
//@ launch relu<<<ceil_div(n, 1024), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int first = blockIdx.x * 1024 + 4 * threadIdx.x;
    if (first >= n) return;
    float4 v = *(const float4 *)(x + first);
    *(float4 *)(y + first) = make_float4(fmaxf(v.x, 0), fmaxf(v.y, 0), fmaxf(v.z, 0), fmaxf(v.w, 0));
}
