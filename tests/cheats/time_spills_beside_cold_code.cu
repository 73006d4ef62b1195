// Code that never runs beside code that spills: the spills cost as much as without it, 30 ms.
// task: matmul
// expect: ok
// most sim: 0.015
//@ launch mm<<<dim3(ceil_div(n, 128), ceil_div(m, 128)), 256>>>(a, b, c, m, n, k)
extern "C" __global__ void __launch_bounds__(256, 8) mm(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n, int k)
{
    if (m < 0) { // never
        float z = n;
#pragma unroll
        for (int q = 0; q < 400; q++) z = z * (float)(q + k) + a[0] * q;
        c[0] = z; return;
    }

    __shared__ __align__(16) float as[2][8][132], bs[2][8][128];
    int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    int row0 = (int)blockIdx.y * 128, col0 = (int)blockIdx.x * 128;
    // a warp has 32 x 64 outputs, a thread 8 x 8 in four quarters
    int wm = warp % 4 * 32 + lane / 8 * 4, wn = warp / 4 * 64 + lane % 8 * 4;
    float sum[8][8] = {};
    bool mine = row0 + warp % 4 * 32 < m && col0 + warp / 4 * 64 < n;
    float ra[4], rb[4];
    auto load = [&](int t) {
        int r = row0 + tid / 2, p = t + tid % 2 * 4, q = t + warp, v = col0 + lane * 4;
        if (r >= 0 && r < m && p + 3 < k && k % 4 == 0) {
            float4 x = *(const float4 *)(a + (long long)r * k + p);
            ra[0] = x.x, ra[1] = x.y, ra[2] = x.z, ra[3] = x.w;
        } else
            for (int i = 0; i < 4; i++) ra[i] = r >= 0 && r < m && p + i < k ? a[(long long)r * k + p + i] : 0.0f;
        if (q < k && v >= 0 && v + 3 < n && n % 4 == 0) {
            float4 x = *(const float4 *)(b + (long long)q * n + v);
            rb[0] = x.x, rb[1] = x.y, rb[2] = x.z, rb[3] = x.w;
        } else
            for (int i = 0; i < 4; i++) rb[i] = q < k && v + i >= 0 && v + i < n ? b[(long long)q * n + v + i] : 0.0f;
    };
    auto store = [&](int s) {
        for (int i = 0; i < 4; i++) as[s][tid % 2 * 4 + i][tid / 2] = ra[i];
        *(float4 *)&bs[s][warp][lane * 4] = make_float4(rb[0], rb[1], rb[2], rb[3]);
    };
    load(0);
    store(0);
    __syncthreads();
    int s = 0;
    for (int t = 0; t < k; t += 8, s ^= 1) {
        bool more = t + 8 < k;
        if (more) load(t + 8);
        if (mine)
#pragma unroll
            for (int p = 0; p < 8; p++) {
                float4 x0 = *(float4 *)&as[s][p][wm], x1 = *(float4 *)&as[s][p][wm + 16];
                float4 y0 = *(float4 *)&bs[s][p][wn], y1 = *(float4 *)&bs[s][p][wn + 32];
                float x[8] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w}, y[8] = {y0.x, y0.y, y0.z, y0.w, y1.x, y1.y, y1.z, y1.w};
#pragma unroll
                for (int i = 0; i < 8; i++)
#pragma unroll
                    for (int j = 0; j < 8; j++) sum[i][j] += x[i] * y[j];
            }
        if (more) store(s ^ 1);
        __syncthreads();
    }
    if (mine)
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 8; j++) {
                int r = row0 + wm + i % 4 + i / 4 * 16, q = col0 + wn + j % 4 + j / 4 * 32;
                if (r >= 0 && r < m && q >= 0 && q < n) c[(long long)r * n + q] = sum[i][j];
            }
}
