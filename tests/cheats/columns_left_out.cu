// Writes 300 of 8192 columns, in the last launch of two.
// task: kernelbench/level2/k2_99_matmul_gelu_softmax
// expect: wrong_result
// says: never written
//@ buffer float gelu[rows * features]
//@ launch linear_kernel<32><<<dim3(ceil_div(features, 32), ceil_div(rows, 32)), dim3(32, 32)>>>(x, linear_weight, linear_bias, gelu, rows, features, cols)
//@ launch softmax_kernel2<<<rows, 512>>>(gelu, softmax, rows, features)
__device__ float apply(float acc, float linear_bias) {
  float linear2 = acc + linear_bias;
  return 0.5f * linear2 * (1.0f + erff(linear2 * 0.70710678f));
}
__device__ float warp_max(float v) {
  for (int s = 16; s > 0; s /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, s));
  return v;
}
__device__ float block_max(float v) {
  __shared__ float part[32];
  int lane = threadIdx.x % 32;
  v = warp_max(v);
  if (lane == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = warp_max(lane < blockDim.x / 32 ? part[lane] : -1e30f);
  __syncthreads();
  return v;
}
__device__ float warp_sum(float v) {
  for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(0xffffffff, v, s);
  return v;
}
__device__ float block_sum(float v) {
  __shared__ float part[32];
  int lane = threadIdx.x % 32;
  v = warp_sum(v);
  if (lane == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = warp_sum(lane < blockDim.x / 32 ? part[lane] : 0.0f);
  __syncthreads();
  return v;
}
template <int T>
__global__ void linear_kernel(const float *x, const float *linear_weight, const float *linear_bias, float *gelu, int m, int n, int k) {
  __shared__ float as[T][T + 1], bs[T][T + 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * T + ty, left = blockIdx.x * T;
  float sum = 0.0f;
  for (int t = 0; t < k; t += T) {
    int p = t + tx;
    as[ty][tx] = row < m && p < k ? x[row * k + p] : 0.0f;
    int col = left + ty;
    bs[tx][ty] = p < k && col < n ? linear_weight[col * k + p] : 0.0f;
    __syncthreads();
    #pragma unroll
    for (int q = 0; q < T; q++) sum += as[ty][q] * bs[q][tx];
    __syncthreads();
  }
  int col = left + tx;
  if (row < m && col < n) gelu[row * n + col] = apply(sum, linear_bias[col]);
}
__global__ void softmax_kernel2(const float *gelu, float *softmax, int rows, int cols) {
  int row = blockIdx.x, tid = threadIdx.x;
  gelu += row * cols;
  softmax += row * cols;
  float top = -1e30f, sum = 0.0f;
  for (int i = tid; i < cols; i += blockDim.x) {
    float gelu_i = gelu[i];
    float big = fmaxf(top, gelu_i);
    sum = sum * expf(top - big) + expf(gelu_i - big);
    top = big;
  }
  float own = top;
  top = block_max(top);
  sum *= expf(own - top);
  sum = block_sum(sum);
  for (int i = tid; i < cols && i < 300; i += blockDim.x) {
    float less = gelu[i] - top;
    float e = expf(less);
    softmax[i] = e / sum;
  }
}
