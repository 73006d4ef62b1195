// The halo of each tile but the first is read from the wrong columns.
// task: kernelbench/level1/k1_42_max_pooling_2d
// expect: wrong_result
//@ launch pool<<<dim3(ceil_div(width - 1, 32), ceil_div(height - 1, 32), batch * channels), dim3(32, 8)>>>(x, max_pool2d, height, width)
__global__ void pool(const float *x, float *y, int height, int width)
{
    __shared__ float tile[35][35];
    int tx = threadIdx.x, ty = threadIdx.y, c0 = blockIdx.x * 32, r0 = blockIdx.y * 32;
    long long plane = blockIdx.z;
    const float *in = x + plane * height * width;
    for (int r = ty; r < 35; r += 8)
        for (int c = tx; c < 35; c += 32) {
            int gr = r0 + r - 1, gc = c0 + c - 1 - (c >= 33 ? 3 : 0);
            tile[r][c] = gr >= 0 && gr < height && gc >= 0 && gc < width ? in[gr * width + gc] : -INFINITY;
        }
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        int lr = ty + 8 * k, r = r0 + lr, c = c0 + tx;
        if (r >= height - 1 || c >= width - 1) continue;
        float m = -INFINITY;
        for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) m = fmaxf(m, tile[lr + i][tx + j]);
        y[(plane * (height - 1) + r) * (width - 1) + c] = m;
    }
}
