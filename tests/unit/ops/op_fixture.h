/* One case of tests/fixtures/ops/FAMILY.json (tests/ops/ops_fixtures.py): an operator's call with inputs
 * drawn again from their seeds, and torch's double results. Values are JSON's null, booleans, numbers
 * and strings, lists of ints, and
 *
 *   {"shape":[2,3],"seed":7,"draw":"any","dtype":"float64","stride":[1,2],"offset":0}   a tensor
 *   [{...},{...}]                                                                      tensors
 *   {"dtype":"float32"}                                                                a dtype
 *   {"number":"inf"}                                                                   a float
 *
 * A result has its shape, its dtype unless float64, a view's input, stride and offset, and sampled
 * elements (`want`, at fixture_sample). `floor` is an absolute difference that passes, too. Include
 * after cmocka.h. A failure fails the test. */
#ifndef TESTS_UNIT_OPS_OP_FIXTURE_H
#define TESTS_UNIT_OPS_OP_FIXTURE_H

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op.h"
#include "tests/fixture_path.h"

enum { FIXTURE_CASES = 50 };

typedef struct {
    const char *name;
    OpCall call;
    double *storage[OP_MAX_TENSORS]; /* what each input is a view of */
    int64_t extent[OP_MAX_TENSORS];  /* its number of elements */
    double *in[OP_MAX_TENSORS];      /* logical elements in C order */
    double *out[OP_MAX_RESULTS];     /* of the reference */
} FixtureCase;

/* splitmix64 of (seed, i), 24 bits. */
static inline uint64_t fixture_bits(uint64_t seed, uint64_t i)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + (i + 1) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return z >> 40;
}

/* "any": [-2, 2); "special": the same, and NaN, infinities and 0; "positive": [0.125, 2.125];
 * "unit": [0, 1); "mask": 0 or 1; "index N": an integer below N; "steps N": N, 2 N ... from 0 on. */
static inline double fixture_drawn(const char *draw, uint64_t seed, uint64_t i)
{
    uint64_t bits = fixture_bits(seed, i);
    double x = (double)bits * 0x1p-22 - 2;
    if (!strcmp(draw, "positive")) return fabs(x) + 0.125;
    if (!strcmp(draw, "unit")) return (x + 2) / 4;
    if (!strcmp(draw, "mask")) return x > 0;
    if (!strcmp(draw, "special"))
        return bits % 8 < 4 ? (double[]){NAN, INFINITY, -INFINITY, 0}[bits % 8] : x;
    if (!strncmp(draw, "index ", 6)) return (double)(bits % strtoull(draw + 6, NULL, 10));
    if (!strncmp(draw, "steps ", 6)) return (double)(i * strtoull(draw + 6, NULL, 10));
    assert_string_equal(draw, "any");
    return x;
}

/* The flat index of the k-th sampled element of n. */
static inline int64_t fixture_sample(int64_t n, int k)
{
    return n <= 3 ? k : (int64_t)(fixture_bits((uint64_t)n, (uint64_t)k) % (uint64_t)n);
}

static inline Dtype fixture_dtype(const json_t *j, const char *otherwise)
{
    const char *name = json_is_string(j) ? json_string_value(j) : otherwise;
    Dtype d = dtype_named(name, strlen(name));
    if (d == DTYPES) fail_msg("unknown dtype %s", name);
    return d;
}

/* The place in memory of the logical element `flat`. */
static inline int64_t fixture_place(const OpTensor *t, int64_t flat)
{
    int64_t at = t->offset;
    for (int d = t->rank - 1; d >= 0; flat /= t->size[d--]) at += flat % t->size[d] * t->stride[d];
    return at;
}

static inline int64_t fixture_extent(const OpTensor *t)
{
    int64_t last = t->offset;
    for (int d = 0; d < t->rank; d++) last += t->size[d] ? (t->size[d] - 1) * t->stride[d] : 0;
    return last + 1;
}

static inline int64_t fixture_tensor(FixtureCase *f, const json_t *j)
{
    const json_t *shape = json_object_get(j, "shape"), *stride = json_object_get(j, "stride");
    OpTensor t = {.rank = (int)json_array_size(shape)};
    Error err;
    for (int d = 0; d < t.rank; d++)
        t.size[d] = json_integer_value(json_array_get(shape, (size_t)d));
    op_contiguous(&t);
    for (int d = 0; d < t.rank && stride; d++)
        t.stride[d] = json_integer_value(json_array_get(stride, (size_t)d));
    t.offset = json_integer_value(json_object_get(j, "offset"));
    const char *draw = json_string_value(json_object_get(j, "draw"));
    if (!draw) draw = "any";
    int whole = !strncmp(draw, "index", 5) || !strncmp(draw, "steps", 5);
    t.dtype = fixture_dtype(json_object_get(j, "dtype"), !strcmp(draw, "mask") ? "bool"
                                                         : whole               ? "int64"
                                                                               : "float64");
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(j, "seed"));
    int k = op_call_tensor(&f->call, &t, &err);
    if (k < 0) fail_msg("%s", err.text);
    int64_t n = op_elements(&t);
    f->extent[k] = n ? fixture_extent(&t) : 1;
    f->storage[k] = memory_array((size_t)f->extent[k], sizeof(double));
    f->in[k] = memory_array((size_t)n + 1, sizeof(double));
    for (int64_t i = 0; i < f->extent[k]; i++)
        f->storage[k][i] = fixture_drawn(draw, seed, (uint64_t)i);
    for (int64_t i = 0; i < n; i++) f->in[k][i] = f->storage[k][fixture_place(&t, i)];
    return k;
}

