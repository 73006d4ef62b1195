/* How plain kernels are launched: blocks, grids and run-time sizes as eager PyTorch's kernels have them. The
 * kernels' results are test_op_kernels'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/ops/op_fixture.h"

#define T(shape) "{\"shape\":[" shape "],\"seed\":1}"
#define DTYPE(shape, draw) "{\"shape\":[" shape "],\"seed\":1,\"draw\":\"" draw "\"}"

/* Weight, bias, mean and variance of three channels, in evaluation. */
#define STATISTICS T("3") "," T("3") "," T("3") "," T("3") ",false,0.1,1e-05,false"

static const struct {
    const char *name, *args;
    int launch, block[2];
    int64_t grid[3];
    const char *arguments, *text; /* NULL: whatever they are */
} cases[] = {
    /* a bound that is None is compared with nothing: NaN as a whole number is none */
    {"clamp.default",
     "{\"shape\":[40],\"seed\":1,\"dtype\":\"int64\",\"draw\":\"any\"},1",
     0,
     {128, 1},
     {1, 1, 1},
     NULL,
     "(a < p0 ? p0 : a)"},
    /* pools: outputs counted flat, or 32 columns x 8 rows of a frame */
    {"max_pool2d.default",
     T("2,3,40,40") ",[3,3],[1,1]",
     0,
     {256, 1},
     {34, 1, 1},
     "x0, y0, t0, 8664, 3, 40, 38, 1, 0, 3, 1, 40, 38, 1, 0, 3, 1",
     "i0 += dilation0"},
    {"avg_pool1d.default", T("2,3,40") ",[4],[1],[2]", 0, {1024, 1}, {1, 1, 1}, NULL, NULL},
    {"avg_pool3d.default",
     T("2,3,8,40,40") ",[2,2,2],[2,2,2]",
     0,
     {32, 8},
     {1, 3, 24},
     NULL,
     "constexpr int kernel2 = 2"},
    {"max_pool3d.default",
     T("2,3,8,40,40") ",[2,2,2],[2,2,2]",
     0,
     {32, 8},
     {1, 3, 24},
     NULL,
     "i2 += dilation2"},
    {"max_pool3d.default",
     T("70000,2,2,2") ",[2,2,2]",
     0,
     {32, 8},
     {1, 1, 65535},
     NULL,
     "t * 65535"},
    /* depthwise convolutions: 3 x 3 unrolled, others between bounds */
    {"conv2d.default",
     T("2,8,20,20") "," T("8,1,3,3") ",null,[1,1],[0,0],[1,1],8",
     0,
     {1024, 1},
     {6, 1, 1},
     NULL,
     "taps++"},
    {"conv2d.default",
     T("2,8,20,20") "," T("8,1,3,1") ",null,[1,1],[0,0],[1,1],8",
     0,
     {1024, 1},
     {6, 1, 1},
     NULL,
     "u1 = first1"},
    /* scans: rows of a block; one row by several blocks */
    {"cumsum.default", T("64,512") ",1", 0, {64, 8}, {8, 1, 1}, "x0, y0, 64, 512, 6", NULL},
    {"cumsum.default", T("512,64") ",1", 0, {16, 32}, {16, 1, 1}, NULL, NULL},
    {"cumsum.default", T("1000") ",0", 0, {256, 1}, {1, 1, 1}, NULL, NULL},
    /* a layer norm of rows that are read in fours, and one of others */
    {"layer_norm.default", T("5,64") ",[64]", 0, {32, 4}, {5, 1, 1}, "x0, y0, t1, t0, 64", NULL},
    {"layer_norm.default", T("5,63") ",[63]", 0, {128, 1}, {5, 1, 1}, NULL, NULL},
    /* softmax by the row's length, and across memory */
    {"softmax.int", T("5,2048") ",1", 0, {128, 1}, {2, 1, 1}, NULL, NULL},
    {"softmax.int", T("5,2049") ",1", 0, {1024, 1}, {5, 1, 1}, NULL, "LOADS = 3"},
    {"softmax.int", T("5,3,4096") ",1", 0, {1, 1024}, {5, 4, 1}, "x0, y0, 5, 3, 4096", NULL},
    {"softmax.int", T("5,64,4") ",1", 0, {64, 4}, {5, 1, 1}, NULL, NULL},
    /* a thread an output where less than 256 elements side by side make one */
    {"min.dim", T("4,22,900") ",1", 0, {512, 1}, {8, 1, 1}, NULL, NULL},
    {"min.dim", T("4,256,900") ",1", 0, {32, 16}, {113, 1, 1}, NULL, NULL},
    /* four elements in a vector; two of a walk by strides, also where an operand is one element */
    /* running statistics: planes of channels by batches; few elements have several batches a block */
    {"batch_norm.default",
     T("2,3,20,20") "," STATISTICS,
     0,
     {128, 1},
     {3, 2, 1},
     NULL,
     "blockDim.y * gridDim.y"},
    {"batch_norm.default", T("70,3,5,5") "," STATISTICS, 0, {32, 2}, {3, 35, 1}, NULL, NULL},
    {"batch_norm.default", T("64,3") "," STATISTICS, 0, {128, 1}, {1, 1, 1}, NULL, NULL},
    {"softmax.int", T("2,8,40") ",1", 0, {1, 40}, {2, 1, 1}, NULL, "exp(v - most) / sum"},
    /* an einsum that sums nothing is a product of elements, whatever the order of the letters */
    {"einsum.default",
     "\"abc,ba->abc\",[" T("8,4,32") "," T("4,8") "]",
     0,
     {128, 1},
     {4, 1, 1},
     NULL,
     "y0[i] = (float)((float)"},
    /* powers that eager does not compute by pow; others it does */
    {"pow.Tensor_Scalar", T("64,64") ",2", 0, {128, 1}, {8, 1, 1}, NULL, "(a * a);"},
    {"pow.Tensor_Scalar", T("64,64") ",3.0", 0, {128, 1}, {8, 1, 1}, NULL, "(a * a * a);"},
    {"pow.Tensor_Scalar", T("64,64") ",-0.5", 0, {128, 1}, {8, 1, 1}, NULL, "(rsqrt(a));"},
    {"pow_.Scalar", T("64,64") ",-2", 0, {128, 1}, {8, 1, 1}, NULL, "(1 / (a * a));"},
    {"pow.Tensor_Scalar", T("64,64") ",2.5", 0, {128, 1}, {8, 1, 1}, NULL, "(pow(a, p0));"},
    {"pow.Tensor_Scalar",
     DTYPE("64,64", "index 9") ",3",
     0,
     {128, 1},
     {8, 1, 1},
     NULL,
     "(a * a * a);"},
    {"mul.Tensor", T("64,64") "," T("64,64"), 0, {128, 1}, {8, 1, 1}, NULL, "op_lanes"},
    {"mul.Tensor", T("64,64") "," T("64"), 0, {128, 1}, {16, 1, 1}, NULL, "k < 2"},
    {"mul.Tensor", T("64,64") "," T(""), 0, {128, 1}, {16, 1, 1}, NULL, "k < 2"},
    {"mul.Tensor",
     T("64,64") "," DTYPE("64,64", "index 5"),
     0,
     {128, 1},
     {8, 1, 1},
     NULL,
     "in_a[4], in_b[4]"},
};

