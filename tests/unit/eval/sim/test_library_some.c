/* Some elements of the results of library calls have the bits that the whole results have. */
#include <math.h>

#include "eval/sim/library/library_run.h"
#include "eval/sim/library/library_some.h"
#include "tests/unit/eval/sim/sim_support.h"

enum { SIZE = 1 << 18, ARGS = 27 };

static DevMem mem;
static uint64_t a, b, c, moved, weights;

static void put_values(uint64_t p, int n)
{
    for (int i = 0; i < n; i++) {
        float v = (float)((i * 37 + 11) % 101 - 50) / 16;
        memcpy(devmem_host(&mem, p) + 4 * i, &v, 4);
    }
    devmem_set_written(&mem, p, SIZE);
}

static DeviceLaunch call_of(const char *name, const uint64_t *args, int n)
{
    DeviceLaunch l = {.kernel = name, .library_args = n};
    memcpy(l.params, args, (size_t)n * sizeof *args);
    return l;
}

/* Asks for a few runs of the result's n elements. */
static void compare(const DeviceLaunch *l, int n)
{
    static float whole[SIZE / 4], some[SIZE / 4];
    Error err;
    Ranges need = {0}, asked = {0}, reads = {0};
    double cost;
    memset(devmem_host(&mem, c), 0, SIZE);
    if (library_run(&mem, l, &err)) fail_msg("%s", err.text);
    memcpy(whole, devmem_host(&mem, c), SIZE);
    memset(devmem_host(&mem, c), 0, SIZE);
    for (int i = 3; i + 5 < n; i += n / 3)
        ranges_add(&need, c + 4 * (uint64_t)i, c + 4 * (uint64_t)i + 20);
    ranges_join(&need);
    assert_int_equal(library_needs(l, &need, 1e9, &asked, &reads, &cost, &err), 0);
    assert_true(ranges_bytes(&asked) == ranges_bytes(&need));
    assert_true(reads.n && cost > 0);
    assert_int_equal(library_needs(l, &need, 1, &asked, &reads, &cost, &err), 1);
    if (library_run_some(&mem, l, &need, &err)) fail_msg("%s", err.text);
    memcpy(some, devmem_host(&mem, c), SIZE);
    for (int i = 0; i < n; i++) {
        int is_asked = ranges_meet(&need, c + 4 * (uint64_t)i, c + 4 * (uint64_t)i + 4);
        if (some[i] != (is_asked ? whole[i] : 0))
            fail_msg("element %d is %g, expected %g", i, (double)some[i], (double)whole[i]);
    }
    ranges_release(&need), ranges_release(&asked), ranges_release(&reads);
}

static void test_products(void **state)
{
    (void)state;
    const uint64_t plain[] = {a, b, c, 19, 23, 17};
    DeviceLaunch l = call_of("cublas.sgemm", plain, 6);
    compare(&l, 19 * 23);
    double alpha = 0.5;
    for (uint64_t t = 0; t < 4; t++) {
        uint64_t args[] = {a, b, c, 3, 11, 13, 7, t & 1, t >> 1, 0};
        memcpy(&args[9], &alpha, sizeof alpha);
        l = call_of("cublas.sgemm_batched", args, 10);
        compare(&l, 3 * 11 * 13);
    }
}

/* Three dimensions: in, kernel, out, stride, padding, dilation of the last two. */
static void convolve(const char *name, int transposed, int groups, int stride, int dilation)
{
    int in = 9, kernel = 3, padding = 1, span = (kernel - 1) * dilation + 1,
        out = transposed ? (in - 1) * stride - 2 * padding + span
                         : (in + 2 * padding - span) / stride + 1;
    uint64_t args[ARGS] = {a, b, c, (uint64_t)transposed, 0, 2, 4, 6, (uint64_t)groups};
    for (int d = 0; d < 3; d++) {
        const int each[] = {in, kernel, out, stride, padding, dilation}, one[] = {1, 1, 1, 1, 0, 1};
        for (int i = 0; i < 6; i++) args[9 + 6 * d + i] = (uint64_t)(d ? each[i] : one[i]);
    }
    DeviceLaunch l = call_of(name, args, ARGS);
    compare(&l, 2 * 6 * out * out);
}

static void test_convolutions(void **state)
{
    (void)state;
    static const char *const names[] = {"cudnn.convolution", "cudnn.convolution_last"};
    for (int i = 0; i < 2; i++) {
        convolve(names[i], 0, 1, 1, 1);
        convolve(names[i], 0, 2, 2, 2);
        convolve(names[i], 1, 1, 2, 1);
        convolve(names[i], 1, 2, 1, 2);
    }
}

