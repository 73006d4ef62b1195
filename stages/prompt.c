#include "stages/prompt.h"

#include <string.h>

static void tensor_list(Buffer *out, const TaskTensor *x, int n)
{
    for (int i = 0; i < n; i++) {
        buffer_printf(out, " %s %s[", dtype_ctype(x[i].dtype), x[i].name);
        for (int k = 0; k < x[i].rank; k++) buffer_printf(out, "%s%s", k ? "," : "", x[i].shape[k]);
        buffer_puts(out, "]");
    }
}

static void code(Buffer *out, const char *s, size_t n)
{
    buffer_append(out, s, n);
    if (n && s[n - 1] != '\n') buffer_puts(out, "\n");
}

static const char full_head[] =
    "# Task for CUDA optimization\n"
    "You are an expert in CUDA and GPU kernel optimization. Given a reference implementation, write CUDA C++ device code\n"
    "with identical results that runs as fast as possible.\n\n"
    "A candidate is one CUDA C++ source, device code only, with its launch plan in comments:\n"
    "//@ buffer float partial[rows * 32]          scratch memory, if needed\n"
    "//@ launch name<<<grid, block, shared_bytes>>>(arguments)   in order of execution\n"
    "//@ for t in 0..steps                        repeats the launch on the next line\n"
    "grid and block are integer expressions or dim3(x, y, z) over the axes, with ceil_div, min, max. Arguments are axes (int),\n"
    "inputs, outputs and buffers (pointers) by name, or integer expressions. There is no host code.\n\n";

static const char full_restrictions[] =
    "# Requirements and Restrictions\n"
    "## Critical Requirements\n"
    "Results must match the reference for every size of the axes, else the score is 0. The code must compile and run.\n"
    "## Key Restrictions\n"
    "Do not cache or reuse results of earlier runs: every launch computes everything. Keep all hyper-parameters unchanged.\n\n";

static const char full_protocol[] =
    "# Generation Protocol\n"
    "Answer in three sections, each starting with exactly two hash symbols:\n"
    "## Performance Analysis\n"
    "Which implementations are better and why; which strategies have most potential; what limits performance; which techniques\n"
    "are not used yet; where the largest acceleration is to be had.\n"
    "## Algorithm Design\n"
    "Your approach.\n"
    "## Code Implementation\n"
    "The candidate in one ```cuda block.\n";

void prompt_write(Buffer *out, const Task *t, const Exemplar *ex, int n, int full)
{
    if (full) buffer_puts(out, full_head);
    buffer_printf(out, "# Task %s\n", t->name);
    if (full) buffer_printf(out, "%s\n", t->description);
    buffer_puts(out, "axes");
    for (int i = 0; i < t->n_axes; i++) buffer_printf(out, " %s", t->axis_name[i]);
    buffer_puts(out, "\nin");
    tensor_list(out, t->inputs, t->n_inputs);
    buffer_puts(out, "\nout");
    tensor_list(out, t->outputs, t->n_outputs);
    buffer_puts(out, full ? "\n\n# Reference Code\n```c\n" : "\n");
    if (full) {
        code(out, t->reference_source, strlen(t->reference_source));
        buffer_puts(out, "```\n\n");
    }
    if (n) buffer_puts(out, full ? "# Previous CUDA Implementations with Scores\n" : "# Previous\n");
    for (int i = 0; i < n; i++) {
        buffer_printf(out, "// code%d (score %.2f)\n", i + 1, ex[i].score);
        code(out, ex[i].source, ex[i].len);
    }
    if (full) buffer_printf(out, "%s%s%s", n ? "\n" : "", full_restrictions, full_protocol);
}
