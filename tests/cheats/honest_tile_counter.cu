// Tiles are handed out by a counter; each block takes them until there are none.
// task: transpose
// expect: ok
//@ buffer unsigned counter[1]
//@ launch clear<<<1, 1>>>(counter)
//@ launch transpose<<<132, dim3(32, 8)>>>(x, y, counter, rows, cols)
extern "C" __global__ void clear(unsigned *counter) { *counter = 0; }
extern "C" __global__ void transpose(const float *x, float *y, unsigned *counter, int rows, int cols)
{
    __shared__ float tile[32][33];
    __shared__ unsigned taken;
    unsigned across = (cols + 31) / 32, tiles = across * ((rows + 31) / 32);
    for (;;) {
        __syncthreads();
        if (threadIdx.x + threadIdx.y == 0) taken = atomicAdd(counter, 1u);
        __syncthreads();
        if (taken >= tiles) break;
        int r0 = taken / across * 32, c0 = taken % across * 32;
        for (int k = threadIdx.y; k < 32; k += 8)
            if (r0 + k < rows && c0 + threadIdx.x < cols) tile[k][threadIdx.x] = x[(r0 + k) * cols + c0 + threadIdx.x];
        __syncthreads();
        for (int k = threadIdx.y; k < 32; k += 8)
            if (c0 + k < cols && r0 + threadIdx.x < rows) y[(c0 + k) * rows + r0 + threadIdx.x] = tile[threadIdx.x][k];
    }
}
