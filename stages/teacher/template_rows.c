/* The common parts of the row families: the threads of a row, the reduction over them, float4
 * access with tails. And the simplest family, row_sum. */
#include <stdio.h>
#include <string.h>

#include "stages/teacher/template_grammar.h"

void rows_mapping(Grammar *g, const char *mappings, const char *vectors)
{
    int mapping = grammar_choose(g, "mapping", mappings);
    const char *name = grammar_get(g, "mapping");
    mapping = !strcmp(name, "thread") ? 0 : !strcmp(name, "warp") ? 1 : 2;
    static const char *const blocks[] = {"32 64 128 256", "32 64 128 256 512",
                                         "32 64 128 256 512 1024"};
    grammar_choose(g, "block", blocks[mapping]);
    if (vectors)
        grammar_choose(g, "vector", vectors);
    else
        grammar_set(g, "vector", "1");
    int vector = !grammar_is(g, "vector", "1");
    static const char *const steps[3][2] = {
        {"1", "4"}, {"32", "128"}, {"blockDim.x", "blockDim.x * 4"}};
    static const char *const grids[] = {"ceil_div($row_count, $block)",
                                        "ceil_div($row_count, $block / 32)", "$row_count"};
    static const char *const heads[] = {
        "  int row = blockIdx.x * blockDim.x + threadIdx.x;\n  if (row >= rows) return;\n",
        ("  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % "
         "32;\n "
         " if (row >= rows) return;\n"),
        "  int row = blockIdx.x, tid = threadIdx.x;\n",
    };
    static const char *const firsts[] = {"0", "lane", "tid"}, *const ones[] = {"",
                                                                               "if (lane == 0) ",
                                                                               "if (tid == 0) "};
    static const char *const speech[] = {"One thread per row: reads are not coalesced.",
                                         "One warp per row, coalesced.",
                                         "One block per row, coalesced."};
    grammar_set(g, "step", steps[mapping][vector]);
    grammar_set(g, "row_count", "rows");
    grammar_set(g, "grid", grids[mapping]);
    grammar_set(g, "head", heads[mapping]);
    grammar_set(g, "thread_id", firsts[mapping]);
    grammar_set(g, "first", mapping && vector ? "$thread_id * 4" : "$thread_id");
    grammar_set(g, "next", mapping == 0 && !vector ? "i++" : "i += $step");
    grammar_set(g, "for", "for (int i = $first; i < cols; $next)");
    grammar_set(g, "one", ones[mapping]);
    grammar_set(g, "who", speech[mapping]);
    grammar_set(g, "reduce", "shuffle");
    grammar_set(g, "shared", "");
    grammar_set(g, "keep", "");
    grammar_set(g, "size", "");
    grammar_set(g, "template", "");
}

static void reduce_warp(Grammar *g, const char *op)
{
    grammar_helper(
        g,
        !strcmp(op, "sum")
            ? "__device__ float warp_sum(float v) {\n"
              "  for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(0xffffffff, v, s);\n"
              "  return v;\n}\n"
        : !strcmp(op, "min")
            ? "__device__ float warp_min(float v) {\n"
              "  for (int s = 16; s > 0; s /= 2) v = fminf(v, __shfl_xor_sync(0xffffffff, v, s));\n"
              "  return v;\n}\n"
            : "__device__ float warp_max(float v) {\n"
              "  for (int s = 16; s > 0; s /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, s));\n"
              "  return v;\n}\n");
}

