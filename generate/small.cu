//@ small
// Products of small matrices, in float32. A block of ROWS * COLUMNS / 16 threads makes a tile of that many
// sums; a thread has 4 rows and 4 columns. Steps are in elements.
struct Small {
    int rows, columns;
    long long depth, a_row, a_depth, b_column, b_depth, c_row, c_column;
};
enum { SMALL_TERMS = 32 };

// One factor: element k of a line is p[line * line_step + k * step].
struct SmallFactor {
    const float *p;
    long long line_step, step;
    int lines;
};

// 1: terms, if K, or lines lie in one piece, in fours.
template <bool K> __device__ __forceinline__ bool small_quads(const SmallFactor &f, long long depth)
{
    const long long apart = K ? f.line_step : f.step, near = K ? f.step : f.line_step;
    return near == 1 && ((apart | (K ? depth : f.lines)) & 3) == 0 && (size_t)f.p % 16 == 0;
}

// SMALL_TERMS terms of LINES lines; beyond the factor there are zeros. No two lanes meet in a bank.
template <bool K, int LINES, int THREADS>
__device__ __forceinline__ void small_fetch(float (*to)[LINES + 4], const SmallFactor &f,
                                            long long depth, bool quads)
{
    const int terms = depth < SMALL_TERMS ? (int)depth : SMALL_TERMS;
    if (quads) {
#pragma unroll
        for (int i = threadIdx.x; i < LINES * SMALL_TERMS / 4; i += THREADS) {
            const int k = K ? i % 2 * 4 + i / (2 * LINES) * 8 : i / (LINES / 4);
            const int line = K ? i / 2 % LINES : i % (LINES / 4) * 4;
            float4 v = make_float4(0, 0, 0, 0);
            if (line < f.lines && k < terms)
                v = *(const float4 *)(f.p + line * f.line_step + k * f.step);
            if (K)
                to[k][line] = v.x, to[k + 1][line] = v.y, to[k + 2][line] = v.z,
                to[k + 3][line] = v.w;
            else
                *(float4 *)&to[k][line] = v;
        }
        return;
    }
#pragma unroll 4
    for (int i = threadIdx.x; i < LINES * SMALL_TERMS; i += THREADS) {
        const int k = K ? i % 8 + i / (8 * LINES) * 8 : i / LINES;
        const int line = K ? i / 8 % LINES : i % LINES;
        to[k][line] = line < f.lines && k < terms ? f.p[line * f.line_step + k * f.step] : 0.f;
    }
}

template <bool AK, bool BK, int ROWS, int COLUMNS>
__device__ __forceinline__ void small_product(const float *a, const float *b, float *c,
                                              const Small s, int tile)
{
    constexpr int THREADS = ROWS * COLUMNS / 16, WIDE = COLUMNS / 4;
    __shared__ __align__(16) float left[SMALL_TERMS][ROWS + 4];
    __shared__ __align__(16) float right[SMALL_TERMS][COLUMNS + 4];
    const int across = (s.columns + COLUMNS - 1) / COLUMNS, top = tile / across * ROWS,
              first = tile % across * COLUMNS;
    const int row = threadIdx.x / WIDE * 4, column = threadIdx.x % WIDE * 4;
    float sum[4][4] = {};
    SmallFactor x = {a + top * s.a_row, s.a_row, s.a_depth, s.rows - top},
                y = {b + first * s.b_column, s.b_column, s.b_depth, s.columns - first};
    const bool quads_x = small_quads<AK>(x, s.depth), quads_y = small_quads<BK>(y, s.depth);
    for (long long k = 0; k < s.depth; k += SMALL_TERMS) {
        small_fetch<AK, ROWS, THREADS>(left, x, s.depth - k, quads_x);
        small_fetch<BK, COLUMNS, THREADS>(right, y, s.depth - k, quads_y);
        x.p += SMALL_TERMS * s.a_depth;
        y.p += SMALL_TERMS * s.b_depth;
        __syncthreads();
#pragma unroll
        for (int e = 0; e < SMALL_TERMS; e++) {
            const float4 u = *(const float4 *)&left[e][row], v = *(const float4 *)&right[e][column];
            const float p[4] = {u.x, u.y, u.z, u.w}, q[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += p[i] * q[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int r = top + row + i, at = first + column;
        float *to = c + r * s.c_row + at * s.c_column;
        if (r >= s.rows) break;
        if (s.c_column == 1 && at + 4 <= s.columns && (size_t)to % 16 == 0) {
            *(float4 *)to = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
            continue;
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (at + j < s.columns) to[j * s.c_column] = sum[i][j];
    }
}
