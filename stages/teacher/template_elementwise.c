/* Kernels that touch each element once: relu and gelu, and the transpose. */
#include <string.h>

#include "stages/teacher/template_grammar.h"

/* The body for one element, or for a vector with its scalar tail; both check the bounds. */
static void elementwise_body(Grammar *g)
{
    if (grammar_is(g, "vector", "1")) {
        grammar_set(g, "body", "if (i < n) $once");
        grammar_set(g, "once", "y[i] = apply(x[i]);\n");
        return;
    }
    grammar_set(g, "body", "$once");
    grammar_set(g, "once", "apply$vector(x, y, i, n);\n");
    grammar_set(g, "applied",
                grammar_is(g, "vector", "2") ? "apply(v.x), apply(v.y)"
                                             : "apply(v.x), apply(v.y), apply(v.z), apply(v.w)");
    grammar_helper(g, "__device__ void apply$vector(const float *x, float *y, int i, int n) {\n"
                      "  if (i + $vector <= n) {\n"
                      "    float$vector v = *(const float$vector *)(x + i);\n"
                      "    *(float$vector *)(y + i) = make_float$vector($applied);\n"
                      "  } else {\n"
                      "    for (; i < n; i++) y[i] = apply(x[i]);\n"
                      "  }\n"
                      "}\n");
}

void template_elementwise(Grammar *g)
{
    grammar_set(g, "name", g->task);
    int access = grammar_choose(g, "access", "plain:2 chunk:3 block:3 grid:3");
    int vector = 1 << grammar_choose(g, "vector", "1:20 2:4 4:1");
    grammar_choose(g, "block", "32 64 128 256 512 1024");
    grammar_helper(g, !strcmp(g->task, "relu")
                          ? "__device__ float apply(float v) {\n  return fmaxf(v, 0.0f);\n}\n"
                          : "__device__ float apply(float v) {\n  return 0.5f * v * (1.0f + erff(v "
                            "* 0.70710678f));\n}\n");
    elementwise_body(g);
    grammar_set(g, "unit", vector == 1 ? "$block" : "$block * $vector");
    grammar_set(g, "thread", "blockIdx.x * blockDim.x + threadIdx.x");
    grammar_set(g, "i", vector == 1 ? "$thread" : "($thread) * $vector");
    grammar_set(g, "stride", vector == 1 ? "blockDim.x" : "blockDim.x * $vector");
    grammar_set(g, "next", vector == 1 ? "i++" : "i += $vector");
    grammar_set(g, "offset", vector == 1 ? "threadIdx.x" : "threadIdx.x * $vector");
    static const char *const grids[] = {"ceil_div(n, $unit)", "ceil_div(n, $unit * $items)",
                                        "ceil_div(n, $unit * $items)",
                                        "min(ceil_div(n, $unit), $blocks)"};
    static const char *const bodies[] = {
        "  int i = $i;\n  $body",
        "  int i = ($thread) * N * $vector;\n  for (int j = 0; j < N; j++, $next)\n    $body",
        ("  int i = blockIdx.x * $stride * N + $offset;\n  for (int j = 0; j < N; j++, i += "
         "$stride)\n    $body"),
        "  for (int i = $i; i < n; i += gridDim.x * $stride)\n    $once",
    };
    static const char *const analyses[] = {
        "One step per thread, coalesced.",
        "$items steps per thread, next to each other, not coalesced.",
        "$items steps per thread, a block apart, coalesced.",
        "$blocks blocks in a grid-stride loop, coalesced.",
    };
    int many = access == 1 || access == 2;
    if (many) grammar_choose(g, "items", "2 4 8");
    if (access == 3) grammar_choose(g, "blocks", "16 66 132 264 528 1056");
    grammar_set(g, "size", many ? "<$items>" : "");
    grammar_set(g, "grid", grids[access]);
    grammar_plan(g, "launch $name$size<<<$grid, $block>>>(x, y, n)");
    if (many) grammar_code(g, "template <int N>\n");
    grammar_code(g, "__global__ void $name(const float *x, float *y, int n) {\n");
    grammar_code(g, bodies[access]);
    grammar_code(g, "}\n");
    grammar_analysis(g, "Memory bound: each element is read and written once.");
    grammar_analysis(g, analyses[access]);
    grammar_design(g, vector == 1 ? "Scalar loads, $block threads a block."
                                  : "float$vector loads, $block threads a block.");
}

