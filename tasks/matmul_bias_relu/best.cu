// One cuBLASLt product whose epilogue adds the bias and takes the maximum with zero.
//@ library cublaslt.sgemm_bias_relu(a, b, bias, c, m, n, k)
