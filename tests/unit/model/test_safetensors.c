/* safetensors: round trips, equality with the bytes of the reference writer, shards, and
 * refusals. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/file.h"
#include "model/core/halves.h"
#include "model/files/safetensors.h"
#include "tests/fixture_path.h"

#define FIXTURES "tests/fixtures/safetensors/"

static char dir[64];

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/quern-safetensors-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    Error err;
    return file_remove_tree(dir, &err);
}

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* Write the header text and `data` bytes of zeros. claim 0: the true length of the header. */
static void put(const char *path, const char *header, uint64_t claim, size_t data)
{
    Error err;
    Buffer b;
    buffer_init(&b, 1 << 20);
    uint64_t n = claim ? claim : strlen(header);
    for (int i = 0; i < 8; i++) buffer_append(&b, &(char){(char)(n >> 8 * i)}, 1);
    buffer_puts(&b, header);
    for (size_t i = 0; i < data; i++) buffer_append(&b, "", 1);
    assert_int_equal(file_write_atomic(path, b.data, b.len, &err), 0);
    buffer_release(&b);
}

static const float norm[5] = {0, 0.25f, 0.5f, 0.75f, 1};
static const float embed[12] = {-6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5};
static const float one[1] = {1.5f};
static const SafetensorsOut three[3] = {
    {"model.norm.weight", 1, {5}, norm},
    {"model.embed_tokens.weight", 2, {4, 3}, embed},
    {"a", 1, {1}, one},
};

static void equals_reference_writer(void **state)
{
    (void)state;
    Error err;
    Buffer ours, theirs;
    buffer_init(&ours, 1 << 16);
    buffer_init(&theirs, 1 << 16);
    assert_int_equal(safetensors_write(path_of("x.safetensors"), three, 3, DTYPE_F32, &err), 0);
    assert_int_equal(file_read(path_of("x.safetensors"), 1 << 16, &ours, &err), 0);
    assert_int_equal(
        file_read(fixture_path(FIXTURES "reference-f32.safetensors"), 1 << 16, &theirs, &err), 0);
    assert_int_equal(ours.len, theirs.len);
    assert_memory_equal(ours.data, theirs.data, ours.len);
    buffer_release(&ours);
    buffer_release(&theirs);
}

static void round_trip(void **state)
{
    (void)state;
    Error err;
    Safetensors *s;
    float back[12];
    for (int stored = 0; stored < 2; stored++) {
        assert_int_equal(safetensors_write(path_of("r.safetensors"), three, 3,
                                           stored ? DTYPE_BF16 : DTYPE_F32, &err),
                         0);
        assert_int_equal(safetensors_open(path_of("r.safetensors"), &s, &err), 0);
        assert_int_equal(safetensors_count(s), 3);
        assert_string_equal(safetensors_at(s, 0)->name, "a");
        assert_null(safetensors_at(s, 3));
        for (int i = 0; i < 3; i++) {
            const SafetensorsTensor *t = safetensors_find(s, three[i].name);
            assert_non_null(t);
            assert_int_equal(t->dtype, stored ? DTYPE_BF16 : DTYPE_F32);
            assert_int_equal(
                safetensors_read_f32(s, three[i].name, three[i].rank, three[i].shape, back, &err),
                0);
            assert_memory_equal(back, three[i].data,
                                t->elements * sizeof(float)); /* all exact in bf16 too */
        }
        assert_int_equal(safetensors_read_f32(s, "a", 1, (int64_t[]){2}, back, &err), -1);
        assert_non_null(strstr(err.text, "expected the shape [2], found [1]"));
        assert_int_equal(safetensors_read_f32(s, "a", 2, (int64_t[]){1, 1}, back, &err), -1);
        assert_int_equal(safetensors_read_f32(s, "b", 1, (int64_t[]){1}, back, &err), -1);
        assert_non_null(strstr(err.text, "no tensor b"));
        safetensors_close(s);
    }
}

static void reads_other_dtypes(void **state)
{
    (void)state;
    Error err;
    Safetensors *s;
    float x[5];
    assert_int_equal(
        safetensors_open(fixture_path(FIXTURES "reference-mixed.safetensors"), &s, &err), 0);
    assert_int_equal(safetensors_count(s), 5);
    assert_int_equal(safetensors_read_f32(s, "scalar", 0, NULL, x, &err), 0);
    assert_true(x[0] == 2.5f);
    assert_int_equal(safetensors_read_f32(s, "empty", 2, (int64_t[]){0, 4}, x, &err), 0);
    assert_int_equal(safetensors_read_f32(s, "half", 1, (int64_t[]){5}, x, &err), 0);
    assert_true(x[0] == 1 && x[1] == -2 && x[2] == 65504 && x[3] == 0x1p-24f && isinf(x[4]));
    assert_int_equal(safetensors_find(s, "ids")->dtype, DTYPE_I64);
    assert_int_equal(safetensors_find(s, "bytes")->dtype, DTYPE_U8);
    assert_int_equal(safetensors_read_f32(s, "bytes", 1, (int64_t[]){3}, x, &err), -1);
    assert_int_equal(safetensors_read_f32(s, "ids", 2, (int64_t[]){2, 2}, x, &err), -1);
    safetensors_close(s);
}

