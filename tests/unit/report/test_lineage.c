/* What the page says beyond its scores: a kernel's lineage, a row for each model, and the curves
 * by model. */
#include "tests/unit/report/run_fixture.h"

#include "report/metrics/curves.h"

static void has(const Buffer *b, const char *text)
{
    if (!strstr(b->data, text)) fail_msg("expected '%s' in:\n%s", text, b->data);
}

static void has_not(const Buffer *b, const char *text)
{
    if (strstr(b->data, text)) fail_msg("expected no '%s' in:\n%s", text, b->data);
}

/* ---- lineage ---- */

static PoolItem item(const char *digest, const char *stage, int round, double score,
                     char (*parents)[DIGEST_HEX], int n)
{
    static char id[] = "i", task[] = "relu", source_text[] = "int a; // <\n";
    PoolItem p = {.id = id,
                  .task = task,
                  .source = source_text,
                  .stage = (char *)(uintptr_t)stage,
                  .round = round,
                  .score = score,
                  .parents = parents,
                  .n_parents = n};
    snprintf(p.source_digest, sizeof p.source_digest, "%s", digest);
    return p;
}

static void lineages(void **state)
{
    (void)state;
    char of_best[][DIGEST_HEX] = {"teacher", "second"},
         of_second[][DIGEST_HEX] = {"baseline", "teacher"};
    PoolItem items[] = {
        item("teacher", "collect", 0, 1.21, NULL, -1), item("plain", "selfsup", 1, 1.1, NULL, 0),
        item("second", "crl", 2, 1.48, of_second, 2), item("best", "crl", 5, 2.1, of_best, 2)};
    Pool pool = {items, 4};
    Lineage l;
    Buffer b;
    buffer_init(&b, 1 << 16);
    lineage_of(&pool, "relu", "best", &l);
    assert_int_equal(l.n_steps, 2);
    lineage_write(&l, "relu", 1, &b);
    lineage_sources(&l, "relu", &b);
    has(&b, "<li>This one, from <a class=\"link\" href=\"#relu-from-1\">teacher, 1.21×</a> and <a "
            "class=\"link\" href=\"#relu-from-2\">crl, round 2, 1.48×</a></li>");
    has(&b,
        "<li><a class=\"link\" href=\"#relu-from-2\">crl, round 2, 1.48×</a>, from the baseline "
        "and <a class=\"link\" href=\"#relu-from-1\">teacher, 1.21×</a></li>");
    has(&b, "<h4 id=\"relu-from-1\">teacher, 1.21×</h4><pre>int a; // &lt;\n</pre>");
    has(&b, "id=\"relu-from-2\"");
    has_not(&b, "id=\"relu-from-0\""); /* the page has the best one already */
    buffer_clear(&b);
    lineage_write(&l, "relu", 0, &b);
    has(&b, "This one, from teacher, 1.21× and crl, round 2, 1.48×</li>");
    has_not(&b, "<a ");
    lineage_release(&l);
    buffer_clear(&b);
    lineage_of(&pool, "relu", "plain", &l);
    lineage_write(&l, "relu", 1, &b);
    has(&b, "Its prompt showed no kernel.");
    lineage_release(&l);
    buffer_clear(&b);
    static const char *const unknown[] = {"teacher", "nowhere"};
    for (int i = 0; i < 2; i++) {
        lineage_of(&pool, "relu", unknown[i], &l);
        lineage_write(&l, "relu", 1, &b);
        lineage_release(&l);
    }
    assert_int_equal(b.len, 0);
    buffer_release(&b);
}

/* ---- models ---- */

static const Row first[] = {{"relu", "ok", 2},
                            {"relu", "wrong_result", 0},
                            {"softmax", "ok", 0.5},
                            {"gelu", "ok", 7}, /* heldout: in no score */
                            {"relu", "plan_error", 0, "error"}};
static const Row second[] = {{"relu", "ok", 4}, {"relu", "race", 0}};

