/* What a run is worth: the model against its teacher, what training added, the intervals, and what the
 * first screen says of a run that found nothing and of an endpoint that was not trained. */
#include "tests/unit/report/run_fixture.h"

static const Row teacher[] = {{"relu", "ok", 2},
                              {"relu", "ok", 1.5},
                              {"softmax", "ok", 1.2},
                              {"matmul", "race", 0},
                              {"transpose", "ok", 1.1}};
/* relu: slower than the teacher's. softmax: faster. matmul: the teacher has nothing correct. transpose: equal
 * within a hundredth. */
static const Row model[] = {{"relu", "ok", 1.9},   {"softmax", "ok", 1.6},
                            {"matmul", "ok", 1.3}, {"transpose", "ok", 1.105},
                            {"gelu", "race", 0},   {"gelu", "timeout", 0}};
static const Row poor[] = {{"relu", "race", 0},
                           {"softmax", "race", 0},
                           {"matmul", "race", 0},
                           {"transpose", "race", 0},
                           {"gelu", "race", 0}};

static const char tasks[] = "relu,softmax,matmul,transpose,gelu";

typedef struct {
    Report r;
    TableRow rows[TABLE_ROWS];
    Standing s;
    Buffer page;
} Run;

/* The samples of stage 1; 5 of poor unless a test sets them. */
static const Row *first = poor;
static int n_first = 5;

static void load(Run *run, const Row *collect, int n_collect, const Row *crl, int n_crl)
{
    Error err = {0};
    ReportFiles f = report_files(tasks);
    if (collect)
        write_pair("collect", collect, n_collect, &f.samples[REPORT_COLLECT],
                   &f.verdicts[REPORT_COLLECT]);
    write_pair("sft", first, n_first, &f.samples[REPORT_SFT], &f.verdicts[REPORT_SFT]);
    write_pair("selfsup", poor, 5, &f.samples[REPORT_SELFSUP], &f.verdicts[REPORT_SELFSUP]);
    write_pair("crl", crl, n_crl, &f.samples[REPORT_CRL], &f.verdicts[REPORT_CRL]);
    if (report_load(&f, &run->r, &err)) fail_msg("%s", err.text);
    table_rows(&run->r, run->rows);
    standing_of(&run->r, &run->s);
    buffer_init(&run->page, 1 << 22);
    assert_int_equal(html_page(&run->r, run->rows, &run->page, &err), 0);
}

static void release(Run *run)
{
    buffer_release(&run->page);
    report_release(&run->r);
}

static void must(const Run *run, const char *text)
{
    if (!strstr(run->page.data, text)) fail_msg("the page lacks '%s'", text);
}

static void must_not(const Run *run, const char *text)
{
    if (strstr(run->page.data, text)) fail_msg("the page has '%s'", text);
}

static void model_beats_teacher(void **state)
{
    (void)state;
    Run run;
    load(&run, teacher, 5, model, 6);
    assert_int_equal(run.s.has_teacher, 1);
    assert_int_equal(run.s.tasks, 4);
    assert_int_equal(run.s.beaten, 2);
    assert_true(run.s.beaten_in.low >= 0 && run.s.beaten_in.low < 2);
    assert_true(run.s.beaten_in.high > 2 && run.s.beaten_in.high <= 4);
    near(run.s.gain.middle, 1); /* 4 of 4 against 0 of 4 */
    near(run.s.mean_before, 0);
    near(run.s.mean_after, (1.9 + 1.6 + 1.3 + 1.105) / 4);
    must(&run, "mean sample rises from 0.00× to 1.48×: +1.48, 95% interval +");
    must(&run, "The best kernels that the run found reach 1.46×. The model beat");
    must(&run, "The model beat its teacher on 2 of 4 train tasks.");
    must(&run, "<b>2 of 4</b>");
    must(&run, "the teacher alone gives 1.27×"); /* (2 1.2 1 1.1)^(1/4) */
    must(&run, "Of its 2 answers to 1 task held out of training none is correct.");
    must(&run, "A language model learns to write faster CUDA kernels");
    must(&run, "<b>0 of 2</b><span>answers of the final model to heldout tasks are correct: 0%");
    must_not(&run, "No weights were trained");
    must(&run, "–100]</small>");
    must_not(&run, "e+0"); /* 100, not 1e+02 */
    release(&run);
}

