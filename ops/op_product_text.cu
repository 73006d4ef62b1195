/* The kernel of tiled products. */

//@ tiles
    constexpr int R = @rows_share@, C = @columns_share@;
    __shared__ @type@ sa[16][16 * R + 1], sb[16][16 * C + 1];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int column0 = blockIdx.x % @across@ * (16 * C);
    const int row0 = blockIdx.x / @across@ % @down@ * (16 * R);
    const int batch = blockIdx.x / @blocks@;

//@ sums
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++)
#pragma unroll
            for (int i = 0; i < R; i++)
#pragma unroll
                for (int j = 0; j < C; j++)
                    acc[i][j] += sa[k][ty + 16 * i] * sb[k][tx + 16 * j];
        __syncthreads();
    }
#pragma unroll
    for (int n = 0; n < R * C; n++) {
        const int i = row0 + ty + 16 * (n / C), j = column0 + tx + 16 * (n % C);
        if (i < @rows@ && j < @columns@) \
