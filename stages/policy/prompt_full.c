/* The sections of the style full. Every plan line here is one that the plan's parser takes: models
 * copy what they see. */
#include <string.h>

#include "eval/candidate/plan.h"
#include "stages/policy/prompt_facts.h"

/* ---- what a candidate is ---- */

static const char rules[] =
    "# Task for CUDA optimization\n"
    "You are an expert in CUDA and GPU kernel optimization. Given a reference implementation, "
    "write CUDA C++ device code\n"
    "with the same results that runs as fast as possible.\n\n"
    "# The form of a candidate\n"
    "A candidate is one CUDA C++ source with device code only: __global__ kernels and what they "
    "call. A harness compiles it\n"
    "with NVRTC (-std=c++17), allocates all memory, launches the kernels as a plan says, and "
    "checks and times them. The\n"
    "plan stands in the source, in comment lines that begin with //@, each a whole line with "
    "nothing after it:\n"
    "- `buffer TYPE name[elements]` declares scratch memory in DRAM.\n"
    "- `launch kernel<<<grid, block>>>(arguments)` launches a kernel; a third value in the angle "
    "brackets is the dynamic\n"
    "  shared memory in bytes. Launches run in the order of their lines, each after the one "
    "before.\n"
    "- `for t in 0..steps` repeats the launch on the next plan line for t = 0 to steps - 1.\n"
    "Grid and block are an integer expression or dim3(x, y, z). Expressions are C's over the axes, "
    "with ceil_div, min and max.\n"
    "Arguments are in the order of the kernel's parameters: inputs, outputs and buffers by name "
    "(pointers), axes by name (int),\n"
    "integer expressions, or float literals. The harness picks the sizes; do not assume that they "
    "divide evenly.\n"
    "Outputs and buffers hold undefined values at the start of every run: write each element "
    "before it is read, and every\n"
    "element of each output. Inputs are read-only.\n"
    "Allowed: CUDA's device headers (cuda_fp16.h, cuda_bf16.h, mma.h, cuda_pipeline.h, "
    "cooperative_groups.h, cub's block and\n"
    "warp parts), C's headers such as math.h and stdint.h, templates, shared memory, warp "
    "shuffles, atomics, inline PTX, tensor\n"
    "cores where the tolerance permits.\n"
    "Refused: host code of any kind (main, a <<<>>> call, cudaMalloc, PyTorch bindings), other "
    "headers (torch, thrust, C++'s\n"
    "standard library), libraries such as cuBLAS, malloc, new, kernels that launch kernels, "
    "barriers over the whole grid, streams.\n\n";

/* Two whole candidates. The first reduces rows in two launches, the second works by element. */
static const char example_rows[] =
    "axes rows cols, in float x[rows,cols], out float y[rows], y[r] = max over c of |x[r, c]|:\n"
    "```cuda\n"
    "//@ buffer float partial[rows * 4]\n"
    "//@ launch partial_max<<<dim3(4, rows), 256>>>(x, partial, cols)\n"
    "//@ launch finish<<<ceil_div(rows, 256), 256>>>(partial, y, rows)\n"
    "\n"
    "extern \"C\" __global__ void partial_max(const float *x, float *partial, int cols)\n"
    "{\n"
    "    __shared__ float warps[8];\n"
    "    const float *row = x + (size_t)blockIdx.y * cols;\n"
    "    float m = 0.0f;\n"
    "    for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < cols; c += gridDim.x * "
    "blockDim.x)\n"
    "        m = fmaxf(m, fabsf(row[c]));\n"
    "    for (int s = 16; s; s >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, s));\n"
    "    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = m;\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x) return;\n"
    "    for (int w = 1; w < 8; w++) m = fmaxf(m, warps[w]);\n"
    "    partial[blockIdx.y * 4 + blockIdx.x] = m;\n"
    "}\n"
    "\n"
    "extern \"C\" __global__ void finish(const float *partial, float *y, int rows)\n"
    "{\n"
    "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (r >= rows) return;\n"
    "    const float *p = partial + 4 * (size_t)r;\n"
    "    y[r] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[2], p[3]));\n"
    "}\n"
    "```\n";

