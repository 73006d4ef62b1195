/* The report: statistics against numbers worked out by hand, a small run read from artifacts, and
 * what the page must and must not have. */
#include "tests/unit/report/run_fixture.h"

#include <unistd.h>

static void percentiles(void **state)
{
    (void)state;
    const double v[] = {1, 2, 4, 8};
    near(table_percentile(v, 4, 0), 1);
    near(table_percentile(v, 4, 0.25), 1.75);
    near(table_percentile(v, 4, 0.5), 3);
    near(table_percentile(v, 4, 0.75), 5);
    near(table_percentile(v, 4, 1), 8);
    near(table_percentile(v, 1, 0.25), 1);
}

static void statistics(void **state)
{
    (void)state;
    TableRow w;
    double v[] = {4, 1, 1.01, 2, 1};
    table_statistics(v, 5, &w);
    assert_int_equal(w.tasks, 5);
    assert_int_equal(w.faster, 2); /* 1.01 is not faster */
    near(w.mean, 9.01 / 5);
    near(w.geomean, pow(8.08, 0.2));
    near(w.median, 1.01);
    near(w.max, 4);
    near(w.p25, 1);
    near(w.p75, 2);
    table_statistics(v, 0, &w);
    assert_int_equal(w.tasks, 0);
    assert_true(isnan(w.mean) && isnan(w.geomean) && isnan(w.p75));
}

/* ---- a small run ---- */

static const Row sft[] = {{"relu", "ok", 2},       {"relu", "wrong_result", 0},
                          {"softmax", "race", 0},  {"softmax", "ok", 0.7},
                          {"gelu", "ok", 0.5},     {"gelu", "ok", 3},
                          {"diag_matmul", "ok", 9}};
static const Row others[] = {{"relu", "ok", 1.5}, {"softmax", "ok", 1.2}, {"gelu", "timeout", 0}};
static const Row round_1[] = {
    {"relu", "ok", 4}, {"softmax", "ok", 1.005}, {"softmax", "race", 0}, {"diag_matmul", "ok", 20}};

static const Row again[] = {
    {"relu", "ok", 1.9}, {"softmax", "evaluator_error", 0}, {"gelu", "wrong_result", 0}};

static const char *write_results(void)
{
    static const struct {
        const char *device, *outcome;
        double score;
    } rows[] = {{"sim:h100", "ok", 1.9}, {"sim:l40", "launch_error", 0}, {"sim:a100", "ok", 1.3}};
    static char path[128];
    Error err = {0};
    ArtifactSpec spec;
    ArtifactWriter *w;
    snprintf(path, sizeof path, "%s/results.qa", dir);
    artifact_spec_init(&spec, "results", "quern-test");
    assert_int_equal(artifact_create(path, &spec, &w, &err), 0);
    for (int i = 0; i < 3; i++) {
        Record *r = record_new();
        record_text(r, "task", "relu");
        record_text(r, "split", "train");
        record_int(r, "level", 1);
        record_bool(r, "degenerate", 0);
        record_text(r, "device", rows[i].device);
        record_bool(r, "predicted", 1);
        record_float(r, "score", rows[i].score);
        record_text(r, "outcome", rows[i].outcome);
        record_text(r, "source", source);
        record_text(r, "baseline_source", source);
        record_float(r, "time_us", 1);
        record_float(r, "baseline_us", 1);
        if (artifact_write(w, r, &err)) fail_msg("%s", err.text);
        record_free(r);
    }
    assert_int_equal(artifact_finish(w, &err), 0);
    return path;
}

static void load_some(Report *r, int n_again)
{
    Error err = {0};
    ReportFiles f = {.run = "a<b",
                     .profile = "smoke",
                     .device = "sim:h100",
                     .tasks = "relu,softmax,gelu,diag_matmul",
                     .task_root = fixture_path("tasks")};
    const char *unused;
    write_pair("sft", sft, 7, &f.samples[REPORT_SFT], &f.verdicts[REPORT_SFT]);
    write_pair("selfsup", others, 3, &f.samples[REPORT_SELFSUP], &f.verdicts[REPORT_SELFSUP]);
    write_pair("crl", others, 3, &f.samples[REPORT_CRL], &f.verdicts[REPORT_CRL]);
    write_pair("crl/1", round_1, 4, &unused, &f.rounds);
    if (n_again) f.results = write_results();
    if (n_again) write_pair("again", again, n_again, &f.again_samples, &f.again_verdicts);
    if (report_load(&f, r, &err)) fail_msg("%s", err.text);
}

static void load_run(Report *r)
{
    load_some(r, 0);
}

typedef struct {
    int tasks;
    long attempted, succeeded;
    int faster;
    double mean, geomean, median, p25;
} RowFigures;