static void reduce_block(Grammar *g, const char *op)
{
    int sum = !strcmp(op, "sum"), min = !strcmp(op, "min");
    grammar_set(g, "op", op);
    grammar_set(g, "neutral", sum ? "0.0f" : min ? "1e30f" : "-1e30f");
    if (grammar_is(g, "reduce", "tree")) {
        grammar_set(g, "combine",
                    sum   ? "part[tid] += part[tid + s];"
                    : min ? "part[tid] = fminf(part[tid], part[tid + s]);"
                          : "part[tid] = fmaxf(part[tid], part[tid + s]);");
        grammar_helper(g, "__device__ float block_$op(float v) {\n"
                          "  __shared__ float part[1024];\n"
                          "  int tid = threadIdx.x;\n"
                          "  part[tid] = v;\n"
                          "  for (int s = blockDim.x / 2; s > 0; s /= 2) {\n"
                          "    __syncthreads();\n"
                          "    if (tid < s) $combine\n"
                          "  }\n"
                          "  __syncthreads();\n"
                          "  v = part[0];\n"
                          "  __syncthreads();\n"
                          "  return v;\n}\n");
        return;
    }
    reduce_warp(g, op);
    grammar_helper(g, "__device__ float block_$op(float v) {\n"
                      "  __shared__ float part[32];\n"
                      "  int lane = threadIdx.x % 32;\n"
                      "  v = warp_$op(v);\n"
                      "  if (lane == 0) part[threadIdx.x / 32] = v;\n"
                      "  __syncthreads();\n"
                      "  v = warp_$op(lane < blockDim.x / 32 ? part[lane] : $neutral);\n"
                      "  __syncthreads();\n"
                      "  return v;\n}\n");
}

void rows_reduce(Grammar *g, const char *variable, const char *op)
{
    char name[32], text[96] = "";
    const char *mapping = grammar_get(g, "mapping");
    snprintf(name, sizeof name, "reduce_%s", variable);
    if (strcmp(mapping, "thread"))
        snprintf(text, sizeof text, "  %s = %s_%s(%s);\n", variable, mapping, op, variable);
    if (!strcmp(mapping, "warp")) reduce_warp(g, op);
    if (!strcmp(mapping, "block")) reduce_block(g, op);
    grammar_set(g, name, text);
}

void rows_vector_helpers(Grammar *g, const char *which)
{
    if (grammar_is(g, "vector", "1")) return;
    static const struct {
        const char *name, *text;
    } helpers[] = {
        {"load4", "__device__ float4 load4(const float *x, int i, int n, float pad) {\n"
                  "  if (n % 4 == 0) return *(const float4 *)(x + i);\n"
                  "  return make_float4(x[i], i + 1 < n ? x[i + 1] : pad, i + 2 < n ? x[i + 2] : "
                  "pad, i + 3 < n ? x[i + 3] : pad);\n"
                  "}\n"},
        {"store4", "__device__ void store4(float *y, int i, int n, float4 v) {\n"
                   "  float w[4] = {v.x, v.y, v.z, v.w};\n"
                   "  if (n % 4 == 0) *(float4 *)(y + i) = v;\n"
                   "  else for (int j = 0; j < 4 && i + j < n; j++) y[i + j] = w[j];\n"
                   "}\n"},
        {"sum4", "__device__ float sum4(float4 v) { return v.x + v.y + v.z + v.w; }\n"},
        {"max4",
         "__device__ float max4(float4 v) { return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)); }\n"},
        {"add4", "__device__ float4 add4(float4 v, float4 w) {\n"
                 "  return make_float4(v.x + w.x, v.y + w.y, v.z + w.z, v.w + w.w);\n}\n"},
        {"mul4", "__device__ float4 mul4(float4 v, float4 w) {\n"
                 "  return make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);\n}\n"},
        {"scale4", "__device__ float4 scale4(float4 v, float s) {\n"
                   "  return make_float4(v.x * s, v.y * s, v.z * s, v.w * s);\n}\n"},
        {"shift4", "__device__ float4 shift4(float4 v, float s) {\n"
                   "  return make_float4(v.x - s, v.y - s, v.z - s, v.w - s);\n}\n"},
        {"exp4",
         "__device__ float4 exp4(float4 v, float s) {\n"
         "  return make_float4($exp(v.x - s), $exp(v.y - s), $exp(v.z - s), $exp(v.w - s));\n}\n"},
    };
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
        if (strstr(which, helpers[i].name)) grammar_helper(g, helpers[i].text);
}

