/* The template teacher: equal seeds give equal kernels, and a mistake changes one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "stages/teacher/template.h"

static TemplateKernel generate(const Task *task, uint64_t seed, double rate)
{
    TemplateKernel k;
    Error err;
    if (template_for_task(task, (TemplateDraw){seed, rate, NULL}, &k, &err))
        fail_msg("%s", err.text);
    return k;
}

static void kernels_of_formulas(void **state)
{
    (void)state;
    TaskSet tasks;
    Error err;
    if (taskset_load(NULL, "silu_bias,bias_norm_rowadd,gelu_softmax,mm_tanh,silu_cumsum,relu",
                     &tasks, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < tasks.n; i++) {
        const Task *task = tasks.tasks[i];
        assert_int_equal(template_knows(task), strcmp(task->name, "relu") != 0);
        for (uint64_t seed = 0; seed < 20 && template_knows(task); seed++) {
            TemplateKernel a = generate(task, seed, 0), b = generate(task, seed, 0),
                           bad = generate(task, seed, 1);
            assert_string_equal(a.source, b.source);
            assert_string_equal(a.design, b.design);
            assert_string_equal(a.design, bad.design);
            assert_true(!a.mistake && bad.mistake);
            assert_string_not_equal(a.source, bad.source);
            template_release(&a);
            template_release(&b);
            template_release(&bad);
        }
    }
    taskset_release(&tasks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_of_formulas)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
