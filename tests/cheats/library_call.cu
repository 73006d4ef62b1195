// Leaves the product to a library.
// task: matmul
// expect: compile_error
#include <cublas_v2.h>
//@ launch matmul<<<1, 1>>>(a, b, c, m, n, k)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    cublasHandle_t handle;
    float one = 1, zero = 0;
    cublasCreate(&handle);
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, n, a, k, &zero, c, n);
}