void rows_keep_registers(Grammar *g, const char *items)
{
    grammar_choose(g, "items", items);
    grammar_set(g, "size", "<$items>");
    grammar_set(g, "template", "template <int N>\n");
    grammar_set(g, "rest", "for (int i = $first + N * $step; i < cols; i += $step)");
    grammar_set(g, "each", "  #pragma unroll\n  for (int j = 0; j < N; j++)");
    grammar_set(g, "unroll", "1");
}

void rows_keep_shared(Grammar *g)
{
    int warp = grammar_is(g, "mapping", "warp"), vector = !grammar_is(g, "vector", "1");
    grammar_set(g, "words", vector ? "ceil_div(cols, 4) * 16" : "cols * 4");
    grammar_set(g, "type", vector ? "float4" : "float");
    grammar_set(g, "length", vector ? "((cols + 3) / 4)" : "cols");
    grammar_set(g, "shared", warp ? ", $words * ($block / 32)" : ", $words");
    grammar_set(
        g, "keep",
        warp ? "  extern __shared__ $type buf[];\n  $type *h = buf + threadIdx.x / 32 * $length;\n"
             : "  extern __shared__ $type h[];\n");
}

/* Two launches: a block for each slice of a row, then the sum of the slices. */
static void row_sum_split(Grammar *g)
{
    grammar_choose(g, "slices", "4 8 16 32");
    grammar_set(g, "begin",
                grammar_is(g, "vector", "1") ? "blockIdx.y * blockDim.x + tid"
                                             : "(blockIdx.y * blockDim.x + tid) * 4");
    grammar_plan(g, "buffer float slice[rows * $slices]");
    grammar_plan(g, "launch slice_sum<<<dim3(rows, $slices), $block>>>(x, slice, cols)");
    grammar_plan(g, "launch row_sum<<<ceil_div(rows, 128), 128>>>(slice, y, rows, $slices)");
    grammar_code(g,
                 "__global__ void slice_sum(const float *x, float *slice, int cols) {\n$head"
                 "  x += row * cols;\n"
                 "  float sum = 0.0f;\n"
                 "  for (int i = $begin; i < cols; i += gridDim.y * $step) sum += $value;\n"
                 "$reduce_sum"
                 "  if (tid == 0) slice[row * gridDim.y + blockIdx.y] = sum;\n"
                 "}\n"
                 "__global__ void row_sum(const float *slice, float *y, int rows, int slices) {\n"
                 "  int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "  if (row >= rows) return;\n"
                 "  float sum = 0.0f;\n"
                 "  for (int i = 0; i < slices; i++) sum += slice[row * slices + i];\n"
                 "  y[row] = sum;\n"
                 "}\n");
    grammar_design(g, "Two launches: $slices slices per row, then their sums.");
}

void template_row_sum(Grammar *g)
{
    int launches = 1 + grammar_choose(g, "launches", "1:4 2");
    rows_mapping(g, launches == 1 ? "thread:3 warp:1 block:3" : "block", "1:6 4");
    if (grammar_is(g, "mapping", "block")) grammar_choose(g, "reduce", "tree:2 shuffle");
    grammar_choose(g, "unroll", "1:2 4");
    rows_vector_helpers(g, "load4 sum4");
    rows_reduce(g, "sum", "sum");
    grammar_set(g, "value",
                grammar_is(g, "vector", "1") ? "x[i]" : "sum4(load4(x, i, cols, 0.0f))");
    grammar_analysis(g, "Memory bound: each input is read once.");
    grammar_analysis(g, "$who");
    if (launches == 2) {
        row_sum_split(g);
        return;
    }
    grammar_set(g, "pragma", grammar_is(g, "unroll", "4") ? "  #pragma unroll 4\n" : "");
    grammar_plan(g, "launch row_sum<<<$grid, $block>>>(x, y, rows, cols)");
    grammar_code(g, "__global__ void row_sum(const float *x, float *y, int rows, int cols) {\n$head"
                    "  x += row * cols;\n"
                    "  float sum = 0.0f;\n"
                    "$pragma  $for sum += $value;\n"
                    "$reduce_sum"
                    "  $(one)y[row] = sum;\n"
                    "}\n");
    grammar_design(g, "One launch, $block threads a block.");
}
