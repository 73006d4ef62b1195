/* The prompts of every task: what a stranger needs is there, every plan line that is shown is one
 * that the plan's parser takes, the worked candidates are correct, and nothing is given away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "eval/candidate/plan.h"
#include "stages/policy/prompt_facts.h"
#include "tests/fixture_path.h"

static TaskSet tasks;

static char *prompt_of(const Task *t, int exemplars, const PromptStyle *style)
{
    Buffer b;
    Exemplar ex[2];
    buffer_init(&b, 1 << 20);
    for (int i = 0; i < 2; i++)
        ex[i] = (Exemplar){"baseline", t->baseline_source, strlen(t->baseline_source), 1 + i};
    prompt_write(&b, t, ex, exemplars, style);
    assert_false(b.full);
    char *text = buffer_detach(&b);
    buffer_release(&b);
    return text;
}

static const char *next_line(const char *p, size_t *len)
{
    const char *nl = strchr(p, '\n');
    *len = nl ? (size_t)(nl - p) : strlen(p);
    return nl ? nl + 1 : p + *len;
}

/* Parses one plan line, with what the parser needs beside it. */
static void plan_line(const char *line, const char *task)
{
    Plan p;
    Fault f;
    char *source = memory_printf("%s\n//@ launch last<<<1, 1>>>(x)\n", line);
    if (plan_parse(source, strlen(source), 0, &p, &f))
        fail_msg("%s: %s in: %s", task, f.message, line);
    plan_release(&p);
    free(source);
}

/* Checks every line that begins with the plan's mark, wherever it stands. Returns how many. */
static int plan_lines(const char *text, const char *task)
{
    int n = 0;
    size_t len;
    for (const char *p = text, *next; *p; p = next) {
        next = next_line(p, &len);
        size_t blank = strspn(p, " \t-`");
        if (blank >= len || strncmp(p + blank, "//@", 3)) continue;
        char *line = memory_strndup(p + blank, len - blank);
        plan_line(line, task);
        free(line);
        n++;
    }
    return n;
}

static void plans(void **state)
{
    (void)state;
    for (int i = 0; i < tasks.n; i++)
        for (int full = 0; full < 2; full++)
            for (int n = 0; n < 3; n++) {
                char *text = prompt_of(tasks.tasks[i], n,
                                       &(PromptStyle){.full = full, .device = "sim:h100"});
                int lines = plan_lines(text, tasks.tasks[i]->name);
                assert_true(lines >= full + n);
                free(text);
            }
}

static void facts_of_a_prompt(void **state)
{
    (void)state;
    static const char *const said[] = {
        "y[r, c] = exp(x[r, c] - m[r]) / sum", /* the formula */
        "void reference(",
        "Timed at rows = 8192, cols = 4096.",
        "rows = 1, cols = 37; rows = 7, cols = 33",
        "H100 SXM (sm_90): 132 SMs",
        "65536 registers of 32 bits, 228 KiB of shared memory",
        "L2 holds 50 MiB, DRAM\nmoves 3350 GB/s",
        "must move 268 MB",
        "DRAM alone takes 80.13 us",
        "over what eager PyTorch launches, 1 launch (softmax), which takes 123.5 us there.",
        "Times are predicted",
        "within 1e-08 + 3e-05 * |expected|",
        "undefined values at the start of every run",
        "Refused: host code",
        "cuda_fp16.h",
        "multiply_add<<<ceil_div(n, 1024), 256>>>",
        "codeA is faster than codeB",
        "```cuda"};
    const PromptStyle style = {1, "sim:h100", 123.456, 1};
    const Task *t = taskset_find(&tasks, "softmax", 7);
    char *text = prompt_of(t, 2, &style);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (!strstr(text, said[i])) fail_msg("not in the prompt: %s\n%s", said[i], text);
    free(text);
    text = prompt_of(t, 0, &style);
    assert_null(strstr(text, "codeA"));
    free(text);
}

