// A persistent grid whose tiles are numbered in a snake, with stores by four and a tail.
// task: relu
// expect: ok
//@ launch relu<<<528, 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int tiles = (n + 4095) / 4096;
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        int row = t / 64, col = row % 2 ? 63 - t % 64 : t % 64, tile = row * 64 + col;
        int last = tiles % 64, full = tiles / 64;
        if (row == full && row % 2) tile = row * 64 + last - 1 - t % 64;
        for (int i = threadIdx.x * 4; i < 4096; i += 1024) {
            long long at = (long long)tile * 4096 + i;
            if (at + 4 <= n) {
                float4 v = *(const float4 *)(x + at);
                v.x = fmaxf(v.x, 0.0f), v.y = fmaxf(v.y, 0.0f), v.z = fmaxf(v.z, 0.0f), v.w = fmaxf(v.w, 0.0f);
                *(float4 *)(y + at) = v;
            } else {
                for (long long k = at; k < n && k < at + 4; k++) y[k] = fmaxf(x[k], 0.0f);
            }
        }
    }
}
