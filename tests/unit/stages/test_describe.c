/* What a kernel's text says of its design. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "stages/data/describe.h"

static void describe(const char *source, const char *expected)
{
    Buffer b;
    buffer_init(&b, 1024);
    assert_int_equal(describe_source(source, strlen(source), &b), 0);
    assert_string_equal(b.data, expected);
    buffer_release(&b);
}

static void test_describe(void **state)
{
    (void)state;
    describe("//@ launch relu<<<ceil_div(n, 1024), 256>>>(x, y, n)\n"
             "__global__ void relu(const float *x, float *y, int n) {\n  float4 v = *(const float4 "
             "*)(x + 4);\n}\n",
             "1 launch, 256 threads, float4");
    describe("//@ buffer float p[n]\n//@ launch a<<<dim3(4, n), dim3(32, 8)>>>(x, p)\n//@ launch "
             "b<<<n, 64>>>(p, y)\n"
             "// __shfl in a comment\n/* atomicAdd */ __shared__ float s[4]; __syncthreads(); "
             "__syncthreads();",
             "2 launches, 256 threads, buffers, 2 barriers");
    describe("", "0 launches");
    describe("//@ launch matmul<64, 32, 8, 4><<<dim3(1, 2), (64 / 4) * (32 / 4)>>>(a)\n  "
             "__shared__ float as[K][M];\n  float sum[T][T] = {};",
             "1 launch, 128 threads, template <64, 32, 8, 4>, shared tiles");
    describe("//@ launch k<<<1, min(n, 4)>>>(x)\n  float sum[4][4] = {};",
             "1 launch, 16 values in registers");
}

/* Designs that the generator's kernels differ in. */
static void describe_generated(void **state)
{
    (void)state;
    describe("//@ launch kernel_1<<<rows, 128>>>(h, y, rows, cols)\n"
             "template <int V>\n__device__ void body_1(const float *h, float *y, int rows, int "
             "cols)\n{\n"
             "    int lane = threadIdx.x, row = blockIdx.x;\n    y_i = tree_max(y_i);\n}\n"
             "    if ((cols) % 4 == 0) body_1<4>(h, y, rows, cols);\n"
             "    else body_1<1>(h, y, rows, cols);\n",
             "1 launch, 128 threads, vectors of 4, a block per row, tree in shared memory");
    describe(
        "//@ launch kernel_1<<<ceil_div(rows * 32, 512), 512>>>(x, y, rows, cols)\n"
        "    int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;\n",
        "1 launch, 512 threads, a warp per row");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_describe),
                                       cmocka_unit_test(describe_generated)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
