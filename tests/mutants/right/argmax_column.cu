// 32 columns and 8 parts of the rows a block; the first of equal maxima.
// task: k1_51_argmax_over_a_dimension
//@ launch largest<<<dim3(ceil_div(cols, 32), batch), dim3(32, 8)>>>(x, argmax_i32, rows, cols)
__global__ void largest(const float *x, int *y, int rows, int cols)
{
    __shared__ float tops[8][32];
    __shared__ int places[8][32];
    int col = blockIdx.x * 32 + threadIdx.x, part = threadIdx.y;
    float top = -INFINITY;
    int place = rows;
    for (int r = part; r < rows && col < cols; r += 8) {
        float v = x[((long long)blockIdx.y * rows + r) * cols + col];
        if (top == top && (v > top || v != v || place == rows)) {
            top = v;
            place = r;
        }
    }
    tops[part][threadIdx.x] = top;
    places[part][threadIdx.x] = place;
    __syncthreads();
    if (part || col >= cols) return;
    for (int i = 1; i < 8; i++) {
        float v = tops[i][threadIdx.x];
        int at = places[i][threadIdx.x];
        if (at == rows) continue;
        int better = v != v ? top == top || at < place : top == top && (v > top || (v == top && at < place));
        if (better) {
            top = v;
            place = at;
        }
    }
    y[blockIdx.y * cols + col] = place;
}