static inline OpValue fixture_list(FixtureCase *f, const json_t *j)
{
    OpValue v = {.kind = OP_INTS, .n = (int)json_array_size(j)};
    assert_true(v.n <= OP_MAX_LIST);
    for (int i = 0; i < v.n; i++) {
        const json_t *item = json_array_get(j, (size_t)i);
        if (json_is_object(item)) {
            v.kind = OP_TENSORS;
            v.integer[i] = fixture_tensor(f, item);
        } else {
            v.integer[i] = json_integer_value(item);
        }
    }
    return v;
}

static inline OpValue fixture_value(FixtureCase *f, const json_t *j)
{
    OpValue v = {0};
    const json_t *dtype = json_object_get(j, "dtype"), *number = json_object_get(j, "number");
    if (json_is_array(j)) return fixture_list(f, j);
    if (json_object_get(j, "shape")) {
        v.kind = OP_TENSOR;
        v.integer[0] = fixture_tensor(f, j);
    } else if (number) {
        v.kind = OP_FLOAT;
        v.number = strtod(json_string_value(number), NULL);
    } else if (dtype) {
        v.kind = OP_DTYPE;
        v.integer[0] = fixture_dtype(dtype, "float64");
    } else if (json_is_string(j)) {
        v.kind = OP_STRING;
        strncpy(v.text, json_string_value(j), sizeof v.text - 1);
    } else if (json_is_boolean(j)) {
        v.kind = OP_BOOL;
        v.integer[0] = json_is_true(j);
    } else if (json_is_integer(j)) {
        v.kind = OP_INT;
        v.integer[0] = json_integer_value(j);
    } else if (json_is_real(j)) {
        v.kind = OP_FLOAT;
        v.number = json_real_value(j);
    }
    return v;
}

/* Binds the call. */
static inline void fixture_bind(FixtureCase *f, const char *name, const json_t *j)
{
    Error err;
    OpValue values[OP_MAX_ARGS];
    const char *keyword[OP_MAX_ARGS] = {0}, *key;
    const json_t *args = json_object_get(j, "args");
    json_t *item;
    int n = 0;
    memset(f, 0, sizeof *f);
    f->name = name;
    const Op *op = op_find(name, &err);
    if (!op) fail_msg("%s", err.text);
    op_call_init(&f->call, op);
    for (; n < (int)json_array_size(args); n++)
        values[n] = fixture_value(f, json_array_get(args, (size_t)n));
    json_object_foreach(json_object_get(j, "kwargs"), key, item)
    {
        keyword[n] = key;
        values[n++] = fixture_value(f, item);
    }
    if (op_bind(&f->call, keyword, values, n, &err))
        fail_msg("%s: %s", err.text, json_dumps(j, JSON_SORT_KEYS));
}

/* Binds the call, infers its results and computes the reference. */
static inline void fixture_open(FixtureCase *f, const char *name, const json_t *j)
{
    Error err;
    fixture_bind(f, name, j);
    const Op *op = f->call.op;
    if (op_infer(&f->call, &err)) fail_msg("%s: %s", err.text, json_dumps(j, JSON_SORT_KEYS));
    for (int i = 0; i < f->call.n_results; i++)
        f->out[i] = memory_array((size_t)op_elements(&f->call.result[i]) + 1, sizeof(double));
    if (op->reference(&f->call, (const double *const *)f->in, f->out, &err))
        fail_msg("%s", err.text);
}

static inline void fixture_close(FixtureCase *f)
{
    for (int i = 0; i < OP_MAX_TENSORS; i++) free(f->storage[i]), free(f->in[i]);
    for (int i = 0; i < OP_MAX_RESULTS; i++) free(f->out[i]);
}

static inline void fixture_same_list(const FixtureCase *f, const char *what, const json_t *want,
                                     int n, const int64_t *got, const json_t *j)
{
    int same = n == (int)json_array_size(want);
    for (int d = 0; d < n && same; d++)
        same = got[d] == json_integer_value(json_array_get(want, (size_t)d));
    if (!same)
        fail_msg("%s: %s %lld, %lld, ... (%d) in %s", f->name, what, n > 0 ? (long long)got[0] : 0,
                 n > 1 ? (long long)got[1] : 0, n, json_dumps(j, JSON_SORT_KEYS));
}

static inline double fixture_number(const json_t *j)
{
    return json_is_string(j) ? strtod(json_string_value(j), NULL) : json_number_value(j);
}

