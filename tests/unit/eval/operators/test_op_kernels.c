/* The plain kernels of all operators on the simulator, or the device that QUERN_TEST_DEVICE names,
 * against their references. In float64 the kernels are the reference of a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/eval/operators/op_device.h"

enum { CASES = 2 };

/* The elements of a case's tensors, without the lists of tensors. */
static int64_t elements(const json_t *j)
{
    int64_t all = 0;
    size_t i, d;
    json_t *arg, *size;
    json_array_foreach(json_object_get(j, "args"), i, arg)
    {
        int64_t n = 1;
        json_array_foreach(json_object_get(arg, "shape"), d, size) n *= json_integer_value(size);
        all += n;
    }
    return all;
}

static const json_t *largest(const json_t *cases)
{
    const json_t *found = NULL;
    size_t i;
    json_t *j;
    json_array_foreach(cases, i, j) if (!found || elements(j) > elements(found)) found = j;
    return found;
}

/* Half of a case's tensors are strided, so some of the first cases are. Half types differ in their loads and
 * stores alone: an operator has one of them. */
static void kernel(Batch *b, const Op *op, const json_t *cases)
{
    const Dtype dtypes[] = {DTYPE_F32, strlen(op->name) % 2 ? DTYPE_F16 : DTYPE_BF16, DTYPE_F64};
    const json_t *max = largest(cases);
    if (!op->plain) return;
    add(b, op->name, max, DTYPE_F32, 0);
    for (int d = 0; d < 3; d++)
        for (int n = 0; n < (getenv("ONLY_OP") ? 16 : d ? 1 : CASES); n++) {
            const json_t *one = json_array_get(cases, (size_t)(d * 3 + n));
            if (d || one != max) add(b, op->name, one, dtypes[d], 0);
        }
}

static void kernels(void **state)
{
    (void)state;
    each_operator(kernel);
}

/* Lists in which neighbours differ in their address alone, which share the text of a kernel. */
static void tensors_alike(void **state)
{
    static const char *const cases[][2] = {
        {"aten.cat.default",
         "{'args':[[{'shape':[2,3,5],'seed':1},"
         "{'shape':[2,2,5],'seed':2},{'shape':[2,2,5],'seed':3},"
         "{'shape':[2,2,5],'seed':4},{'shape':[2,2,5],'seed':5},{'shape':[2,2,5],'seed':6},"
         "{'shape':[2,1,5],'seed':7},{'shape':[2,2,5],'stride':[10,1,2],'seed':8},"
         "{'shape':[2,2,5],'stride':[10,1,2],'seed':9},"
         "{'shape':[2,2,5],'stride':[10,1,2],'seed':10},"
         "{'shape':[2,2,5],'stride':[10,1,2],'seed':11},{'shape':[0],'seed':12},"
         "{'shape':[2,2,5],'seed':13}],1],'results':[{'shape':[2,24,5],'want':[]}]}"},
        {"aten.stack.default",
         "{'args':[[{'shape':[3,4],'seed':1},{'shape':[3,4],'seed':2},{'shape':[3,4],'seed':3},"
         "{'shape':[3,4],'seed':4},{'shape':[3,4],'seed':5}],1],"
         "'results':[{'shape':[3,5,4],'want':[]}]}"}};
    static const Dtype dtypes[] = {DTYPE_F32, DTYPE_F16, DTYPE_F64};
    Batch b = {.n = 0};
    json_t *j[2];
    (void)state;
    buffer_init(&b.source, 1 << 22);
    choose_device();
    flush(&b);
    for (int i = 0; i < 2; i++) {
        char *text = memory_strdup(cases[i][1]);
        for (char *p = text; *p; p++) *p = *p == '\'' ? '"' : *p;
        assert_non_null(j[i] = json_loads(text, 0, NULL));
        free(text);
        for (int d = 0; d < 3; d++) assert_int_equal(add(&b, cases[i][0], j[i], dtypes[d], 0), 1);
    }
    assert_non_null(strstr(b.source.data, "switch (blockIdx.y)"));
    flush(&b);
    for (int i = 0; i < 2; i++) json_decref(j[i]);
    buffer_release(&b.source);
    free(b.plain.launch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels), cmocka_unit_test(tensors_alike)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("op_kernels", tests, NULL, close_batch_compiler);
}
