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

void rows_keep_registers(Grammar *g, const char *items)
{
    grammar_choose(g, "items", items);
    grammar_set(g, "size", "<$items>");
    grammar_set(g, "template", "template <int N>\n");
    grammar_set(g, "rest", "for (int i = $first + N * $step; i < cols; i += $step)");
    grammar_set(g, "each", "  #pragma unroll\n  for (int j = 0; j < N; j++)");
    grammar_set(g, "unroll", "1");
}
