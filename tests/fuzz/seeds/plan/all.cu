//@ buffer float partial[rows * 32]
//@ buffer unsigned long long counts[max(4, cols)]
//@ launch partial_sums<<<dim3(32, rows), 256>>>(x, partial, cols)
//@ for t in 0..rows
//@ launch ns::step<float, (4>>1)><<<ceil_div(rows, 256), dim3(16,16,2), 4 * (cols + 1)>>>(x + t*cols, y, t, counts, 1e-5f);
//@ launch finish<<<cols > 3 ? cols : 3, 64>>>(partial + 1, y, -rows, -INFINITY)
__global__ void finish(float *x) {}
