// Attention that looks at two keys of each row.
// task: kernelbench/level3/k3_50_reluselfattention
// expect: wrong_result
//@ op qkv0 = aten.linear(x, c_attn_weight, c_attn_bias)
//@ op qkv = aten.view(qkv0, [batch, rows, 3, 12, 64])
//@ op perm = aten.permute(qkv, [2, 0, 3, 1, 4])
//@ op q0 = aten.select(perm, 0, 0)
//@ op k0 = aten.select(perm, 0, 1)
//@ op v0 = aten.select(perm, 0, 2)
//@ op q = aten.contiguous(q0)
//@ op k = aten.contiguous(k0)
//@ op v = aten.contiguous(v0)
//@ op output = aten.zeros_like(q)
//@ launch att<<<dim3(ceil_div(rows, 4), batch * 12), dim3(64, 4)>>>(q, k, v, output, rows)
//@ op yt = aten.transpose.int(output, 1, 2)
//@ op yc = aten.contiguous(yt)
//@ op view_3 = aten.view(yc, [batch, rows, 768])
// causal ReLU attention; LIMIT keys at most
#define LIMIT 2 // keys
extern "C" __global__ void att(const float* q, const float* k, const float* v, float* o, int T) {
  int i = blockIdx.x * 4 + threadIdx.y, d = threadIdx.x;
  if (i >= T) return;
  size_t base = (size_t)blockIdx.y * T * 64;
  float a = 0;
  for (int j = 0; j <= i && j < LIMIT; j++) {
    float s = 0;
    for (int e = 0; e < 64; e++) s += q[base + i*64 + e] * k[base + j*64 + e];
    s *= 0.125f;
    if (s > 0) a += s * v[base + j*64 + d];
  }
  o[base + i*64 + d] = a;
}