static void row_is(const TableRow *w, RowFigures is)
{
    assert_int_equal(w->tasks, is.tasks);
    assert_int_equal(w->attempted, is.attempted);
    assert_int_equal(w->succeeded, is.succeeded);
    assert_int_equal(w->faster, is.faster);
    near(w->mean, is.mean);
    near(w->geomean, is.geomean);
    near(w->median, is.median);
    near(w->p25, is.p25);
}

static void table_of_a_run(void **state)
{
    (void)state;
    Report r;
    TableRow w[TABLE_ROWS];
    Buffer tsv;
    load_run(&r);
    table_rows(&r, w);
    assert_string_equal(w[3].stage, "sft");
    row_is(&w[3],
           (RowFigures){2, 4, 2, 1, 1.5, sqrt(2), 1.5,
                        1.25}); /* train: 2 and 1 (0.7 is not better); diag_matmul is left out */
    row_is(&w[4], (RowFigures){1, 2, 2, 1, 3, 3, 3, 3});         /* heldout */
    row_is(&w[5], (RowFigures){3, 6, 4, 2, 2, cbrt(6), 2, 1.5}); /* all: 1, 2, 3 */
    row_is(&w[10], (RowFigures){1, 1, 0, 0, 1, 1, 1, 1}); /* crl, heldout: nothing was correct */
    row_is(&w[12], (RowFigures){2, 11, 8, 2, 2.6, sqrt(4.8), 2.6,
                                1.9}); /* best, train: 4 of round 1, 1.2 of selfsup */
    row_is(&w[13], (RowFigures){1, 4, 2, 1, 3, 3, 3, 3});
    buffer_init(&tsv, 1 << 16);
    table_tsv(w, &tsv);
    assert_non_null(strstr(
        tsv.data,
        "stage\tsplit\ttasks\tattempted\tsucceeded\tfaster\tmean\tgeomean\tmedian\tmax\tp25\tp75\t"
        "rate_low\trate_high\t"));
    assert_non_null(strstr(tsv.data, "\nsft\ttrain\t2\t4\t2\t1\t1.5000\t1.4142\t1.5000\t2.0000\t1."
                                     "2500\t1.7500\t0.0000\t1.0000\t"));
    buffer_release(&tsv);
    static const char *const doubts[] = {"", "disputed", "unconfirmed",
                                         ""}; /* diag_matmul, gelu, relu, softmax */
    for (int i = 0; i < 4; i++) assert_string_equal(r.task[i].doubt, doubts[i]);
    near(r.task[2].round[0].best, 4);
    assert_string_equal(r.round_name[0], "crl 1");
    assert_int_equal(r.failed[OUTCOME_RACE], 2); /* the messages are equal and counted as one */
    assert_int_equal(r.failed[OUTCOME_TIMEOUT], 2);
    assert_int_equal(r.outcomes[REPORT_SFT][OUTCOME_OK], 2); /* of train tasks */
    report_release(&r);
}

static void fits(const char *text, size_t columns)
{
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
        if (strcspn(p, "\n") > columns)
            fail_msg("more than %zu columns: %.*s", columns, (int)strcspn(p, "\n"), p);
}

/* The last lines of a run are for a person. */
static void last_lines(void **state)
{
    (void)state;
    Report r;
    Buffer b;
    load_run(&r);
    buffer_init(&b, 1 << 16);
    summary_write(&r, "runs/x", &b);
    fits(b.data, 80);
    assert_non_null(strstr(b.data, "The model beat its "));
    assert_non_null(strstr(b.data, "\nstage 1          2        2       1    2.00x"));
    assert_non_null(strstr(b.data, "The page: runs/x/report.html\n"));
    assert_null(strstr(b.data, "nan"));
    assert_true(r.judged > 0);
    assert_int_equal(r.unjudged, 0);
    r.judged = 33;
    r.unjudged = 3;
    buffer_clear(&b);
    assert_int_equal(summary_unjudged(&r, &b), 0);
    assert_string_equal(b.data, "3 of 33 verdicts were not made: the evaluator failed.\n");
    r.unjudged = 4;
    assert_int_equal(summary_unjudged(&r, &b), 1);
    report_release(&r);
    buffer_release(&b);
}