/* Nothing worked: no speedup is shown, although a task without a kernel counts as 1. */
static void no_kernel_worked(void **state)
{
    (void)state;
    Run run;
    load(&run, NULL, 0, poor, 5);
    assert_int_equal(run.s.beaten, 0);
    must(&run, "beat its baseline on none of 4 train tasks");
    must_not(&run, "mean sample"); /* of nothing */
    must(&run, "None of its answers to train tasks is correct, after stage 1 or stage 3.");
    must_not(&run, "which may be chance");
    must(&run, "<b>0 of 12</b><span>samples of the run are correct");
    must_not(&run, "1.00×</b>");
    must_not(&run, "<td class=\"hi\">1.00×");
    const Interval *none = &run.rows[9].in[TABLE_RATE]; /* crl, train: 0 of 4 */
    near(none->low, 0);
    near(none->high, 1 - pow(0.025, 0.25));
    release(&run);
}

static void untrained(void **state)
{
    (void)state;
    Run run;
    endpoint = "openai:big<1>";
    load(&run, teacher, 5, model, 6);
    must(&run,
         "<b>No weights were trained.</b> The model <code>openai:big&lt;1&gt;</code> answered");
    must(&run, "both are the same model");
    must_not(&run, "A language model learns");
    must_not(&run, "mean sample");
    release(&run);
    adapter = 1;
    load(&run, teacher, 5, model, 6);
    must(&run, "<code>openai:big&lt;1&gt;</code>, with an adapter of this run,");
    must_not(&run, "No weights were trained");
    release(&run);
    endpoint = NULL;
    adapter = 0;
}

/* A mean that falls is said to fall, with its interval; one whose interval has 0 may be chance. */
static void falling_mean(void **state)
{
    (void)state;
    static const Row slow[] = {{"relu", "ok", 0.9},
                               {"softmax", "ok", 0.6},
                               {"matmul", "ok", 0.3},
                               {"transpose", "ok", 0.105}};
    Run run;
    first = model;
    n_first = 6;
    load(&run, teacher, 5, slow, 4);
    near(run.s.rise.middle, -1);
    assert_true(run.s.rise.low <= -1 && run.s.rise.high >= -1 && run.s.rise.high < -0.99);
    must(&run,
         "mean sample <b>falls</b> from 1.48× to 0.48×: -1.00, 95% interval -1.00 to -1.00 (");
    release(&run);
    static const Row mixed[] = {{"relu", "ok", 2.9},
                                {"softmax", "ok", 0.6},
                                {"matmul", "ok", 2.3},
                                {"transpose", "ok", 0.105}};
    load(&run, teacher, 5, mixed, 4);
    near(run.s.rise.middle, 0);
    assert_true(run.s.rise.low < -0.3 && run.s.rise.high > 0.3);
    must(&run, "mean sample hardly changes, from 1.48× to 1.48×: ");
    must(&run, ", which may be chance (train tasks;");
    release(&run);
    first = poor;
    n_first = 5;
}

/* The interval of 4 tasks, half of whose samples work, holds the rate and is inside [0, 1]. One
 * task has no interval. */
static void intervals(void **state)
{
    (void)state;
    static const Row half[] = {{"relu", "ok", 1.5},      {"relu", "race", 0},
                               {"softmax", "ok", 1.5},   {"softmax", "race", 0},
                               {"matmul", "ok", 1.5},    {"matmul", "race", 0},
                               {"transpose", "ok", 1.5}, {"transpose", "race", 0}};
    Run run;
    load(&run, NULL, 0, half, 8);
    const TableRow *w = &run.rows[9];
    assert_string_equal(w->stage, "crl");
    near(w->in[TABLE_RATE].middle, 0.5);
    assert_true(w->in[TABLE_RATE].low >= 0 && w->in[TABLE_RATE].low < 0.4);
    assert_true(w->in[TABLE_RATE].high > 0.6 && w->in[TABLE_RATE].high <= 1);
    /* A resample without the correct sample of a task has 1 for it: the best of more is more. */
    assert_true(w->in[TABLE_GEOMEAN].low >= 1 && w->in[TABLE_GEOMEAN].low < 1.5);
    near(w->in[TABLE_GEOMEAN].high, 1.5);
    assert_true(isnan(run.rows[10].in[TABLE_GEOMEAN].low)); /* heldout: one task */
    release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_beats_teacher), cmocka_unit_test(no_kernel_worked),
        cmocka_unit_test(untrained),           cmocka_unit_test(falling_mean),
        cmocka_unit_test(intervals),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
