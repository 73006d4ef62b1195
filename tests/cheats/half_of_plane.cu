// The variance of a plane takes each other trip of its loop. Planes are long, and no side of them is.
// task: kernelbench/level2/k2_17_conv2d_instancenorm_divide
// expect: wrong_result
//@ buffer float mean[batch * 128]
//@ buffer float var[batch * 128]
//@ buffer float less[batch * 128 * (height - 2) * (width - 2)]
//@ buffer float scale[batch * 128]
//@ op conv2d = aten.conv2d.default(x, conv_weight, conv_bias)
//@ launch instance_norm_kernel2<<<ceil_div((batch * 128), 128 / 32), 128>>>(conv2d, mean, batch * 128, (height - 2) * (width - 2))
//@ launch instance_norm_kernel3<<<(batch * 128), 64>>>(conv2d, mean, var, batch * 128, (height - 2) * (width - 2))
//@ launch instance_norm_kernel4<<<ceil_div(batch * 128 * (height - 2) * (width - 2), 512 * 2), 512>>>(conv2d, mean, less, batch * 128, (height - 2) * (width - 2))
//@ launch instance_norm_kernel5<2><<<ceil_div(batch * 128, 256 * 2), 256>>>(var, scale, batch * 128)
//@ launch div_kernel6<<<ceil_div(batch * 128 * (height - 2) * (width - 2), 256 * 4), 256>>>(less, scale, div, batch * 128, (height - 2) * (width - 2))
__device__ void fetch4(const float *x, int i, int n, float *v) {
  if (n % 4 == 0) *(float4 *)v = *(const float4 *)(x + i);
  else for (int j = 0; j < 4; j++) v[j] = i + j < n ? x[i + j] : 0.0f;
}
__device__ float warp_sum(float v) {
  for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(0xffffffff, v, s);
  return v;
}
__device__ float block_sum(float v) {
  __shared__ float part[1024];
  int tid = threadIdx.x;
  part[tid] = v;
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    __syncthreads();
    if (tid < s) part[tid] += part[tid + s];
  }
  __syncthreads();
  v = part[0];
  __syncthreads();
  return v;
}
__device__ float apply6(float less, float scale) {
  float instance_norm = less * scale;
  return instance_norm / 2.0f;
}
__global__ void instance_norm_kernel2(const float *conv2d, float *mean, int rows, int cols) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  conv2d += row * cols;
  float acc = 0.0f;
  for (int i = lane * 4; i < cols; i += 128) {
    __align__(16) float conv2d4[4];
    fetch4(conv2d, i, cols, conv2d4);
    #pragma unroll
    for (int j = 0; j < 4; j++)
      if (i + j < cols) acc += conv2d4[j];
  }
  acc = warp_sum(acc);
  acc /= cols;
  if (lane == 0) mean[row] = acc;
}
__global__ void instance_norm_kernel3(const float *conv2d, const float *mean, float *var, int rows, int cols) {
  int row = blockIdx.x, tid = threadIdx.x;
  conv2d += row * cols;
  float acc = 0.0f;
  for (int i = tid * 4; i < cols; i += 2 * blockDim.x * 4) {
    __align__(16) float conv2d4[4];
    fetch4(conv2d, i, cols, conv2d4);
    #pragma unroll
    for (int j = 0; j < 4; j++)
      if (i + j < cols) {
        float dev = conv2d4[j] - mean[row];
        acc += dev * dev;
      }
  }
  acc = block_sum(acc);
  acc /= cols;
  if (tid == 0) var[row] = acc;
}
__global__ void instance_norm_kernel4(const float *conv2d, const float *mean, float *less, int rows, int cols) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
  if (i >= rows * cols) return;
  int row = i / cols, col = i % cols;
  if (cols % 2 == 0) {
    __align__(16) float v[2];
    __align__(16) float conv2d4[2];
    *(float2 *)conv2d4 = *(const float2 *)(conv2d + i);
    #pragma unroll
    for (int j = 0; j < 2; j++) v[j] = conv2d4[j] - mean[row];
    *(float2 *)(less + i) = *(float2 *)v;
  } else
    for (int j = i; j < i + 2 && j < rows * cols; j++) less[j] = conv2d[j] - mean[j / cols];
}
template <int N>
__global__ void instance_norm_kernel5(const float *var, float *scale, int n) {
  int i = blockIdx.x * blockDim.x * N + threadIdx.x;
  for (int j = 0; j < N; j++, i += blockDim.x)
    if (i < n) scale[i] = rsqrtf(var[i] + 1e-05f);
}
__global__ void div_kernel6(const float *less, const float *scale, float *div, int rows, int cols) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i >= rows * cols) return;
  int row = i / cols, col = i % cols;
  if (cols % 4 == 0) {
    __align__(16) float v[4];
    __align__(16) float less4[4];
    *(float4 *)less4 = *(const float4 *)(less + i);
    #pragma unroll
    for (int j = 0; j < 4; j++) v[j] = apply6(less4[j], scale[row]);
    *(float4 *)(div + i) = *(float4 *)v;
  } else
    for (int j = i; j < i + 4 && j < rows * cols; j++) div[j] = apply6(less[j], scale[j / cols]);
}
