// ldmatrix and its transpose as movers of 16-bit halves: each float is two of them, and comes out whole.
// task: transpose
// expect: ok
//@ launch transpose<<<dim3(ceil_div(cols, 8), ceil_div(rows, 8)), 32>>>(x, y, rows, cols)
extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols)
{
    __shared__ __align__(16) unsigned short high[8][8], low[8][8];
    int r0 = blockIdx.y * 8, c0 = blockIdx.x * 8, lane = threadIdx.x;
    for (int e = lane; e < 64; e += 32) {
        int r = r0 + e / 8, c = c0 + e % 8;
        unsigned v = r < rows && c < cols ? __float_as_uint(x[r * cols + c]) : 0;
        high[e / 8][e % 8] = v >> 16, low[e / 8][e % 8] = v & 0xffff;
    }
    __syncwarp();
    unsigned h, l, row = lane % 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(h) : "r"((unsigned)__cvta_generic_to_shared(high[row])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(l) : "r"((unsigned)__cvta_generic_to_shared(low[row])));
    for (int k = 0; k < 2; k++) {
        int c = c0 + lane / 4, r = r0 + lane % 4 * 2 + k;
        unsigned v = (h >> (16 * k) & 0xffff) << 16 | (l >> (16 * k) & 0xffff);
        if (r < rows && c < cols) y[c * rows + r] = __uint_as_float(v);
    }
}