static void load(Report *r, const char *tasks)
{
    static const char ledger[] = "1\topenai:a\t1000\t250\t0.25000000\n"
                                 "2\topenai:judge\t10\t2\t0.50000000\n3\topenai:a\t10";
    static char path[128];
    Error err = {0};
    ReportFiles f = report_files(tasks);
    const char *samples;
    snprintf(path, sizeof path, "%s/spent.tsv", dir);
    assert_int_equal(file_write_atomic(path, ledger, sizeof ledger - 1, &err), 0);
    f.ledger = path;
    producer = "openai:a";
    write_pair("collect", first, 5, &f.samples[REPORT_COLLECT], &f.verdicts[REPORT_COLLECT]);
    producer = "openai:<b>";
    write_pair("crl/1", second, 2, &samples, &f.rounds);
    producer = "native";
    write_pair("sft", second, 2, &f.samples[REPORT_SFT], &f.verdicts[REPORT_SFT]);
    producer = "x";
    if (report_load(&f, r, &err)) fail_msg("%s", err.text);
}

static void models(void **state)
{
    (void)state;
    Report r;
    Buffer b;
    buffer_init(&b, 1 << 16);
    load(&r, "relu,softmax,gelu");
    assert_int_equal(models_write(&r, &b), 3);
    has(&b, "<tr><td>openai:a<td>3<td>2<td>66.7%<td>2<td>1.50×<td>2.00× <small>relu</small>"
            "<td>5 k<td>1.25 k<td>$0.25</tr>");
    has(&b, "<tr><td>openai:&lt;b&gt;<td>2<td>1<td>50%<td>1<td>4.00×<td>4.00× "
            "<small>relu</small><td>2 k<td>0.5 k<td>–</tr>");
    has(&b, "<tr><td>openai:judge<td>0<td>0<td>–<td>0<td>–<td>–<td>–<td>–<td>$0.50</tr>");
    has_not(&b, "native");
    buffer_release(&b);
    report_release(&r);
}

/* The figure of rounds of a run on tasks of KernelBench. */
static void kernelbench(void **state)
{
    static const Row rows[] = {{"k1_19_relu", "ok", 2},
                               {"k1_23_softmax", "wrong_result", 0},
                               {"k2_12_gemm_multiply_leakyrelu", "ok", 3},
                               {"k2_17_conv2d_instancenorm_divide", "ok", 0.5}};
    (void)state;
    Report r;
    Buffer b;
    Error err = {0};
    ReportFiles f = report_files("kernelbench/level1/k1_19_relu,kernelbench/level1/k1_23_softmax,"
                                 "kernelbench/level2/k2_12_gemm_multiply_leakyrelu,"
                                 "kernelbench/level2/k2_17_conv2d_instancenorm_divide");
    buffer_init(&b, 1 << 18);
    write_pair("collect", rows, 4, &f.samples[REPORT_COLLECT], &f.verdicts[REPORT_COLLECT]);
    write_pair("sft", rows, 4, &f.samples[REPORT_SFT], &f.verdicts[REPORT_SFT]);
    if (report_load(&f, &r, &err)) fail_msg("%s", err.text);
    figure_rounds(&r, &b);
    has(&b, ">k2_12_gemm_mu… 3.00×</text>"); /* a long name does not leave the figure */
    has(&b, "data-of=\"k2_12_gemm_multiply_leakyrelu\"");
    has(&b, ">k1_19_relu 2.00×</text>");
    buffer_release(&b);
    report_release(&r);
}

/* ---- curves ---- */

static StepValue steps[10];

static FileNumbers file(const char *path, const char *stage, int round, const char *name,
                        double value)
{
    static int at = -1;
    at++;
    steps[at] = (StepValue){.value = value};
    snprintf(steps[at].name, sizeof steps[at].name, "%s", name);
    FileNumbers f = {.path = (char *)(uintptr_t)path, .round = round, .steps = &steps[at]};
    snprintf(f.stage, sizeof f.stage, "%s", stage);
    f.n_steps = 1;
    return f;
}

/* The models of two rounds of stage 3 after one of stage 2: three heldout points with HELDOUT_EVERY, four
 * of train tasks, two of which are the samples of the next round. */
