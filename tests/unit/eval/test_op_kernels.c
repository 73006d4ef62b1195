/* The plain kernels of all operators on the simulator, or the device that QUERN_TEST_DEVICE names,
 * against their references. In float64 the kernels are the reference of a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/eval/op_device.h"

enum { CASES = 3 };

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

/* Half of a case's tensors are strided, so some of the first cases are. */
static void kernel(Batch *b, const Op *op, const json_t *cases)
{
    static const OpDtype dtypes[] = {OP_F32, OP_F16, OP_BF16, OP_F64};
    const json_t *max = largest(cases);
    if (!op->plain) return;
    add(b, op->name, max, OP_F32, 0);
    for (int d = 0; d < 4; d++)
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("op_kernels", tests, open_batch_compiler, close_compiler);
}
