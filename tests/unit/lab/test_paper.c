/* The paper's tables beside a run's numbers: by stage, family, level and device. */
#include "tests/unit/report/run_fixture.h"

#include "lab/paper.h"

static void has(const Buffer *b, const char *text)
{
    if (!strstr(b->data, text)) fail_msg("expected '%s' in:\n%s", text, b->data);
}

static void has_not(const Buffer *b, const char *text)
{
    if (strstr(b->data, text)) fail_msg("expected no '%s' in:\n%s", text, b->data);
}

static const Row first[] = {{"relu", "ok", 2},
                            {"relu", "wrong_result", 0},
                            {"softmax", "ok", 0.5},
                            {"gelu", "ok", 7}, /* heldout: in no score */
                            {"relu", "plan_error", 0, "error"}};
static const Row second[] = {{"relu", "ok", 4}, {"relu", "race", 0}};

static void load(Report *r, const char *tasks)
{
    Error err = {0};
    ReportFiles f = report_files(tasks);
    const char *samples;
    write_pair("collect", first, 5, &f.samples[REPORT_COLLECT], &f.verdicts[REPORT_COLLECT]);
    write_pair("crl/1", second, 2, &samples, &f.rounds);
    write_pair("sft", second, 2, &f.samples[REPORT_SFT], &f.verdicts[REPORT_SFT]);
    if (report_load(&f, r, &err)) fail_msg("%s", err.text);
}

static void paper(void **state)
{
    (void)state;
    Report r;
    Buffer b;
    buffer_init(&b, 1 << 16);
    load(&r, "relu,softmax,gelu");
    paper_write(&r, &b);
    has(&b, "<tr><td>stage 1<td class=\"left\">this run<td>1<td class=\"hi\">4.00×");
    has(&b, "<tr class=\"soft\"><td>all stages<td class=\"left\">paper<td>250<td "
            "class=\"hi\">3.12×<td>120.00×<td>2.25×<td>1.42×<td>1.17×<td>99.6%<td>226</tr>");
    has(&b, "<td>all tasks<td class=\"left\">this run<td>2<td "
            "class=\"hi\">2.50×<td>4.00×<td>3.25×<td>2.50×<td>1.75×<td>100%<td>1</tr>");
    has(&b, "whose tasks are others");
    has_not(&b, "families of one task"); /* all of them are */
    has_not(&b, "KernelBench by level");
    has_not(&b, "nan");
    static char name[] = "x/kernelbench/level2/relu";
    char *own = r.tasks.tasks[1]->dir; /* gelu, relu, softmax */
    r.tasks.tasks[1]->dir = name;
    buffer_clear(&b);
    paper_write(&r, &b);
    has(&b, "KernelBench by level");
    has(&b, "<tr class=\"soft\"><td>level 3<td class=\"left\">paper<td>50<td class=\"hi\">2.96×");
    r.tasks.tasks[1]->dir = own;
    buffer_release(&b);
    report_release(&r);
}

/* A run on tasks of KernelBench: the rows of its levels, beside the paper's, and no families. */
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
    int counted[3] = {0};
    for (int i = 0; i < r.tasks.n; i++)
        counted[r.tasks.tasks[i]->level] += !r.tasks.tasks[i]->degenerate;
    assert_int_equal(r.tasks.n, 4);
    assert_int_equal(counted[1], 2);
    paper_write(&r, &b);
    has(&b, "<b>KernelBench by level: the whole run</b>");
    has(&b, "<tr><td>level 1<td class=\"left\">this run<td>2<td "
            "class=\"hi\">1.50×<td>2.00×<td>1.75×<td>1.50×<td>1.25×<td>50%<td>1</tr>");
    has(&b, counted[2] == 2
                ? "<tr><td>level 2<td class=\"left\">this run<td>2<td class=\"hi\">2.00×"
                : "<tr><td>level 2<td class=\"left\">this run<td>1<td class=\"hi\">3.00×");
    has(&b, "<td>level 2<td class=\"left\">paper<td>100<td class=\"hi\">3.55×");
    has_not(&b, "<tr><td>level 3");
    has_not(&b, "By family");
    has_not(&b, "whose tasks are others");
    has_not(&b, "nan");
    buffer_release(&b);
    report_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(paper), cmocka_unit_test(kernelbench)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