static void by_model(void **state)
{
    (void)state;
    FileNumbers files[] = {file("crl/1/metrics.qa", "crl", 1, "plain.best8", 3),
                           file("crl/2/metrics.qa", "crl", 2, "plain.best8", 4),
                           file("report/crl-1/metrics.qa", "report", 0, "composition.best8", 2),
                           file("report/crl/metrics.qa", "report", 0, "plain.best8", 5),
                           file("report/sft/metrics.qa", "report", 0, "composition.best8", 1),
                           file("report/selfsup/metrics.qa", "report", 0, "composition.best8", 1.5),
                           file("report/crl-x/metrics.qa", "report", 0, "composition.best8", 9),
                           file("selfsup/1/metrics.qa", "selfsup", 1, "plain.best8", 2),
                           file("report/sft/metrics.qa", "report", 0, "heldout.best8", 7),
                           file("report/crl/metrics.qa", "report", 0, "heldout.best8", 7)};
    RunNumbers n = {files, 10};
    Buffer b;
    buffer_init(&b, 1 << 16);
    assert_int_equal(curves_write(&n, &b), 2);
    char *at = strstr(b.data, "aria-label=\"Best of 8, by model\"");
    assert_non_null(at);
    int plain = 0, heldout = 0;
    for (char *p = at; (p = strstr(p, "<title>train, ")); p++) plain++;
    for (char *p = at; (p = strstr(p, "<title>composition, ")); p++) heldout++;
    assert_int_equal(plain, 4);
    assert_int_equal(heldout, 3);
    const char *order[] = {"train, 0: 2<",      "train, 1: 3<",       "train, 2: 4<",
                           "train, 3: 5<",      "composition, 0: 1<", "composition, 1: 1.5<",
                           "composition, 2: 2<"};
    for (int i = 0; i < 7; i++)
        if (!(at = strstr(at, order[i]))) fail_msg("expected '%s' in %s", order[i], b.data);
    has_not(&b, "<title>heldout, "); /* the kinds of heldout tasks are apart */
    for (int i = 0; i < 8; i++)
        if (strstr(files[i].steps->name, "composition")) files[i].n_steps = 0;
    buffer_clear(&b);
    curves_write(&n, &b);
    has(&b, "<title>heldout, 0: 7<"); /* without a kind they are one line */
    buffer_release(&b);
}

static void turns(void **state)
{
    (void)state;
    StepValue v[] = {
        {1, "turn.1.samples", 8}, {1, "turn.1.success", 0.5}, {1, "turn.1.mean", 0.75},
        {1, "turn.1.best", 0.75}, {1, "turn.2.samples", 8},   {1, "turn.2.success", 0.75},
        {1, "turn.2.mean", 1},    {1, "turn.2.best", 1.25},   {1, "turn.2.mended", 0.25},
        {1, "turn.2.faster", 0},  {1, "turn.2.broken", 0.125}};
    FileNumbers f = {
        .path = (char *)(uintptr_t) "crl/3/metrics.qa", .round = 3, .steps = v, .n_steps = 11};
    snprintf(f.stage, sizeof f.stage, "crl");
    RunNumbers n = {&f, 1};
    Buffer b;
    buffer_init(&b, 1 << 16);
    assert_int_equal(learned_turns(&n, &b), 2);
    has(&b, "<tr class=\"top\"><td>crl 3<td>1<td>8<td>50%<td>0.75<td>0.75<td>–<td>–<td>–</tr>");
    has(&b, "<tr><td><td>2<td>8<td>75%<td>1.00<td>1.25<td>25%<td>0%<td>12%</tr>");
    f.n_steps = 4; /* a round of one turn has no table */
    assert_int_equal(learned_turns(&n, &b), 0);
    buffer_release(&b);
}

/* The loss of stage 1 and the loss of tasks that it does not learn from are two lines with a name each; a
 * line alone has none. */
static void validation(void **state)
{
    (void)state;
    StepValue v[4] = {{0, "loss", 3}, {1, "loss", 2}, {1, "validation", 2.5}, {2, "loss", 1}};
    FileNumbers f = {.path = (char *)(uintptr_t) "sft/model/metrics.qa", .steps = v, .n_steps = 4};
    snprintf(f.stage, sizeof f.stage, "sft");
    RunNumbers n = {&f, 1};
    Buffer b;
    buffer_init(&b, 1 << 16);
    assert_int_equal(curves_write(&n, &b), 1);
    assert_non_null(strstr(b.data, "of other tasks"));
    assert_non_null(strstr(b.data, "training"));
    buffer_clear(&b);
    v[2].name[0] = 'x';
    assert_int_equal(curves_write(&n, &b), 1);
    assert_null(strstr(b.data, "of other tasks"));
    buffer_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lineages),    cmocka_unit_test(models),
                                       cmocka_unit_test(kernelbench), cmocka_unit_test(by_model),
                                       cmocka_unit_test(validation),  cmocka_unit_test(turns)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
