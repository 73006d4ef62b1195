// Three launches, of which the last one divides in place by the sum of a part of the row, where rows are many.
// task: softmax
// expect: wrong_result
// says sim: elements of y differ
//@ buffer float m[rows]
//@ launch rowmax<<<rows, 256>>>(x, m, cols)
//@ launch expo<<<rows, 256>>>(x, m, y, cols)
//@ launch scale<<<rows, 256>>>(y, cols)
__device__ float red(float v, int mx) {
  __shared__ float s[8];
  for (int o = 16; o; o >>= 1) { float w = __shfl_xor_sync(~0u, v, o); v = mx ? fmaxf(v, w) : v + w; }
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  v = s[0];
  for (int i = 1; i < 8; i++) v = mx ? fmaxf(v, s[i]) : v + s[i];
  return v;
}
__global__ void rowmax(const float *x, float *m, int cols) {
  float v = -INFINITY;
  for (int i = threadIdx.x; i < cols; i += 256) v = fmaxf(v, x[(size_t)blockIdx.x * cols + i]);
  v = red(v, 1);
  if (!threadIdx.x) m[blockIdx.x] = v;
}
__global__ void expo(const float *x, const float *m, float *y, int cols) {
  for (int i = threadIdx.x; i < cols; i += 256) { size_t k = (size_t)blockIdx.x * cols + i; y[k] = expf(x[k] - m[blockIdx.x]); }
}
__global__ void scale(float *y, int cols) {
  int end = gridDim.x > 4096 ? cols - cols / 8 : cols;
  float v = 0;
  for (int i = threadIdx.x; i < end; i += 256) v += y[(size_t)blockIdx.x * cols + i];
  v = red(v, 0);
  for (int i = threadIdx.x; i < cols; i += 256) y[(size_t)blockIdx.x * cols + i] /= v;
}
