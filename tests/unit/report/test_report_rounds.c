/* Rounds in the report: samples without an answer, doubts about records, many rounds, and inputs
 * that are refused. */
#include "tests/unit/report/run_fixture.h"

/* Samples whose endpoint failed are no attempts, in a stage and in a round. A round without its
 * samples cannot tell. */
static void failed_endpoint_is_no_attempt(void **state)
{
    (void)state;
    static const Row rows[] = {{"relu", "ok", 1.5},
                               {"relu", "plan_error", 0, "error"},
                               {"relu", "plan_error", 0, "length"},
                               {"relu", "evaluator_error", 0}};
    Error err = {0};
    Report r;
    ReportFiles f = report_files("relu");
    const char *samples;
    write_pair("lost", rows, 4, &f.samples[REPORT_CRL], &f.verdicts[REPORT_CRL]);
    write_pair("lost/1", rows, 4, &samples, &f.rounds);
    if (report_load(&f, &r, &err)) fail_msg("%s", err.text);
    const Tally *tallies[] = {&r.task[0].stage[REPORT_CRL], &r.task[0].round[0]};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tallies[i]->attempted, 2);
        assert_int_equal(tallies[i]->succeeded, 1);
    }
    assert_int_equal(r.task[0].run.attempted, 4);
    assert_int_equal(r.outcomes[REPORT_CRL][OUTCOME_EVALUATOR_ERROR], 2);
    assert_int_equal(r.outcomes[REPORT_CRL][OUTCOME_PLAN_ERROR], 1);
    assert_int_equal(r.failed[OUTCOME_EVALUATOR_ERROR], 4);
    assert_int_equal(r.failed[OUTCOME_PLAN_ERROR], 2);
    assert_int_equal(r.n_messages, 3);
    assert_string_equal(r.inputs[1].path, samples); /* the report names it, since it was used */
    report_release(&r);
    assert_int_equal(remove(samples), 0);
    if (report_load(&f, &r, &err)) fail_msg("%s", err.text);
    assert_int_equal(r.task[0].round[0].attempted, 3);
    report_release(&r);
}

static void doubt_is(const char *name, const Row *round, int n, const Row *later,
                     const char *expected)
{
    Error err = {0};
    Report r;
    ReportFiles f = report_files("relu");
    char folder[64];
    const char *unused;
    f.device = "cuda:0";
    snprintf(folder, sizeof folder, "%s/1", name);
    write_pair(folder, round, n, &unused, &f.rounds);
    write_pair(name, later, 1, &f.samples[REPORT_SFT], &f.verdicts[REPORT_SFT]);
    if (report_load(&f, &r, &err)) fail_msg("%s", err.text);
    if (strcmp(r.task[0].doubt, expected))
        fail_msg("%s: '%s', expected '%s'", name, r.task[0].doubt, expected);
    report_release(&r);
}

/* One source, judged more than once. The score gives the confirmation: none (2), disputed (3),
 * confirmed (9), no record (1). */
static void doubts(void **state)
{
    (void)state;
    static const Row none = {"relu", "ok", 1}, alone = {"relu", "ok", 2}, no = {"relu", "ok", 3},
                     yes = {"relu", "ok", 9};
    const Row yes_no[] = {yes, no}, no_yes[] = {no, yes};
    doubt_is("alone-yes", &alone, 1, &yes, "");
    doubt_is("yes-alone", &yes, 1, &alone, "");
    doubt_is("no-yes", &no, 1, &yes, "");
    doubt_is("yes-no", &yes, 1, &no, "disputed");
    doubt_is("no-alone", &no, 1, &alone, "disputed");
    doubt_is("alone-none", &alone, 1, &none, "unconfirmed");
    doubt_is("yes-no-none", yes_no, 2, &none, "disputed");
    doubt_is("no-yes-none", no_yes, 2, &none, "");
}

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, part)); p++) n++;
    return n;
}

/* 601 rounds, which alternate between two sets of verdicts. */
static void many_rounds(void **state)
{
    (void)state;
    static const Row round_1[] = {{"relu", "ok", 4},
                                  {"softmax", "ok", 1.005},
                                  {"softmax", "race", 0},
                                  {"diag_matmul", "ok", 20}};
    static const Row round_2[] = {{"relu", "ok", 1.5}, {"softmax", "ok", 1.2}};
    Error err = {0};
    Report r;
    ReportFiles f = report_files("relu,softmax");
    const char *unused, *pair[2];
    Buffer list, b;
    write_pair("many/1", round_1, 4, &unused, &pair[0]);
    write_pair("many/2", round_2, 2, &unused, &pair[1]);
    buffer_init(&list, 1 << 20);
    buffer_init(&b, 1 << 22);
    for (int i = 0; i < 601; i++) buffer_printf(&list, "%s%s", i ? "," : "", pair[i % 2]);
    f.rounds = list.data;
    if (report_load(&f, &r, &err)) fail_msg("%s", err.text);
    assert_int_equal(r.n_rounds, 601);
    assert_string_equal(r.round_name[600], "many 1");
    assert_int_equal(r.task[0].run.attempted, 301 + 300);
    near(r.task[0].round[599].best, 1.5);
    near(r.task[0].round[600].best, 4);
    TableRow w[TABLE_ROWS];
    table_rows(&r, w);
    assert_int_equal(html_page(&r, w, &b, &err), 0);
    assert_int_equal(figure_rounds_per_point(&r),
                     3); /* 201 points after collect, each with relu's 4 among its rounds */
    assert_non_null(strstr(b.data, "There are 601 rounds: each point is the best of 3"));
    assert_int_equal(count_of(b.data, "4.00×, "), 200); /* in the title, between points */
    assert_int_equal(count_of(b.data, "<circle class=\"dot\""), 0);
    assert_in_range(count_of(b.data, "class=\"t mid\""), 10, 14);
    report_release(&r);
    buffer_clear(&list);
    for (int i = 0; i <= REPORT_MAX_ROUNDS; i++) buffer_puts(&list, i ? ",x" : "x");
    f.rounds = list.data;
    assert_int_equal(report_load(&f, &r, &err), -1);
    assert_non_null(strstr(err.text, "expected at most 16384 rounds, found 16385"));
    report_release(&r);
    buffer_release(&list);
    buffer_release(&b);
}

static void refuses(void **state)
{
    (void)state;
    Error err = {0};
    Report r;
    const char *unused;
    ReportFiles f = report_files("relu");
    static const Row wrong[] = {{"relu", "fine", 1}};
    write_pair("bad/1", wrong, 1, &unused, &f.rounds);
    assert_int_equal(report_load(&f, &r, &err), -1);
    assert_non_null(strstr(err.text, "unknown outcome 'fine'"));
    report_release(&r);
    f.rounds = "/nowhere/verdicts.qa";
    assert_int_equal(report_load(&f, &r, &err), -1);
    report_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_endpoint_is_no_attempt),
        cmocka_unit_test(doubts),
        cmocka_unit_test(many_rounds),
        cmocka_unit_test(refuses),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
