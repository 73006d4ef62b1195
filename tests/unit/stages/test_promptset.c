/* Prompts that say how many answers they ask for: the order of the answers, the bounds, and the wide
 * tasks that each round draws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stages/crl/prompts.h"
#include "stages/data/promptset.h"

static void write_one(const char *path, int copies)
{
    ArtifactSpec spec;
    ArtifactWriter *w;
    Error err;
    artifact_spec_init(&spec, "prompts", "test_promptset");
    if (artifact_create(path, &spec, &w, &err)) fail_msg("%s", err.text);
    Record *r = record_new();
    record_text(r, "id", "a");
    record_text(r, "task", "relu");
    record_text(r, "split", "train");
    record_text(r, "kind", "plain");
    record_text(r, "text", "# Task relu\n");
    if (copies) record_int(r, "copies", copies);
    if (artifact_write(w, r, &err) || artifact_finish(w, &err)) fail_msg("%s", err.text);
    record_free(r);
    artifact_spec_release(&spec);
}

static void copies_have_bounds(void **state)
{
    (void)state;
    Error err;
    PromptSet p;
    const int good[] = {0, 1, 7, PROMPT_MAX_COPIES}, bad[] = {-1, PROMPT_MAX_COPIES + 1};
    for (int i = 0; i < 4; i++) {
        write_one("good.qa", good[i]);
        assert_int_equal(promptset_load("good.qa", &p, &err), 0);
        assert_int_equal(p.items[0].copies, good[i]);
        assert_int_equal(promptset_spread(&p, 12), good[i] ? good[i] : 12);
        promptset_release(&p);
    }
    for (int i = 0; i < 2; i++) {
        write_one("bad.qa", bad[i]);
        assert_int_equal(promptset_load("bad.qa", &p, &err), -1);
        assert_non_null(strstr(err.text, "copies: expected 1 to 4096"));
    }
}

static void rows_go_by_prompt(void **state)
{
    (void)state;
    PromptItem items[] = {{.copies = 0}, {.copies = 5}, {.copies = 1}, {.copies = 0}};
    const int expected[] = {3, 5, 1, 3};
    PromptSet p = {.items = items, .n = 4};
    assert_int_equal(promptset_spread(&p, 3), 12);
    long row = 0;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < expected[i]; k++, row++) {
            int copy = -1;
            assert_int_equal(promptset_row(&p, row, &copy), i);
            assert_int_equal(copy, k);
        }
    const PromptSet one = {.items = items + 3, .n = 1};
    int copy;
    items[3].first_row = 0;
    assert_int_equal(promptset_row(&one, 2, &copy), 0);
    assert_int_equal(copy, 2);
    PromptSet none = {0};
    assert_int_equal(promptset_spread(&none, 3), 0);
}

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
    TaskSet tasks, wide;
    Pool pool;
    PromptFacts facts;
    ArtifactSpec spec;
    char drawn[3][200], stage[16];
    /* gelu and layernorm are held out, so they are never asked */
    if (taskset_load(NULL, "relu", &tasks, &err) ||
        taskset_load(NULL, "attention,gelu,layernorm,matmul,row_sum,softmax,transpose", &wide,
                     &err) ||
        pool_load(NULL, &pool, &err) || prompt_facts_load(0, NULL, NULL, &facts, &err))
        fail_msg("%s", err.text);
    int train = 0;
    for (int i = 0; i < wide.n; i++) train += !wide.tasks[i]->heldout;
    assert_true(train > 3);
    PromptOptions o = {.groups = 2,
                       .plain = 1,
                       .exemplars = 2,
                       .facts = &facts,
                       .draw = {.width = 0.25, .temperature = 1, .floor = 0.5, .apart = 1},
                       .wide = {.tasks = &wide, .ask = 3, .copies = 5},
                       .seed = 1};
    for (int round = 0; round < 3; round++) {
        PromptSet p;
        snprintf(stage, sizeof stage, "crl-%d", round % 2 + 1);
        o.stage = stage;
        artifact_spec_init(&spec, "prompts", "test_promptset");
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
    o.wide.ask = 100;
    PromptSet p;
    artifact_spec_init(&spec, "prompts", "test_promptset");
    if (prompts_write(&tasks, &pool, &o, "all.qa", &spec, &err) ||
        promptset_load("all.qa", &p, &err))
        fail_msg("%s", err.text);
    artifact_spec_release(&spec);
    assert_int_equal(p.n, 2 + 2 * train);
    promptset_release(&p);
    prompt_facts_release(&facts);
    pool_release(&pool);
    taskset_release(&wide);
    taskset_release(&tasks);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_have_bounds),
        cmocka_unit_test(rows_go_by_prompt),
        cmocka_unit_test(wide_tasks_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
