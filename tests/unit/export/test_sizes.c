/* The sizes that a package accepts are those of its verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/memory.h"
#include "export/package.h"

enum { OWN_ROWS = 4096, TIMED_ROWS = 512, COLS = 393216 };

static void own_sizes_that_were_judged(void **state)
{
    (void)state;
    TaskSet set = {0};
    Error err;
    int64_t low, high;
    Package *p = memory_alloc(sizeof *p);
    if (taskset_load(NULL, "kernelbench/level1/k1_19_relu", &set, &err)) fail_msg("%s", err.text);
    const Task *t = p->task = set.tasks[0];
    for (int own = 0; own < 2; own++) {
        Buffer text;
        buffer_init(&text, 1 << 12);
        p->judged.pairs[0].timed = own ? t->own : task_workload(t, ROLE_TIME);
        package_axis_bounds(p, 0, &low, &high);
        assert_int_equal(high, own ? OWN_ROWS : TIMED_ROWS);
        assert_int_equal(package_max_elements(p, &t->inputs[0]), (size_t)high * COLS);
        package_accepts(p, &text);
        if (!strstr(text.data, own ? "to 4096 " : "to 512 ")) fail_msg("%s", text.data);
        buffer_release(&text);
    }
    free(p);
    taskset_release(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_sizes_that_were_judged)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