static void rounds_to_bf16(void **state)
{
    (void)state;
    assert_int_equal(float_to_bf16(1.0f), 0x3F80);
    assert_int_equal(float_to_bf16(1.00390625f), 0x3F80); /* 1 + 2^-8: a tie, to even */
    assert_int_equal(float_to_bf16(1.01171875f), 0x3F82); /* 1 + 3*2^-8: a tie, to even */
    assert_int_equal(float_to_bf16(1.00390637f), 0x3F81); /* just above the tie */
    assert_int_equal(float_to_bf16(3.4e38f), 0x7F80);     /* becomes infinity */
    assert_true(isnan(bf16_to_float(float_to_bf16(NAN))));
    assert_true(bf16_to_float(0xC000) == -2.0f);
}

static void refuses_to_write(void **state)
{
    (void)state;
    Error err;
    SafetensorsOut twice[2] = {three[0], three[0]};
    assert_int_equal(safetensors_write(path_of("t"), twice, 2, DTYPE_F32, &err), -1);
    assert_non_null(strstr(err.text, "given twice"));
    assert_int_equal(safetensors_write(path_of("t"), three, 3, DTYPE_I64, &err), -1);
    assert_int_equal(safetensors_write(path_of("none/t"), three, 3, DTYPE_F32, &err), -1);
    SafetensorsOut bad = {"a\xff", 1, {1}, one};
    assert_int_equal(safetensors_write(path_of("t"), &bad, 1, DTYPE_F32, &err), -1);
    assert_false(file_exists(path_of("t")));
}

static void write_index(const char *text)
{
    Error err;
    assert_int_equal(
        file_write_atomic(path_of("model.safetensors.index.json"), text, strlen(text), &err), 0);
}

static void refuses_index(const char *text, const char *expected)
{
    Error err;
    Safetensors *s;
    write_index(text);
    assert_int_equal(safetensors_open(dir, &s, &err), -1);
    assert_null(s);
    if (!strstr(err.text, expected)) fail_msg("expected '%s' in '%s'", expected, err.text);
}

static void shards(void **state)
{
    (void)state;
    Error err;
    Safetensors *s;
    float x[12];
    assert_int_equal(safetensors_write(path_of("m-1.safetensors"), three, 1, DTYPE_F32, &err), 0);
    assert_int_equal(safetensors_write(path_of("m-2.safetensors"), three + 1, 2, DTYPE_BF16, &err),
                     0);
    assert_int_equal(safetensors_write(path_of("m-3.safetensors"), three + 2, 1, DTYPE_BF16, &err),
                     0);
    write_index("{\"metadata\":{\"total_size\":1},\"weight_map\":{\"model.norm.weight\":\"m-1."
                "safetensors\","
                "\"model.embed_tokens.weight\":\"m-2.safetensors\",\"a\":\"m-2.safetensors\"}}");
    assert_int_equal(safetensors_open(dir, &s, &err), 0);
    assert_int_equal(safetensors_count(s), 3);
    assert_int_equal(
        safetensors_read_f32(s, "model.embed_tokens.weight", 2, (int64_t[]){4, 3}, x, &err), 0);
    assert_true(x[11] == 5);
    safetensors_close(s);
    /* A single file goes before an index, as in transformers. */
    assert_int_equal(safetensors_write(path_of("model.safetensors"), three, 1, DTYPE_F32, &err), 0);
    assert_int_equal(safetensors_open(dir, &s, &err), 0);
    assert_int_equal(safetensors_count(s), 1);
    safetensors_close(s);
    unlink(path_of("model.safetensors"));
    refuses_index("{\"weight_map\":{\"a\":\"../x\"}}", "file name");
    refuses_index("{\"weight_map\":{\"a\":7}}", "file name");
    refuses_index("{\"weight_map\":[]}", "weight_map");
    refuses_index("{}", "weight_map");
    refuses_index("{\"weight_map\":{\"a\":\"m-9.safetensors\"}}", "cannot open");
    refuses_index("{\"weight_map\":{\"a\":\"m-1.safetensors\"}}", "tensor a is not in m-1");
    refuses_index("{\"weight_map\":{\"a\":\"m-2.safetensors\",\"b\":\"m-3.safetensors\"}}",
                  "in two shards");
    unlink(path_of("model.safetensors.index.json"));
    assert_int_equal(safetensors_open(dir, &s, &err), -1); /* neither index nor model.safetensors */
}