static const char example_elements[] =
    "axes n, in float a[n] float b[n], out float y[n], y[i] = a[i] * b[i] + 1:\n"
    "```cuda\n"
    "//@ launch multiply_add<<<ceil_div(n, 1024), 256>>>(a, b, y, n)\n"
    "\n"
    "extern \"C\" __global__ void multiply_add(const float *a, const float *b, float *y, int n)\n"
    "{\n"
    "    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);\n"
    "    if (i + 4 <= n) {\n"
    "        float4 p = *(const float4 *)(a + i), q = *(const float4 *)(b + i);\n"
    "        *(float4 *)(y + i) = make_float4(p.x * q.x + 1.0f, p.y * q.y + 1.0f, p.z * q.z + "
    "1.0f, p.w * q.w + 1.0f);\n"
    "    } else {\n"
    "        for (; i < n; i++) y[i] = a[i] * b[i] + 1.0f;\n"
    "    }\n"
    "}\n"
    "```\n";

/* Whether the task's outputs have an element for each element of an input: what a task by element
 * has, and few others. */
static int is_by_element(const Task *t)
{
    return strstr(t->op_type, "elementwise") || strstr(t->op_type, "pointwise");
}

void prompt_rules_write(Buffer *out, const Task *t)
{
    buffer_puts(out, rules);
    buffer_puts(out, "# A worked candidate for another task\n");
    buffer_puts(out, is_by_element(t) ? example_rows : example_elements);
    buffer_puts(out, "\n");
}

/* ---- how it is measured ---- */

static void put_workload(Buffer *out, const Task *t, const Workload *w)
{
    for (int i = 0; i < t->n_axes; i++)
        buffer_printf(out, "%s%s = %lld", i ? ", " : "", t->axis_name[i], (long long)w->axis[i]);
}

/* The module's own sizes, which a GPU times where it has room for them; NULL: the task's are timed. */
static const Workload *own_sizes(const Task *t, const PromptStyle *s)
{
    return s->device && strncmp(s->device, "sim:", 4) ? t->own : NULL;
}

static void put_sizes(Buffer *out, const Task *t, const PromptStyle *s)
{
    TimedPair timed[TASK_MAX_TIMED];
    const Workload *own = own_sizes(t, s);
    int shown = 0, n = task_timed(t, timed);
    if (own) buffer_puts(out, "Timed at ");
    if (own) put_workload(out, t, own);
    for (int i = 0; i < n; i++) {
        buffer_puts(out, i     ? "; "
                         : own ? ", or, on a GPU without room for that, at "
                               : "Timed at ");
        put_workload(out, t, timed[i].timed);
        if (n > 1) buffer_printf(out, " (weight %g)", timed[i].timed->weight);
    }
    if (n) buffer_puts(out, ". ");
    if (n > 1)
        buffer_puts(out,
                    "The score is the weighted geometric mean. Plan lines behind `when rows >= "
                    "1024` run where that holds, those behind `otherwise` elsewhere, up to "
                    "`end`: one source has a kernel for each kind of sizes.\n");
    buffer_puts(out, "Checked at that size and at others, which need not be multiples of anything");
    for (int i = 0; i < t->n_workloads && shown < 3; i++) {
        if (t->workloads[i].role != ROLE_CHECK) continue;
        buffer_puts(out, shown++ ? "; " : ": ");
        put_workload(out, t, &t->workloads[i]);
    }
    buffer_puts(out, ".\n");
}

static void put_tolerance(Buffer *out, const Task *t)
{
    const Workload *w = task_workload(t, ROLE_TIME);
    Error err;
    Tolerance by;
    for (int i = 0; w && i < t->n_outputs; i++)
        if (!task_tolerance(&(TaskCase){t, w, VARIANT_DRAWN, 0, 1}, i, &by, &err))
            buffer_printf(out,
                          "Each element of %s must be within %.3g + %.3g * |expected| of the "
                          "reference, which computes in double precision.\n",
                          t->outputs[i].name, by.atol, by.rtol);
    buffer_puts(out, "Two runs on equal inputs must give equal bytes, unless the code has "
                     "atomics.\n");
}