/* A GPU times the module's own sizes, a simulator the shortened ones. */
static void own_sizes(void **state)
{
    (void)state;
    TaskSet set = {0};
    Error err;
    static const char *const said[2][2] = {
        {"Timed at rows = 512, cols = 393216. ", "must move 1.61e+03 MB"},
        {"Timed at rows = 4096, cols = 393216, or, on a GPU without room for that, at rows = 512",
         "must move 1.29e+04 MB"}};
    if (taskset_load(NULL, "kernelbench/level1/k1_19_relu", &set, &err)) fail_msg("%s", err.text);
    for (int gpu = 0; gpu < 2; gpu++) {
        const PromptStyle style = {1, gpu ? "NVIDIA H200" : "sim:h100", 0, !gpu};
        char *text = prompt_of(set.tasks[0], 0, &style);
        for (int i = 0; i < 2; i++)
            if (!strstr(text, said[gpu][i])) fail_msg("not: %s\n%s", said[gpu][i], text);
        free(text);
    }
    taskset_release(&set);
}

/* A task's prompt shows no candidate of its own family, and no word of a task without work. */
static void nothing_given_away(void **state)
{
    (void)state;
    for (int i = 0; i < tasks.n; i++) {
        const Task *t = tasks.tasks[i];
        char *text = prompt_of(t, 0, &(PromptStyle){.full = 1, .device = "sim:h100"});
        assert_null(strcasestr(text, "degenerate"));
        assert_null(strcasestr(text, "avoidable"));
        int elements = !strcmp(t->op_type, "elementwise");
        assert_int_equal(strstr(text, "multiply_add") == NULL, elements);
        assert_int_equal(strstr(text, "partial_max") != NULL, elements);
        free(text);
    }
}

static void devices(void **state)
{
    (void)state;
    static const struct {
        const char *class, *said;
        int known;
    } cases[] = {{"sim:h20", "H20 (sm_90): 78 SMs", 1},
                 {"NVIDIA H200", "H200 SXM (sm_90): 132 SMs", 1},
                 {"NVIDIA H20", "H20 (sm_90): 78 SMs", 1},
                 {"NVIDIA H100 80GB HBM3", "H100 SXM", 1},
                 {"NVIDIA GeForce RTX 3090", "GeForce RTX 3090 (sm_86)", 1},
                 {"NVIDIA A100-SXM4-80GB", "A100 SXM", 1},
                 {"NVIDIA H100 PCIe", "NVIDIA H100 PCIe.\n", 0},
                 {"NVIDIA L40S", "NVIDIA L40S.\n", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Buffer b;
        buffer_init(&b, 10000);
        double dram = prompt_device_write(&b, cases[i].class);
        assert_memory_equal(b.data, cases[i].said, strlen(cases[i].said));
        assert_int_equal(dram > 0, cases[i].known);
        buffer_release(&b);
    }
}

/* A brief prompt of a graph says what is computed in one formula, and a full one line by line. */
static void graphs(void **state)
{
    (void)state;
    Task *t;
    Error err;
    if (task_load(fixture_path("tests/fixtures/op_lines/tasks/op_layer"), &t, &err))
        fail_msg("%s", err.text);
    char *brief = prompt_of(t, 0, &(PromptStyle){.full = 0});
    assert_non_null(strstr(brief, "\nh = x @ weight.T + bias\n"));
    assert_true(strlen(brief) < 400);
    char *full = prompt_of(t, 0, &(PromptStyle){.full = 1, .device = "sim:h100"});
    assert_non_null(strstr(full, "```python\nh = aten.linear(x, weight, bias)\n"));
    assert_non_null(strstr(full, "PyTorch launches, 6 launches (aten.linear.default, "));
    assert_non_null(strstr(full, "The task must move "));
    free(brief);
    free(full);
    task_free(t);
}

static int load_tasks(void **state)
{
    (void)state;
    Error err;
    return taskset_load(NULL, NULL, &tasks, &err);
}

static int release_tasks(void **state)
{
    (void)state;
    taskset_release(&tasks);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans),
                                       cmocka_unit_test(facts_of_a_prompt),
                                       cmocka_unit_test(nothing_given_away),
                                       cmocka_unit_test(devices),
                                       cmocka_unit_test(graphs),
                                       cmocka_unit_test(own_sizes)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("prompt", tests, load_tasks, release_tasks);
}