#define T(dtype, shape, offsets) \
    "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define OK_A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

/* Headers, each followed by 8 bytes of data. */
static const struct {
    const char *header, *expected;
    uint64_t claim;
} malformed[] = {
    {"{" OK_A "}", "claims", 1 << 20},
    {"{" OK_A "}", "claims", UINT64_MAX},
    {"{" OK_A "}", "claims", 100000001},
    {"{" OK_A "}", "JSON", 20},
    {"{", "'{'", 0},
    {" {" OK_A "}", "'{'", 0},
    {"[]", "'{'", 0},
    {"{" OK_A, "JSON", 0},
    {"{" OK_A "}x", "JSON", 0},
    {"{" OK_A "," OK_A "}", "JSON", 0}, /* the same key twice */
    {"{\"a\\u0000b\":1}", "JSON", 0},
    {"{\"a\xff\":1}", "JSON", 0},
    {"{\"a\":1}", "an object", 0},
    {"{\"a\":{}}", "only", 0},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", "only", 0},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"offsets\":[0,8]}}", "data_offsets", 0},
    {T("32", "[2]", "[0,8]"), "dtype", 0},
    {T("\"F33\"", "[2]", "[0,8]"), "unknown dtype F33", 0},
    {T("\"F32\"", "2", "[0,8]"), "shape", 0},
    {T("\"F32\"", "[2.0]", "[0,8]"), "shape[0]", 0},
    {T("\"F32\"", "[-2]", "[0,8]"), "shape[0]", 0},
    {T("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), "8 dimensions", 0},
    {T("\"F32\"", "[4294967296,4294967296]", "[0,8]"), "overflows", 0},
    {T("\"F32\"", "[4611686018427387904,1]", "[0,8]"), "do not take", 0}, /* * 32 bits overflows */
    {T("\"F32\"", "[99999999999999999999]", "[0,8]"), "JSON", 0},
    {T("\"F32\"", "[3]", "[0,8]"), "do not take", 0},
    {T("\"F4\"", "[15]", "[0,8]"), "do not take", 0},
    {T("\"F32\"", "[2]", "[0]"), "two integers", 0},
    {T("\"F32\"", "[2]", "[0,8,8]"), "two integers", 0},
    {T("\"F32\"", "[2]", "[0,\"8\"]"), "two integers", 0},
    {T("\"F32\"", "[2]", "[-8,0]"), "not within", 0},
    {T("\"F32\"", "[2]", "[8,0]"), "not within", 0},
    {T("\"F32\"", "[2]", "[8,16]"), "not within", 0},
    {T("\"F32\"", "[1]", "[4,8]"), "no hole", 0},
    {T("\"F32\"", "[1]", "[0,4]"), "end at 4 of 8", 0},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
     "no overlap", 0},
    {"{\"__metadata__\":[]," OK_A "}", "__metadata__", 0},
    {"{\"__metadata__\":{\"format\":1}," OK_A "}", "__metadata__.format", 0},
};

static void refuses_malformed(void **state)
{
    (void)state;
    Error err;
    Safetensors *s;
    put(path_of("m"), "{" OK_A "}   ", 0, 8); /* the valid one, padded, is accepted */
    assert_int_equal(safetensors_open(path_of("m"), &s, &err), 0);
    safetensors_close(s);
    size_t n = sizeof malformed / sizeof *malformed;
    assert_true(n >= 30);
    for (size_t i = 0; i < n; i++) {
        put(path_of("m"), malformed[i].header, malformed[i].claim, 8);
        err.text[0] = 0;
        assert_int_equal(safetensors_open(path_of("m"), &s, &err), -1);
        assert_null(s);
        if (!strstr(err.text, malformed[i].expected))
            fail_msg("header %zu: expected '%s' in '%s'", i, malformed[i].expected, err.text);
    }
    assert_int_equal(file_write_atomic(path_of("m"), "{}", 2, &err), 0);
    assert_int_equal(safetensors_open(path_of("m"), &s, &err), -1);
    assert_int_equal(safetensors_open("/dev/null", &s, &err), -1);
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    alarm(100); /* a pipe that nobody writes to is not waited for */
    assert_int_equal(safetensors_open(path_of("pipe"), &s, &err), -1);
    assert_non_null(strstr(err.text, "expected a regular file"));
    alarm(0);
    assert_int_equal(safetensors_open(path_of("absent"), &s, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_reference_writer), cmocka_unit_test(round_trip),
        cmocka_unit_test(reads_other_dtypes),      cmocka_unit_test(rounds_to_bf16),
        cmocka_unit_test(refuses_to_write),        cmocka_unit_test(shards),
        cmocka_unit_test(refuses_malformed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