/* How many kernels eager PyTorch launches. */
static const struct {
    const char *name, *args;
    int launches;
} counts[] = {
    {"var_mean.correction", T("64,256") ",[1]", 1},
    {"std_mean.default", T("64,16"), 1},
    {"isinf.default", T("64,16"), 2},
    {"isfinite.default", T("64,16"), 4},
    {"isnan.default", T("64,16"), 1},
    {"nan_to_num.default", T("64,16"), 1},
    {"where.Scalar", DTYPE("64,16", "mask") ",1.5,0.5", 3},
    {"where.ScalarOther", DTYPE("64,16", "mask") "," T("64,16") ",0.5", 2},
    {"trace.default", T("16,16"), 1},
    {"kron.default", T("4,6") "," T("3,5"), 1},
    {"im2col.default", T("3,2,8,8") ",[3,3],[1,1],[1,1],[1,1]", 3},
    {"col2im.default", T("3,18,64") ",[8,8],[3,3],[1,1],[1,1],[1,1]", 1},
    {"grid_sampler.default", T("2,3,8,8") "," T("2,4,4,2") ",0,0,false", 1},
    {"cummax.default", T("64,200") ",1", 1},
    {"cummin.default", T("200,64") ",0", 1},
    {"bucketize.Tensor", T("64,16") "," T("9"), 1},
    {"median.dim", T("64,200") ",1", 1},
    {"where.self", DTYPE("64,16", "mask") "," T("64,16") "," T("64,16"), 1},
};