enum { LAUNCHES_SHOWN = 12 };

static const char *step_name(const Plan *p, const PlanStep *s)
{
    if (s->op) return s->op->op->name;
    return s->library ? s->library : p->kernels[s->kernel];
}

/* Names the baseline's launches and library calls. */
static void put_launches(Buffer *out, const Task *t)
{
    const char *source = task_baseline(t);
    Plan p;
    Fault unused;
    if (source && !plan_parse(source, strlen(source), 1, &p, &unused)) {
        buffer_printf(out, ", %d launch%s (", p.n_steps, p.n_steps == 1 ? "" : "es");
        for (int i = 0; i < p.n_steps && i < LAUNCHES_SHOWN; i++)
            buffer_printf(out, "%s%s", i ? ", " : "", step_name(&p, &p.steps[i]));
        if (p.n_steps > LAUNCHES_SHOWN) buffer_puts(out, ", ...");
        buffer_puts(out, ")");
    }
    if (source) plan_release(&p);
}

static void put_baseline(Buffer *out, const Task *t, const PromptStyle *s)
{
    buffer_puts(out, "The score is the speedup over what eager PyTorch launches");
    put_launches(out, t);
    if (s->baseline_us > 0) buffer_printf(out, ", which takes %.4g us there", s->baseline_us);
    buffer_printf(out, ".%s\n",
                  s->predicted ? " Times are predicted by a simulator of that GPU." : "");
}

/* The least that any kernel must move and compute. */
static void put_least(Buffer *out, const Task *t, const Workload *own, double dram)
{
    const Workload *w = own ? own : task_workload(t, ROLE_TIME);
    double bytes, flops;
    Error err;
    if (!w || task_cost(t, w, &bytes, &flops, &err)) return;
    buffer_printf(out, "The task must move %.3g MB and compute %.3g GFLOP at least", bytes / 1e6,
                  flops / 1e9);
    if (dram > 0) buffer_printf(out, "; DRAM alone takes %.4g us for it", bytes / dram * 1e6);
    buffer_puts(out, ".\n");
}

void prompt_measure_write(Buffer *out, const Task *t, const PromptStyle *s)
{
    double dram = 0;
    buffer_puts(out, "# Device and measurement\n");
    if (s->device) dram = prompt_device_write(out, s->device);
    put_sizes(out, t, s);
    put_least(out, t, own_sizes(t, s), dram);
    put_baseline(out, t, s);
    put_tolerance(out, t);
    buffer_puts(out, "\n");
}

/* ---- how to answer ---- */

static const char protocol[] =
    "# Requirements and Restrictions\n"
    "## Critical Requirements\n"
    "Results must match the reference for every size of the axes, else the score is 0. The code "
    "must compile and run.\n"
    "## Key Restrictions\n"
    "Do not cache or reuse results of earlier runs: every launch computes everything. Keep all "
    "hyper-parameters unchanged.\n\n"
    "# Generation Protocol\n"
    "Answer in three sections, each starting with exactly two hash symbols:\n"
    "## Performance Analysis\n";

void prompt_protocol_write(Buffer *out, int exemplars)
{
    buffer_puts(out, protocol);
    if (exemplars > 1)
        buffer_puts(out, "Begin with one sentence of the form: codeA is faster than codeB. Say "
                         "why, by what decides its time.\n");
    buffer_puts(out,
                "Which strategies have most potential; what limits performance; which "
                "techniques are not used\n"
                "yet; where the largest acceleration is to be had.\n"
                "## Algorithm Design\n"
                "Your approach.\n"
                "## Code Implementation\n"
                "One block that begins with a line ```cuda and ends with a line ```, and holds "
                "the whole candidate: its plan lines\n"
                "and all kernels. No other block, and no text after it.\n");
}