/* The results have the shapes, memory and sampled elements that torch gave. Returns the elements'
 * largest difference, relative to torch's value and the floor. */
static inline double fixture_check(const FixtureCase *f, const json_t *j, double limit)
{
    const json_t *results = json_object_get(j, "results");
    const double floor = json_number_value(json_object_get(j, "floor")) + 1e-300;
    double largest = 0;
    if (f->call.n_results != (int)json_array_size(results))
        fail_msg("%s: %d results", f->name, f->call.n_results);
    for (int r = 0; r < f->call.n_results; r++) {
        const OpTensor *y = &f->call.result[r];
        const json_t *of = json_array_get(results, (size_t)r), *want = json_object_get(of, "want"),
                     *view = json_object_get(of, "view");
        fixture_same_list(f, "shape", json_object_get(of, "shape"), y->rank, y->size, j);
        if (y->dtype != fixture_dtype(json_object_get(of, "dtype"), "float64"))
            fail_msg("%s: dtype %s in %s", f->name, dtype_name(y->dtype), json_dumps(j, 0));
        if (f->call.view_of[r] != (view ? json_integer_value(view) : -1))
            fail_msg("%s: view of %d in %s", f->name, f->call.view_of[r], json_dumps(j, 0));
        if (view) {
            fixture_same_list(f, "stride", json_object_get(of, "stride"), y->rank, y->stride, j);
            assert_int_equal(y->offset, json_integer_value(json_object_get(of, "offset")));
        } else {
            assert_true(op_is_contiguous(y) && !y->offset);
        }
        for (size_t k = 0; k < json_array_size(want); k++) {
            int64_t at = fixture_sample(op_elements(y), (int)k);
            double g = f->out[r][at], w = fixture_number(json_array_get(want, k));
            if (!(fabs(g - w) <= limit * fabs(w) + floor) && !(isnan(g) && isnan(w)) && g != w)
                fail_msg("%s: result %d, element %lld is %.17g, torch has %.17g in %s", f->name, r,
                         (long long)at, g, w, json_dumps(j, JSON_SORT_KEYS));
            double difference = fabs(g - w) / (fabs(w) + floor / limit);
            if (isfinite(w) && difference > largest) largest = difference;
        }
    }
    return largest;
}

/* The kernels and the cost of a case can be written down. */
static inline void fixture_kernels(const FixtureCase *f)
{
    Buffer source;
    OpPlain plain = {.source = &source};
    OpCost cost;
    Error err;
    buffer_init(&source, 1 << 22);
    if (f->call.op->plain && op_plain(&f->call, &plain, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < plain.n; i++)
        assert_true(plain.launch[i].grid[0] > 0 && plain.launch[i].block[0] > 0 &&
                    strstr(source.data, plain.launch[i].kernel));
    if (op_cost(&f->call, &cost, &err)) fail_msg("%s", err.text);
    if (!(cost.bytes >= 0 && cost.flops >= 0))
        fail_msg("%s: %g bytes, %g flops", f->name, cost.bytes, cost.flops);
    free(plain.launch);
    buffer_release(&source);
}

/* The file of a family: {"aten.NAME": {"limit": 1e-12, "cases": [...]}}, and with "refused" true an
 * operator that the library knows but refuses. The caller releases it. */
static inline json_t *fixture_file(const char *family)
{
    char path[128];
    json_error_t e;
    snprintf(path, sizeof path, "tests/fixtures/ops/%s.json", family);
    json_t *all = json_load_file(fixture_path(path), 0, &e);
    if (!all) fail_msg("%s: %s", path, e.text);
    return all;
}

/* A call that the library refuses, whatever its arguments. */
static inline void fixture_refused(const char *name, const json_t *j)
{
    FixtureCase f;
    Error err;
    fixture_bind(&f, name, j);
    assert_int_not_equal(op_infer(&f.call, &err), 0);
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    fixture_close(&f);
}

/* Checks all cases of a family, which has an entry for each of its operators. Returns the largest
 * difference. */
static inline double fixture_family(OpFamily family)
{
    json_t *all = fixture_file(family.name);
    double largest = 0;
    for (int i = 0; i < family.n; i++) {
        const json_t *op = json_object_get(all, family.ops[i].name),
                     *cases = json_object_get(op, "cases");
        if (json_is_true(json_object_get(op, "refused"))) {
            fixture_refused(family.ops[i].name, json_array_get(cases, 0));
            continue;
        }
        if (json_array_size(cases) != FIXTURE_CASES)
            fail_msg("%s: %zu cases", family.ops[i].name, json_array_size(cases));
        for (size_t k = 0; k < FIXTURE_CASES; k++) {
            FixtureCase f;
            fixture_open(&f, family.ops[i].name, json_array_get(cases, k));
            largest = fmax(largest, fixture_check(&f, json_array_get(cases, k),
                                                  json_number_value(json_object_get(op, "limit"))));
            fixture_kernels(&f);
            fixture_close(&f);
        }
    }
    assert_int_equal(json_object_size(all), family.n);
    json_decref(all);
    return largest;
}

#endif