/* Moves the second dimension of a [first][second][third] to the end. */
static void move_last(uint64_t from, uint64_t to, int first, int second, int third)
{
    for (int i = 0; i < first * second * third; i++) {
        int k = i % third, j = i / third % second, entry = i / third / second;
        memcpy(devmem_host(&mem, to) + 4 * ((entry * third + k) * second + j),
               devmem_host(&mem, from) + 4 * i, 4);
    }
}

/* Channels last gives the bits of the other order, in another place. */
static void test_channels_last(void **state)
{
    enum { IN = 4, OUT = 6, PLACES = 81 };
    (void)state;
    for (int transposed = 0; transposed < 2; transposed++) {
        const uint64_t out = transposed ? 11 : 7, places = out * out;
        uint64_t args[ARGS] = {a, b,   c,  (uint64_t)transposed,
                               0, 2,   IN, OUT,
                               2, 1,   1,  1,
                               1, 0,   1,  9,
                               3, out, 1,  0,
                               1, 9,   3,  out,
                               1, 0,   1};
        DeviceLaunch l = call_of("cudnn.convolution", args, ARGS);
        Error err;
        if (library_run(&mem, &l, &err)) fail_msg("%s", err.text);
        static float whole[2 * OUT * 121];
        memcpy(whole, devmem_host(&mem, c), sizeof whole);
        move_last(a, moved, 2, IN, PLACES);
        move_last(b, weights, transposed ? IN : OUT, (transposed ? OUT : IN) / 2, 9);
        args[0] = moved, args[1] = weights;
        l = call_of("cudnn.convolution_last", args, ARGS);
        if (library_run(&mem, &l, &err)) fail_msg("%s", err.text);
        for (int i = 0; i < 2 * OUT * (int)places; i++) {
            int place = i % (int)places, channel = i / (int)places % OUT,
                entry = i / (int)places / OUT;
            float last;
            memcpy(&last,
                   devmem_host(&mem, c) + 4 * ((entry * (int)places + place) * OUT + channel), 4);
            if (memcmp(&last, &whole[i], 4)) fail_msg("element %d differs", i);
        }
    }
}

/* Where the contents of b are kept. */
static const void *kept(void *of, int input, size_t from, void *dst, size_t bytes)
{
    (void)input;
    if (dst) memcpy(dst, (char *)of + from, bytes);
    return (char *)of + from;
}

/* A product reads contents that are drawn where they are kept, and copies none to the device. */
static void test_contents_are_read_where_they_are_kept(void **state)
{
    (void)state;
    enum { ROWS = 3, COLUMNS = 19, TERMS = 523 };
    static float of_b[SIZE / 4], whole[ROWS * COLUMNS], zeros[SIZE / 4];
    const uint64_t args[] = {a, b, c, 1, ROWS, COLUMNS, TERMS, 0, 1, 0};
    DeviceLaunch l = call_of("cublas.sgemm_batched", args, 10);
    const double alpha = 1;
    Error err;
    Ranges all = {0};
    Alloc *lazy = devmem_at(&mem, b);
    memcpy(l.params + 9 * sizeof *args, &alpha, sizeof alpha);
    memcpy(of_b, devmem_host(&mem, b), sizeof of_b);
    if (library_run(&mem, &l, &err)) fail_msg("%s", err.text);
    memcpy(whole, devmem_host(&mem, c), sizeof whole);
    lazy->fill = kept, lazy->fill_of = of_b;
    devmem_unmark(&mem, lazy);
    memset(devmem_host(&mem, b), 0, SIZE);
    ranges_add(&all, c, c + sizeof whole);
    uint64_t from = b - ARENA_BASE;
    assert_int_equal(devmem_hold(&mem, lazy, from, from + SIZE), 0);
    if (library_run_some(&mem, &l, &all, &err)) fail_msg("%s", err.text);
    assert_memory_equal(devmem_host(&mem, c), whole, sizeof whole);
    assert_memory_equal(devmem_host(&mem, b), zeros, SIZE);
    lazy->fill = NULL;
    put_values(b, SIZE / 4);
    ranges_release(&all);
}

static int set_up(void **state)
{
    Error err;
    (void)state;
    if (devmem_open(&mem, 16 << 20, &err) || devmem_new(&mem, SIZE, "a", &a, &err) ||
        devmem_new(&mem, SIZE, "b", &b, &err) || devmem_new(&mem, SIZE, "c", &c, &err) ||
        devmem_new(&mem, SIZE, "moved", &moved, &err) ||
        devmem_new(&mem, SIZE, "weights", &weights, &err))
        return -1;
    put_values(a, SIZE / 4);
    put_values(b, SIZE / 4);
    put_values(moved, SIZE / 4);
    put_values(weights, SIZE / 4);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    devmem_close(&mem);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_channels_last),
        cmocka_unit_test(test_contents_are_read_where_they_are_kept),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
