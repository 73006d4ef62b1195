/* Prompts of wide tasks: which are drawn, and how many answers they ask for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lab/wide.h"
#include "stages/data/promptset.h"

/* The tasks of the prompts behind the first `own` ones, by comma; each has `groups` prompts. */
static void wide_names(const PromptSet *p, int own, int groups, int copies, char *out, size_t size)
{
    out[0] = '\0';
    for (long i = 0; i < p->n; i++) {
        const PromptItem *x = &p->items[i];
        assert_int_equal(x->copies, i < own ? 0 : copies);
        if (i < own) continue;
        int g = (int)(i - own) % groups;
        assert_int_equal(x->contrastive, g > 0);
        size_t n = strlen(out);
        if (g == 0) snprintf(out + n, size - n, "%s,", x->task);
    }
}

static void wide_tasks_are_drawn(void **state)
{
    (void)state;
    Error err;
    TaskSet tasks;
    Wide w = {.ask = 3, .copies = 5};
    Pool pool;
    PromptFacts facts;
    ArtifactSpec spec;
    char drawn[3][200], stage[16];
    /* gelu and layernorm are held out, so they are never asked */
    if (taskset_load(NULL, "relu", &tasks, &err) ||
        wide_load(NULL, "attention,gelu,layernorm,matmul,row_sum,softmax,transpose", &tasks, &w,
                  &err) ||
        pool_load(NULL, &pool, &err) || prompt_facts_load(0, NULL, NULL, &facts, &err))
        fail_msg("%s", err.text);
    int train = 0;
    for (int i = 0; i < w.tasks.n; i++) train += !w.tasks.tasks[i]->heldout;
    assert_true(train > 3);
    PromptOptions o = {.groups = 2,
                       .plain = 1,
                       .exemplars = 2,
                       .facts = &facts,
                       .draw = {.temperature = 1, .floor = 0.5, .apart = 1},
                       .more = wide_write,
                       .ctx = &w,
                       .seed = 1};
    for (int round = 0; round < 3; round++) {
        PromptSet p;
        snprintf(stage, sizeof stage, "crl-%d", round % 2 + 1);
        o.stage = stage;
        artifact_spec_init(&spec, "prompts", "test_wide");
        if (prompts_write(&tasks, &pool, &o, "wide.qa", &spec, &err) ||
            promptset_load("wide.qa", &p, &err))
            fail_msg("%s", err.text);
        artifact_spec_release(&spec);
        assert_int_equal(p.n, 2 + 3 * 2);
        wide_names(&p, 2, 2, 5, drawn[round], sizeof drawn[round]);
        assert_null(strstr(drawn[round], "gelu"));
        assert_null(strstr(drawn[round], "layernorm"));
        promptset_release(&p);
    }
    assert_string_not_equal(drawn[0], drawn[1]); /* each round has others */
    assert_string_equal(drawn[0], drawn[2]);     /* by its name and the seed alone */
    w.ask = 100;
    PromptSet p;
    artifact_spec_init(&spec, "prompts", "test_wide");
    if (prompts_write(&tasks, &pool, &o, "all.qa", &spec, &err) ||
        promptset_load("all.qa", &p, &err))
        fail_msg("%s", err.text);
    artifact_spec_release(&spec);
    assert_int_equal(p.n, 2 + 2 * train);
    promptset_release(&p);
    prompt_facts_release(&facts);
    pool_release(&pool);
    taskset_release(&w.tasks);
    taskset_release(&tasks);
}

static void no_task_twice(void **state)
{
    (void)state;
    Error err;
    TaskSet tasks;
    Wide w = {.ask = 1};
    assert_int_equal(taskset_load(NULL, "relu,softmax", &tasks, &err), 0);
    assert_int_equal(wide_load(NULL, "gelu,relu", &tasks, &w, &err), -1);
    assert_non_null(strstr(err.text, "found relu"));
    taskset_release(&w.tasks);
    taskset_release(&tasks);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(wide_tasks_are_drawn),
                                       cmocka_unit_test(no_task_twice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
