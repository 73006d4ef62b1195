/* The printed rules of a run: their words, a round's rules as they are printed, and no file with two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "stages/settings/rules.h"

static void words(void **state)
{
    (void)state;
    Rules r = {0};
    rules_set_text(&r, "run", "runs/{x}  y");
    rules_set_number(&r, "n", 3);
    rules_set(&r, "dir", " {run}/crl/{n} ");
    rules_set(&r, "none", "");
    assert_string_equal(rules_word(&r, "dir"), "runs/{x}  y/crl/3");
    rules_set_number(&r, "n", 4);
    rules_set(&r, "dir", "{dir}/{n}  {none} end {none}");
    assert_string_equal(rules_word(&r, "dir"), "runs/{x}  y/crl/3/4 end");
    rules_add(&r, "none", ",", "");
    rules_add(&r, "none", ",", "{n}");
    rules_add(&r, "none", ",", "b");
    assert_string_equal(rules_word(&r, "none"), "4,b");
    rules_release(&r);
}

/* The rules of a run with these settings. The caller frees the text. */
static char *printed(const char *const *settings, int n)
{
    Error err = {0};
    Settings s = {.share = getenv("QUERN_SOURCE"), .found = ""};
    Buffer b;
    buffer_init(&b, 1 << 20);
    if (settings_resolve(settings, n, &s, &err) || settings_check(&s, &err) ||
        settings_derive(&s, &err))
        fail_msg("%s", err.text);
    settings_print_rules(&s, &b);
    settings_release(&s);
    return buffer_detach(&b);
}

static void a_round(void **state)
{
    (void)state;
    char *text = printed((const char *const[]){"PROFILE=smoke", "RUN=x", "ROUNDS=3"}, 3);
    assert_non_null(strstr(
        text, "\n\ncrl-3-prompts: runs/x/crl/3/prompts.qa\n"
              "runs/x/crl/3/prompts.qa: runs/x/crl/2/pool.qa runs/x/cfg/crl runs/x/cfg/tasks\n"
              "\t$(run) $(B)/$(prompt) --output $@ --pool runs/x/crl/2/pool.qa $(tasks) "
              "--stage crl-3 $(crl_prompts) "
              "--style $(STYLE) $(facts) --seed $(SEED)\n\ncrl-3-samples: "));
    assert_non_null(strstr(text, "\nruns/x/crl/3/samples.qa: runs/x/crl/3/prompts.qa "
                                 "runs/x/crl/2/model/manifest.qa runs/x/cfg/crl\n"));
    assert_non_null(strstr(text, "\nruns/x/crl/1/samples.qa: runs/x/crl/1/prompts.qa "
                                 "runs/x/selfsup/1/model/manifest.qa runs/x/cfg/crl\n"));
    assert_non_null(strstr(text, " crl-3-samples crl-3-verdicts "));
    assert_non_null(strstr(text, " --stage crl --round 3 --prompts runs/x/crl/3/prompts.qa "
                                 "--reviews runs/x/crl/3/reviews.qa\n\t$(live)\n"));
    assert_non_null(strstr(text, "--history \"runs/x/crl/1/samples.qa:runs/x/crl/1/verdicts.qa,"
                                 "runs/x/crl/2/samples.qa:runs/x/crl/2/verdicts.qa\" "));
    free(text);
}

static void eight_rounds_of_history(void **state)
{
    (void)state;
    char *text = printed((const char *const[]){"PROFILE=smoke", "RUN=x", "ROUNDS=11"}, 3);
    assert_non_null(strstr(text, "--history \"runs/x/crl/3/samples.qa:runs/x/crl/3/verdicts.qa,"));
    assert_null(strstr(text, "--history \"runs/x/crl/4/"));
    free(text);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every target has one rule, no word in braces is left, and nothing is expanded twice. */
static void one_rule_a_file(void **state)
{
    (void)state;
    static const char *const more[] = {"TURNS=3", "UPDATE=none", "STYLE=full", "POLICY=openai:M",
                                       "JUDGE=openai:J"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        enum { MAX = 400 };
        char *text = printed((const char *const[]){"PROFILE=smoke", "ROUNDS=4", more[i]}, 3), *save,
             *target[MAX];
        int n = 0;
        assert_null(strpbrk(text, "{}"));
        assert_null(strstr(text, "$$"));
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
            char *colon = strstr(line, ": ");
            if (strncmp(line, "runs/", 5) || !colon) continue;
            *colon = 0;
            assert_true(n < MAX);
            target[n++] = line;
        }
        assert_true(n > 40);
        qsort(target, (size_t)n, sizeof *target, by_bytes);
        for (int k = 1; k < n; k++) assert_string_not_equal(target[k - 1], target[k]);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(a_round),
        cmocka_unit_test(eight_rounds_of_history),
        cmocka_unit_test(one_rule_a_file),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
