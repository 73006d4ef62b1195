/* Running sums along rows, and folds of everything to one number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stages/teacher/template_formula.h"

static int find_kind(const FormulaKernel *k, ValueKind kind)
{
    for (int i = 0; i < k->n; i++)
        if (k->f->value[k->value[i]].kind == kind) return k->value[i];
    return -1;
}

/* Sets "term" (what is summed, at element i) and "result" (what follows from `sum`). */
static void set_texts(FormulaKernel *k, const CodeScope *at, int main, const char *sum)
{
    kernel_set(k, "term", at, (KernelText){k->f->value[main].arg[0], -1, "", "before"});
    kernel_set(k, "result", at, (KernelText){k->result, main, sum, "apply"});
    grammar_set(k->g, "out", k->f->value[k->result].name);
}

static void scan_helpers(Grammar *g)
{
    grammar_helper(g, "__device__ float warp_scan(float v) {\n"
                      "  for (int s = 1; s < 32; s *= 2) {\n"
                      "    float w = __shfl_up_sync(0xffffffff, v, s);\n"
                      "    if (threadIdx.x % 32 >= s) v += w;\n"
                      "  }\n"
                      "  return v;\n}\n");
    if (grammar_is(g, "mapping", "block"))
        grammar_helper(g, "__device__ float block_scan(float v) {\n"
                          "  __shared__ float part[32];\n"
                          "  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;\n"
                          "  v = warp_scan(v);\n"
                          "  if (lane == 31) part[warp] = v;\n"
                          "  __syncthreads();\n"
                          "  for (int j = 0; j < warp; j++) v += part[j];\n"
                          "  __syncthreads();\n"
                          "  return v;\n}\n");
}

void template_scan(FormulaKernel *k)
{
    static const char *const bodies[] = {
        "  float acc = 0.0f;\n$pragma  for (int i = 0; i < cols; i++) {\n    acc += $term;\n"
        "    $out[i] = $result;\n  }\n",
        "  float carry = 0.0f;\n  for (int base = 0; base < cols; base += 32) {\n"
        "    int i = base + lane;\n    float acc = warp_scan(i < cols ? $term : 0.0f) + carry;\n"
        "    if (i < cols) $out[i] = $result;\n"
        "    carry = __shfl_sync(0xffffffff, acc, 31);\n  }\n",
        "  __shared__ float last;\n  float carry = 0.0f;\n"
        "  for (int base = 0; base < cols; base += blockDim.x) {\n"
        "    int i = base + tid;\n    float acc = block_scan(i < cols ? $term : 0.0f) + carry;\n"
        "    if (i < cols) $out[i] = $result;\n"
        "    if (tid == blockDim.x - 1) last = acc;\n    __syncthreads();\n    carry = last;\n  "
        "}\n"};
    Grammar *g = k->g;
    KernelSize sizes[KERNEL_ROW_SIZES];
    CodeScope s = kernel_place(k);
    int main = find_kind(k, VALUE_SCAN);
    kernel_row_sizes(k, kernel_space(k), sizes);
    kernel_signature(k, sizes);
    rows_mapping(g, "thread:3 warp:2 block:2", NULL);
    grammar_set(g, "row_count", kernel_space(k)->rows);
    if (strchr(kernel_space(k)->rows, ' ')) grammar_set(g, "row_count", "($row_list)");
    grammar_set(g, "row_list", kernel_space(k)->rows);
    int mapping = grammar_is(g, "mapping", "thread") ? 0 : grammar_is(g, "mapping", "warp") ? 1 : 2;
    grammar_choose(g, "unroll", mapping ? "1" : "1:2 4");
    grammar_set(g, "pragma", grammar_is(g, "unroll", "4") ? "  #pragma unroll 4\n" : "");
    if (mapping) scan_helpers(g);
    set_texts(k, &s, main, "acc");
    grammar_plan(g, "launch $kernel<<<$grid, $block>>>($args)");
    grammar_code(g, "__global__ void $kernel($params) {\n$head");
    for (int i = 0; i < k->n_loads; i++) {
        grammar_set(g, "in", k->f->value[k->load[i]].name);
        if (k->f->value[k->load[i]].domain == PER_ELEMENT)
            grammar_code(g, "  $in += row * cols;\n");
    }
    grammar_code(g, "  $out += row * cols;\n");
    grammar_code(g, bodies[mapping]);
    grammar_code(g, "}\n");
    grammar_analysis(g, "$who");
    grammar_design(g, mapping == 0   ? "A serial scan, $block threads a block."
                      : mapping == 1 ? "A warp scans 32 columns at a time, $block threads a block."
                                     : "A block scans $block columns at a time.");
}

/* ---- totals ---- */