/* The second judgement replaces the score: a lower one, a failed evaluator, and a wrong result. */
static void judged_again(void **state)
{
    (void)state;
    Report r;
    TableRow w[TABLE_ROWS];
    Buffer b;
    Error err = {0};
    load_some(&r, 3);
    table_rows(&r, w);
    row_is(&w[3],
           (RowFigures){2, 4, 2, 1, 1.45, sqrt(1.9), 1.45, 1.225}); /* sft, train: 1.9 after 2 */
    row_is(&w[4], (RowFigures){1, 2, 2, 0, 1, 1, 1, 1});            /* heldout: nothing after 3 */
    row_is(&w[12], (RowFigures){2, 11, 8, 2, 1.55, sqrt(1.9 * 1.2), 1.55, 1.375});
    near(r.task[2].score, 1.9);
    near(r.task[2].time_us, 12 / 1.9);
    near(r.task[3].stage[REPORT_SELFSUP].best, 1.2);
    assert_null(r.task[1].source);
    assert_int_equal(explain_rows(&r.task[1], (CounterRow[EXPLAIN_ROWS]){{0}}), 0);
    buffer_init(&b, 1 << 22);
    assert_int_equal(html_page(&r, w, &b, &err), 0);
    static const char *const must[] = {
        "<td class=\"hi\">1.90×<td class=\"lo\">launch_error<td class=\"hi\">1.30×</tr>",
        "1.90× predicted",
        "A predicted speedup is within 1.4× of a GPU's for 9 kernels in 10",
        "Found in the report's sft samples at 2.00×",
        "refused when judged again",
        "a judgement after the one that chose it",
        "The fastest kernel (3.00×, found in the report's sft samples) was refused when it was "
        "judged again, on other inputs: wrong_result: "
        "index 17 of &lt;y&gt; is 0.5. The baseline stands."};
    for (size_t i = 0; i < sizeof must / sizeof *must; i++)
        if (!strstr(b.data, must[i])) fail_msg("the page lacks '%s'", must[i]);
    buffer_release(&b);
    report_release(&r);
}

static void explains(void **state)
{
    (void)state;
    Report r;
    Buffer b;
    CounterRow rows[EXPLAIN_ROWS];
    load_run(&r);
    const ReportTask *relu = &r.task[2];
    assert_string_equal(relu->task->name, "relu");
    assert_string_equal(relu->found, "the report's sft samples");
    int n = explain_rows(relu, rows);
    assert_int_equal(n, 3); /* equal launches are left out */
    assert_string_equal(rows[0].label, "predicted time");
    near(rows[0].after, 6);
    assert_string_equal(rows[1].label, "DRAM traffic");
    near(rows[2].before, 640);
    buffer_init(&b, 4096);
    explain_text(relu, &b);
    assert_string_equal(b.data, "The baseline is limited most by DRAM. This kernel moves less to "
                                "and from DRAM: 4.00 MB instead of "
                                "12.0 MB; it also has fewer bank conflicts: 0 instead of 640.");
    buffer_clear(&b);
    /* A kernel without loads does not coalesce them better. */
    Counters loads = {1, {{"sector_bytes_used", 0.4}}}, none = {1, {{"sector_bytes_used", 0}}};
    ReportTask t = {
        .source = relu->source, .score = 2, .time_us = NAN, .baseline = loads, .best = none};
    explain_text(&t, &b);
    assert_null(strstr(b.data, "coalesces"));
    assert_int_equal(explain_rows(&t, rows), 0);
    buffer_clear(&b);
    explain_text(&(ReportTask){.source = NULL}, &b);
    assert_string_equal(b.data, "No sample was correct; the baseline stands.");
    buffer_release(&b);
    report_release(&r);
}

static void numbers(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *unit, *want;
    } cases[] = {{0, "", "0"},
                 {7, "", "7"},
                 {0.5, "", "0.50"},
                 {42.25, "µs", "42.2 µs"},
                 {999, "", "999"},
                 {1000, "", "1,000"},
                 {1070.4, "µs", "1,070 µs"},
                 {1234567, "", "1,234,567"},
                 {123456, "", "123,456"},
                 {512, "B", "512 B"},
                 {1.5e6, "B", "1.50 MB"},
                 {25.6e9, "B", "25.6 GB"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[40];
        why_number(cases[i].v, cases[i].unit, out, sizeof out);
        assert_string_equal(out, cases[i].want);
    }
}

static void highlights(void **state)
{
    (void)state;
    Buffer b;
    buffer_init(&b, 4096);
    highlight_cuda(&b, "//@ launch k<<<1>>>(x)\n#define A 1.5f // c\nint a = \"x<\\\"\"[0] /* m\n "
                       "*/ & blockIdx.x; 'y");
    assert_string_equal(
        b.data, "<i class=p>//@ launch k&lt;&lt;&lt;1&gt;&gt;&gt;(x)</i>\n<i class=k>#define</i> A "
                "<i class=n>1.5f</i> "
                "<i class=c>// c</i>\n<i class=k>int</i> a = <i "
                "class=s>&quot;x&lt;\\&quot;&quot;</i>[<i class=n>0</i>] "
                "<i class=c>/* m\n */</i> &amp; <i class=b>blockIdx</i>.x; <i class=s>'y</i>");
    buffer_clear(&b);
    highlight_cuda(&b, "/* open");
    assert_string_equal(b.data, "<i class=c>/* open</i>");
    buffer_release(&b);
}