static void transpose_tiled(Grammar *g)
{
    int tile = 16 << grammar_choose(g, "tile", "16 32 64");
    grammar_choose(g, "pad", "0:5 1");
    int lines = 4 << grammar_choose(g, "lines",
                                    tile == 16   ? "4 8 16:2"
                                    : tile == 32 ? "4 8 16:2 32:2"
                                                 : "4 8 16:2");
    grammar_choose(g, "unroll", "0:2 1");
    grammar_set_int(g, "each", tile / lines);
    grammar_set(g, "width", grammar_is(g, "pad", "1") ? "T + 1" : "T");
    grammar_set(g, "pragma", grammar_is(g, "unroll", "1") ? "  #pragma unroll\n" : "");
    grammar_plan(g, "launch transpose<$tile, $lines><<<dim3(ceil_div(cols, $tile), ceil_div(rows, "
                    "$tile)), dim3($tile, $lines)>>>"
                    "(x, y, rows, cols)");
    grammar_code(
        g, "template <int T, int R>\n"
           "__global__ void transpose(const float *x, float *y, int rows, int cols) {\n"
           "  __shared__ float tile[T][$width];\n"
           "  int tx = threadIdx.x, ty = threadIdx.y;\n"
           "  int col = blockIdx.x * T + tx, row = blockIdx.y * T + ty;\n"
           "$pragma  for (int j = 0; j < T; j += R)\n"
           "    if (row + j < rows && col < cols) tile[ty + j][tx] = x[(row + j) * cols + col];\n"
           "  __syncthreads();\n"
           "  col = blockIdx.x * T + ty;\n"
           "  row = blockIdx.y * T + tx;\n"
           "$pragma  for (int j = 0; j < T; j += R)\n"
           "    if (row < rows && col + j < cols) y[(col + j) * rows + row] = tile[tx][ty + j];\n"
           "}\n");
    grammar_analysis(g, "Memory bound: reads and writes are both coalesced through shared memory.");
    grammar_analysis(g, grammar_is(g, "pad", "1") ? "Padding avoids bank conflicts."
                                                  : "Columns of the tile conflict in banks.");
    grammar_design(g, "Shared tile $tile x $tile, $each elements per thread.");
}

static void transpose_direct(Grammar *g, int column_first)
{
    int shape = grammar_choose(g, "shape", "32x8 16x16 32x32 8x32 8x8 64x4 128x1 256x1");
    static const int wide[] = {32, 16, 32, 8, 8, 64, 128, 256},
                     high[] = {8, 16, 32, 32, 8, 4, 1, 1};
    grammar_choose(g, "items", "1:8 2:3 4");
    int items = grammar_int(g, "items");
    grammar_set_int(g, "wide", wide[shape]);
    grammar_set_int(g, "high", high[shape]);
    grammar_set(g, "span", items == 1 ? "$high" : "$high * $items");
    grammar_set(g, "size", items == 1 ? "" : "<$items>");
    grammar_set(g, "times", items == 1 ? "" : " * N");
    grammar_set(g, "fast", column_first ? "col" : "row");
    grammar_set(g, "slow", column_first ? "row" : "col");
    grammar_set(g, "move", "y[col * rows + row] = x[row * cols + col];\n");
    grammar_plan(g, "launch transpose$size<<<dim3(ceil_div($(fast)s, $wide), ceil_div($(slow)s, "
                    "$span)), dim3($wide, $high)>>>"
                    "(x, y, rows, cols)");
    if (items > 1) grammar_code(g, "template <int N>\n");
    grammar_code(g, "__global__ void transpose(const float *x, float *y, int rows, int cols) {\n"
                    "  int $fast = blockIdx.x * blockDim.x + threadIdx.x, $slow = blockIdx.y * "
                    "blockDim.y$times + threadIdx.y;\n");
    grammar_code(g, items == 1 ? "  if (row < rows && col < cols) $move"
                               : "  for (int j = 0; j < N; j++, $slow += blockDim.y)\n"
                                 "    if (row < rows && col < cols) $move");
    grammar_code(g, "}\n");
    grammar_analysis(g, column_first ? "Memory bound: reads are coalesced, writes are not."
                                     : "Memory bound: writes are coalesced, reads are not.");
    grammar_design(g, "Direct copy, $wide x $high threads a block, $items elements per thread.");
}

void template_transpose(Grammar *g)
{
    int way = grammar_choose(g, "way", "read:3 write:3 tile:2");
    if (way == 2)
        transpose_tiled(g);
    else
        transpose_direct(g, way == 0);
}