/* The call of JSON arguments, in float32, and its kernels. The caller closes both. */
static void open_call(const char *op, const char *args, FixtureCase *f, OpPlain *plain)
{
    Error err;
    char json[400], name[80];
    snprintf(json, sizeof json, "{\"args\":[%s]}", args);
    snprintf(name, sizeof name, "aten.%s", op);
    json_t *j = json_loads(json, 0, NULL);
    assert_non_null(j);
    fixture_bind(f, name, j);
    for (int t = 0; t < f->call.n_tensors; t++)
        if (f->call.tensor[t].dtype == DTYPE_F64) f->call.tensor[t].dtype = DTYPE_F32;
    buffer_init(plain->source, 1 << 16);
    if (op_infer(&f->call, &err) || op_plain(&f->call, plain, &err))
        fail_msg("%s(%s): %s", name, args, err.text);
    json_decref(j);
}

static void close_call(FixtureCase *f, OpPlain *plain)
{
    free(plain->launch);
    buffer_release(plain->source);
    fixture_close(f);
}

static void numbers_of_launches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        FixtureCase f;
        Buffer text;
        OpPlain plain = {.source = &text};
        open_call(counts[i].name, counts[i].args, &f, &plain);
        int64_t n = 0;
        for (int l = 0; l < plain.n; l++) n += plain.launch[l].repeat ? plain.launch[l].repeat : 1;
        if (n != counts[i].launches)
            fail_msg("%s(%s): %lld launches", counts[i].name, counts[i].args, (long long)n);
        close_call(&f, &plain);
    }
}

static void check(int i)
{
    FixtureCase f;
    Buffer text;
    OpPlain plain = {.source = &text};
    const char *name = cases[i].name;
    open_call(name, cases[i].args, &f, &plain);
    assert_true(plain.n > cases[i].launch);
    const OpLaunch *l = &plain.launch[cases[i].launch];
    for (int d = 0; d < 3; d++)
        if (l->grid[d] != cases[i].grid[d] ||
            (d < 2 && (l->block[d] > 1 ? l->block[d] : 1) != cases[i].block[d]))
            fail_msg("%s(%s): grid %lld x %lld x %lld, block %d x %d", name, cases[i].args,
                     (long long)l->grid[0], (long long)l->grid[1], (long long)l->grid[2],
                     l->block[0], l->block[1]);
    if (cases[i].arguments) assert_string_equal(l->arguments, cases[i].arguments);
    if (cases[i].text && !strstr(text.data, cases[i].text))
        fail_msg("%s(%s): no \"%s\" in %s", name, cases[i].args, cases[i].text, text.data);
    close_call(&f, &plain);
}

/* Two parts of a place fit an int each, and their sum does not. */
static void places_beyond_an_int(void **state)
{
    (void)state;
    static const int64_t size[] = {128, 4100, 4096};
    for (int large = 0; large < 2; large++) {
        FixtureCase f;
        Buffer text;
        Error err;
        OpPlain plain = {.source = &text};
        json_t *j = json_loads("{\"args\":[" T("2,3,4") ",[1]]}", 0, NULL);
        fixture_bind(&f, "aten.sum.dim_IntList", j);
        OpTensor *x = &f.call.tensor[0];
        int64_t stride = 1;
        for (int d = 2; d >= 0 && large; stride *= size[d--])
            x->size[d] = size[d], x->stride[d] = stride;
        buffer_init(&text, 1 << 16);
        if (op_infer(&f.call, &err) || op_plain(&f.call, &plain, &err)) fail_msg("%s", err.text);
        if (!strstr(text.data, large ? "const long long o" : "const int o"))
            fail_msg("%s", text.data);
        json_decref(j);
        close_call(&f, &plain);
    }
}

static void launches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check((int)i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(launches),
                                       cmocka_unit_test(places_beyond_an_int),
                                       cmocka_unit_test(numbers_of_launches)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("op_launches", tests, NULL, NULL);
}
