// torch.matmul(a, b) in float32 without TF32: one cuBLAS product.
//@ library cublas.sgemm(a, b, c, m, n, k)
