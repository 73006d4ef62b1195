// torch.matmul(a, b) in float32 without TF32: one cuBLAS product.
//@ library cublas.gemm(a, b, c, 0, 0, 1, m, n, k, 0, 0, k, n, n, 0, 0, 0, 1.0)