/* Sets the sizes; returns whether rows and columns are told apart. */
static int total_sizes(FormulaKernel *k, int main)
{
    const FormulaValue *x = &k->f->value[k->f->value[main].arg[0]];
    const FormulaSpace *s = &k->f->space[x->space];
    char count[2 * FORMULA_TEXT];
    int apart =
        x->domain != PER_ROW && (kernel_has(k, PER_COL) || kernel_has(k, PER_ROW) ||
                                 kernel_has(k, PER_CHANNEL) || kernel_has(k, PER_TRANSPOSED));
    if (x->domain == PER_ROW)
        snprintf(count, sizeof count, "%s", s->rows);
    else
        kernel_count(s, count);
    KernelSize one[] = {{"n", count}, {0}};
    KernelSize two[KERNEL_ROW_SIZES];
    kernel_row_sizes(k, s, two);
    kernel_signature(k, apart ? two : one);
    grammar_set(k->g, "count", count);
    grammar_set(k->g, "most", apart ? "rows * cols" : "n");
    return apart;
}

/* Each block has a part of the elements; then one block adds the parts. */
static void two_launches(FormulaKernel *k)
{
    Grammar *g = k->g;
    char name[48];
    snprintf(name, sizeof name, k->number > 1 ? "partial%d" : "partial", k->number);
    grammar_set(g, "partial", name);
    grammar_choose(g, "blocks", "32 132 264 528");
    grammar_plan(g, "buffer float $partial[$blocks]");
    grammar_plan(g, "launch $(kernel)_part<<<$blocks, $block>>>($inputs, $partial, $part_sizes)");
    grammar_plan(g, "launch $kernel<<<1, $block>>>($partial, $target, $blocks, $count)");
    grammar_code(g,
                 "__global__ void $(kernel)_part($in_params, float *partial, $size_params) {\n"
                 "  float acc = 0.0f;\n"
                 "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < $most; i += gridDim.x "
                 "* blockDim.x) acc += $term;\n"
                 "  acc = block_sum(acc);\n"
                 "  if (threadIdx.x == 0) partial[blockIdx.x] = acc;\n}\n"
                 "__global__ void $kernel(const float *partial, $type *$out, int blocks, int n) {\n"
                 "  float acc = 0.0f;\n"
                 "  for (int i = threadIdx.x; i < blocks; i += blockDim.x) acc += partial[i];\n"
                 "  acc = block_sum(acc);\n"
                 "$divide"
                 "  if (threadIdx.x == 0) $out[0] = $result;\n}\n");
    grammar_design(g, "$blocks blocks of $block threads write partial sums, one more adds them.");
}

static void one_launch(FormulaKernel *k)
{
    Grammar *g = k->g;
    grammar_plan(g, "launch $kernel<<<1, $block>>>($args)");
    grammar_code(g, "__global__ void $kernel($params) {\n"
                    "  float acc = 0.0f;\n"
                    "  for (int i = threadIdx.x; i < $most; i += blockDim.x) acc += $term;\n"
                    "  acc = block_sum(acc);\n"
                    "$divide"
                    "  if (threadIdx.x == 0) $out[0] = $result;\n}\n");
    grammar_design(g, "One block of $block threads adds everything.");
}

/* Cuts "params" and "args" at the result: "in_params" and "inputs" before it, sizes after it. */
static void cut_signature(FormulaKernel *k)
{
    Grammar *g = k->g;
    const FormulaValue *y = &k->f->value[k->result];
    char mark[160];
    snprintf(mark, sizeof mark, ", %s *%s, ", code_type(y), y->name);
    char *params = memory_strdup(grammar_get(g, "params")),
         *args = memory_strdup(grammar_get(g, "args"));
    char *at = strstr(params, mark);
    *at = 0;
    grammar_set(g, "in_params", params);
    grammar_set(g, "size_params", at + strlen(mark));
    snprintf(mark, sizeof mark, ", %s, ", code_memory(k->f, k->result));
    at = strstr(args, mark);
    *at = 0;
    grammar_set(g, "inputs", args);
    grammar_set(g, "part_sizes", at + strlen(mark));
    free(params);
    free(args);
}

void template_total(FormulaKernel *k)
{
    Grammar *g = k->g;
    CodeScope s = kernel_place(k);
    int main = find_kind(k, VALUE_TOTAL), apart = total_sizes(k, main);
    cut_signature(k);
    const FormulaSpace *of = &k->f->space[k->f->value[k->f->value[main].arg[0]].space];
    s.row = apart ? kernel_row_of(of) : "i";
    s.col = kernel_col_of(of);
    set_texts(k, &s, main, "acc");
    grammar_set(g, "type", code_type(&k->f->value[k->result]));
    grammar_set(g, "target", code_memory(k->f, k->result));
    grammar_set(g, "divide", k->f->value[main].fold != FOLD_MEAN ? "" : "  acc /= n;\n");
    int two = grammar_choose(g, "launches", kernel_has(k, PER_TASK) ? "one" : "one two:2");
    if (!two && apart && k->f->value[main].fold == FOLD_MEAN)
        grammar_set(g, "divide", "  acc /= rows * cols;\n");
    grammar_choose(g, "block", "128 256 512 1024");
    grammar_set(g, "mapping", "block");
    grammar_choose(g, "reduce", g->reduce ? g->reduce : "tree shuffle:2");
    g->reduce = grammar_is(g, "reduce", "tree") ? "tree" : "shuffle";
    rows_reduce(g, "acc", "sum");
    if (two)
        two_launches(k);
    else
        one_launch(k);
    grammar_analysis(g, "Memory bound: each element is read once.");
}
