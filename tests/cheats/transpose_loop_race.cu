// Blocks go on to another tile with no barrier, so that a warp may load it where another one still stores
// the last one. A GPU shows it rarely: the simulator runs blocks of the timed size, where a grid of 528
// has many tiles each.
// task: transpose
// expect: race
//@ launch transpose<<<min(ceil_div(rows, 32) * ceil_div(cols, 32), 528), dim3(32, 8)>>>(x, y, rows, cols)
extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols)
{
    __shared__ float t[32][33];
    int across = (cols + 31) / 32, tiles = across * ((rows + 31) / 32);
    for (int k = blockIdx.x; k < tiles; k += gridDim.x) {
        int r0 = k / across * 32, c0 = k % across * 32;
        for (int j = threadIdx.y; j < 32; j += 8)
            if (r0 + j < rows && c0 + threadIdx.x < cols)
                t[j][threadIdx.x] = x[(long long)(r0 + j) * cols + c0 + threadIdx.x];
        __syncthreads();
        for (int j = threadIdx.y; j < 32; j += 8)
            if (c0 + j < cols && r0 + threadIdx.x < rows)
                y[(long long)(c0 + j) * rows + r0 + threadIdx.x] = t[threadIdx.x][j];
    }
}
