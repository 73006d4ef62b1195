/* Prompts that say how many answers they ask for: the order of the answers, and the bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_have_bounds),
        cmocka_unit_test(rows_go_by_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