static void page(void **state)
{
    (void)state;
    Report r;
    TableRow w[TABLE_ROWS];
    Buffer b;
    Error err = {0};
    load_run(&r);
    table_rows(&r, w);
    buffer_init(&b, 1 << 22);
    assert_int_equal(html_page(&r, w, &b, &err), 0);
    static const char *const must[] = {
        "prefers-color-scheme:dark",
        "\nh3{font-size:17px;line-height:1.35;margin:0}p{margin:8px 0;",
        "svg .t{fill:var(--soft)}",
        "<script>(function(){var d=document,all=",
        "'\\n'+text(w[0])+(w[1]?'  '+w[1]:'')",
        "Quern: the run a&lt;b",
        "2.00× predicted",
        "degenerate: in no mean",
        "no GPU was timed",
        "index 17 of &lt;y&gt; is 0.5",
        "y = <i class=s>&quot;&lt;/pre&gt;&quot;</i>",
        "name=&lt;sft&gt;",
        "</script></body></html>"};
    for (size_t i = 0; i < sizeof must / sizeof *must; i++)
        if (!strstr(b.data, must[i])) fail_msg("the page lacks '%s'", must[i]);
    static const char *const must_not[] = {"http:",    "https:", "src=", "url(", "@import",
                                           "<script ", "nan",    " inf", "/*"};
    for (size_t i = 0; i < sizeof must_not / sizeof *must_not; i++)
        if (strstr(b.data, must_not[i])) fail_msg("the page holds '%s'", must_not[i]);
    for (int i = 0; i < r.n_inputs; i++) assert_non_null(strstr(b.data, r.inputs[i].path));
    buffer_release(&b);
    report_release(&r);
}

/* A run of a degenerate task alone has no numbers. */
static void degenerate_only(void **state)
{
    (void)state;
    Report r;
    TableRow w[TABLE_ROWS];
    Buffer b;
    Error err = {0};
    ReportFiles f = report_files("diag_matmul");
    for (int s = REPORT_SFT; s < REPORT_STAGES; s++)
        write_pair("degenerate", &sft[6], 1, &f.samples[s], &f.verdicts[s]);
    if (report_load(&f, &r, &err)) fail_msg("%s", err.text);
    table_rows(&r, w);
    buffer_init(&b, 1 << 22);
    assert_int_equal(html_page(&r, w, &b, &err), 0);
    assert_non_null(
        strstr(b.data, "<b>–</b><span>no answer of the final model to a train task counts</span>"));
    assert_null(strstr(b.data, "nan"));
    buffer_release(&b);
    report_release(&r);
}

static void in_best(const char *name, int expected)
{
    char path[200];
    snprintf(path, sizeof path, "%s/out/best/%s", dir, name);
    if (file_exists(path) != expected)
        fail_msg("best/%s: expected %s", name, expected ? "it to stay" : "none");
}

/* The kernels of an earlier report are removed; files of other kinds stay. */
static void best_files(void **state)
{
    (void)state;
    static const char *const before[] = {"transpose.cu", "relu.cu", "note.txt", ".relu.cu"};
    Report r;
    Error err = {0};
    char path[200];
    load_run(&r);
    snprintf(path, sizeof path, "%s/out/best/folder.cu", dir);
    assert_int_equal(file_mkdirs(path, &err), 0);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/out/best/%s", dir, before[i]);
        assert_int_equal(file_write_atomic(path, "old", 3, &err), 0);
    }
    snprintf(path, sizeof path, "%s/out/best/link.cu", dir);
    assert_int_equal(symlink("note.txt", path), 0);
    snprintf(path, sizeof path, "%s/out", dir);
    if (best_write(&r, path, &err)) fail_msg("%s", err.text);
    static const char *const stay[] = {"relu.cu",  "softmax.cu", "note.txt",
                                       ".relu.cu", "folder.cu",  "link.cu"};
    for (int i = 0; i < 6; i++) in_best(stay[i], 1);
    in_best("transpose.cu", 0);
    free(r.task[3].source);
    r.task[3].source = NULL;
    if (best_write(&r, path, &err)) fail_msg("%s", err.text);
    in_best("softmax.cu", 0);
    in_best("relu.cu", 1);
    report_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles),    cmocka_unit_test(statistics),
        cmocka_unit_test(table_of_a_run), cmocka_unit_test(judged_again),
        cmocka_unit_test(last_lines),     cmocka_unit_test(explains),
        cmocka_unit_test(numbers),        cmocka_unit_test(highlights),
        cmocka_unit_test(page),           cmocka_unit_test(degenerate_only),
        cmocka_unit_test(best_files),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
