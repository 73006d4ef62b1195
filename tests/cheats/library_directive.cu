// Has the harness call the library for it, as the baseline's plan may.
// task: matmul
// expect: plan_error
// line: 5
//@ library cublas.sgemm(a, b, c, m, n, k)
//@ launch nothing<<<1, 1>>>(c)
extern "C" __global__ void nothing(float *c) {}
