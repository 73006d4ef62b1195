/* One matrix product with what comes before its left matrix and after its result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/teacher/template_formula.h"

typedef struct {
    FormulaKernel *k;
    int product;
    const FormulaValue *v;
    const FormulaSpace *space;
} Product;

/* Sets "left" and "right" (an element at row and p, at p and col) and "out" (the store of "sum"). */
static void set_texts(Product *t, const char *sum)
{
    FormulaKernel *k = t->k;
    Grammar *g = k->g;
    CodeScope s = kernel_place(k);
    s.full = "row * k + p", s.col = "p", s.rows = "m";
    kernel_set(k, "left_text", &s, (KernelText){t->v->arg[0], -1, "", "before"});
    grammar_set(g, "left",
                code_is_term(grammar_get(g, "left_text")) ? "$left_text" : "($left_text)");
    s.full = t->v->right_transposed ? "col * k + p" : "p * n + col";
    s.row = t->v->right_transposed ? "col" : "p", s.col = t->v->right_transposed ? "p" : "col";
    kernel_set(k, "right", &s, (KernelText){t->v->arg[1], -1, "", "unused"});
    s.full = "row * n + col", s.row = "row", s.col = "col";
    kernel_set(k, "value", &s, (KernelText){k->result, t->product, sum, "apply"});
    grammar_set(g, "out", k->f->value[k->result].name);
    grammar_set(g, "store", "$out[row * n + col] = $value;");
}

static void set_shape(Grammar *g, const char *shapes)
{
    static const char *const names[] = {"8x8", "16x16", "32x4", "32x8", "32x32", "8x32"};
    static const int wide[] = {8, 16, 32, 32, 32, 8}, high[] = {8, 16, 4, 8, 32, 32};
    grammar_choose(g, "shape", shapes);
    for (int i = 0; i < 6; i++)
        if (grammar_is(g, "shape", names[i])) {
            grammar_set_int(g, "wide", wide[i]);
            grammar_set_int(g, "high", high[i]);
        }
}

static void naive(Product *t)
{
    Grammar *g = t->k->g;
    set_texts(t, "sum");
    set_shape(g, "8x8 16x16 32x4 32x8 32x32 8x32");
    grammar_choose(g, "unroll", "1:2 4 8");
    grammar_set(g, "pragma", grammar_is(g, "unroll", "1") ? "" : "  #pragma unroll $unroll\n");
    grammar_plan(g,
                 "launch $kernel<<<dim3(ceil_div($ns, $wide), ceil_div($ms, $high)), dim3($wide, "
                 "$high)>>>($args)");
    grammar_code(g, "__global__ void $kernel($params) {\n"
                    "  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * "
                    "blockDim.y + threadIdx.y;\n"
                    "  if (row >= m || col >= n) return;\n"
                    "  float sum = 0.0f;\n"
                    "$pragma  for (int p = 0; p < k; p++) sum += $left * $right;\n"
                    "  $store\n}\n");
    grammar_analysis(g, "Every product reads global memory.");
    grammar_design(g, "One output per thread, $wide x $high threads a block.");
}

/* Several rows per thread share each value of the right matrix. */
static void strip(Product *t)
{
    Grammar *g = t->k->g;
    set_texts(t, "sum[i]");
    set_shape(g, "16x16 32x4 32x8");
    grammar_choose(g, "items", "2 4 8");
    grammar_plan(g, "launch $kernel<$items><<<dim3(ceil_div($ns, $wide), ceil_div($ms, $high * "
                    "$items)), dim3($wide, $high)>>>($args)");
    grammar_code(g, "template <int N>\n__global__ void $kernel($params) {\n"
                    "  int col = blockIdx.x * blockDim.x + threadIdx.x, top = blockIdx.y * "
                    "blockDim.y * N + threadIdx.y;\n"
                    "  if (col >= n) return;\n"
                    "  float sum[N] = {};\n"
                    "  for (int p = 0; p < k; p++) {\n"
                    "    float w = $right;\n"
                    "    for (int i = 0; i < N; i++) {\n"
                    "      int row = top + i * blockDim.y;\n"
                    "      if (row < m) sum[i] += $left * w;\n"
                    "    }\n  }\n"
                    "  for (int i = 0; i < N; i++) {\n"
                    "    int row = top + i * blockDim.y;\n"
                    "    if (row < m) $store\n  }\n}\n");
    grammar_analysis(g, "Global reads of the right matrix are shared by $items rows.");
    grammar_design(g, "$items outputs per thread, $wide x $high threads a block.");
}

/* The first index of the right matrix's tile that neighbours in a block read. */
static void tile(Product *t)
{
    Grammar *g = t->k->g;
    set_texts(t, "sum");
    grammar_choose(g, "tile", "8 16 32");
    grammar_choose(g, "unroll", "1 0");
    grammar_set(g, "pragma", grammar_is(g, "unroll", "0") ? "" : "    #pragma unroll\n");
    grammar_plan(g, "launch $kernel<$tile><<<dim3(ceil_div($ns, $tile), ceil_div($ms, $tile)), "
                    "dim3($tile, $tile)>>>($args)");
    grammar_code(g, "template <int T>\n__global__ void $kernel($params) {\n"
                    "  __shared__ float as[T][T + 1], bs[T][T + 1];\n"
                    "  int tx = threadIdx.x, ty = threadIdx.y;\n"
                    "  int row = blockIdx.y * T + ty, left = blockIdx.x * T;\n"
                    "  float sum = 0.0f;\n"
                    "  for (int t = 0; t < k; t += T) {\n"
                    "    int p = t + tx;\n"
                    "    as[ty][tx] = row < m && p < k ? $left : 0.0f;\n");
    grammar_code(g, t->v->right_transposed
                        ? "    int col = left + ty;\n"
                          "    bs[tx][ty] = p < k && col < n ? $right : 0.0f;\n"
                        : "    int col = left + tx;\n    p = t + ty;\n"
                          "    bs[ty][tx] = p < k && col < n ? $right : 0.0f;\n");
    grammar_code(g, "    __syncthreads();\n"
                    "$pragma    for (int q = 0; q < T; q++) sum += as[ty][q] * bs[q][tx];\n"
                    "    __syncthreads();\n"
                    "  }\n"
                    "  int col = left + tx;\n"
                    "  if (row < m && col < n) $store\n}\n");
    grammar_analysis(g, "Shared tiles cut global reads $tile times.");
    grammar_design(g, "Shared tile $tile x $tile, one output per thread.");
}

/* Sets "fill", the copy of the tiles at t into "as[$b]" and "bs[$b]". */
static void set_fill(Product *t)
{
    Grammar *g = t->k->g;
    grammar_set(g, "fill_right",
                t->v->right_transposed
                    ? "    for (int i = tid; i < K * N; i += P) {\n"
                      "      int col = left + i / K, p = t + i % K;\n"
                      "      bs$slot[i % K][i / K] = p < k && col < n ? $right : 0.0f;\n"
                      "    }\n"
                    : "    for (int i = tid; i < K * N; i += P) {\n"
                      "      int p = t + i / N, col = left + i % N;\n"
                      "      bs$slot[i / N][i % N] = p < k && col < n ? $right : 0.0f;\n"
                      "    }\n");
    grammar_set(g, "fill",
                "    for (int i = tid; i < M * K; i += P) {\n"
                "      int row = top + i / K, p = t + i % K;\n"
                "      as$slot[i % K][i / K] = row < m && p < k ? $left : 0.0f;\n"
                "    }\n$fill_right");
}

/* Shared tiles, and a small square of outputs in the registers of each thread; with `twice` the next tile
 * is loaded while one is used. */
static void registers(Product *t, int twice)
{
    Grammar *g = t->k->g;
    set_texts(t, "sum[i][j]");
    int bm = 16 << grammar_choose(g, "tall", "16 32 64"),
        bn = 16 << grammar_choose(g, "broad", "16 32 64");
    grammar_choose(g, "depth", twice ? "8 16" : "8:2 16:2 32");
    int each = 2 << grammar_choose(g, "each",
                                   bm * bn <= 512    ? "2"
                                   : bm * bn <= 2048 ? "2 4"
                                                     : "2 4 8");
    int apart = grammar_choose(g, "layout", "together apart");
    grammar_set_int(g, "threads", bn / each * (bm / each));
    grammar_set(g, "ri", apart ? "ty + i * (M / T)" : "ty * T + i");
    grammar_set(g, "cj", apart ? "tx + j * (N / T)" : "tx * T + j");
    grammar_set(g, "slot", twice ? "[t / K % 2]" : "");
    grammar_set(g, "two", twice ? "[2]" : "");
    set_fill(t);
    grammar_plan(g, "launch $kernel<$tall, $broad, $depth, $each><<<dim3(ceil_div($ns, $broad), "
                    "ceil_div($ms, $tall)), $threads>>>($args)");
    grammar_code(
        g, "template <int M, int N, int K, int T>\n"
           "__global__ void $kernel($params) {\n"
           "  __shared__ float as$two[K][M + 1], bs$two[K][N + 1];\n"
           "  const int P = M / T * (N / T);\n"
           "  int tid = threadIdx.x, tx = tid % (N / T), ty = tid / (N / T);\n"
           "  int top = blockIdx.y * M, left = blockIdx.x * N;\n"
           "  float sum[T][T] = {};\n"
           "  for (int t = 0; t < k; t += K) {\n"
           "$fill"
           "    __syncthreads();\n"
           "    for (int q = 0; q < K; q++)\n"
           "      for (int i = 0; i < T; i++)\n"
           "        for (int j = 0; j < T; j++) sum[i][j] += as$slot[q][$ri] * bs$slot[q][$cj];\n");
    if (!twice) grammar_code(g, "    __syncthreads();\n");
    grammar_code(g, "  }\n"
                    "  for (int i = 0; i < T; i++)\n"
                    "    for (int j = 0; j < T; j++) {\n"
                    "      int row = top + $ri, col = left + $cj;\n"
                    "      if (row < m && col < n) $store\n"
                    "    }\n}\n");
    grammar_analysis(g, "Shared tiles, and each shared value is used $each times from registers.");
    grammar_design(
        g,
        twice
            ? "Two shared tiles $tall x $broad x $depth in turn, $each x $each outputs per thread."
            : "Shared tile $tall x $broad x $depth, $each x $each outputs per thread.");
}

void template_product(FormulaKernel *k)
{
    Product t = {.k = k, .product = -1};
    Grammar *g = k->g;
    for (int i = 0; i < k->n; i++)
        if (k->f->value[k->value[i]].kind == VALUE_PRODUCT) t.product = k->value[i];
    t.v = &k->f->value[t.product];
    t.space = &k->f->space[t.v->space];
    KernelSize sizes[] = {{"m", t.space->rows}, {"n", t.space->cols}, {"k", t.v->inner}, {0}};
    kernel_signature(k, sizes);
    grammar_set(g, "ms", t.space->rows);
    grammar_set(g, "ns", t.space->cols);
    switch (grammar_choose(g, "way", "naive:4 strip:2 tile:2 registers:3 turns")) {
    case 0: naive(&t); break;
    case 1: strip(&t); break;
    case 2: tile(&t); break;
    case 3: registers(&t, 0); break;
    default: registers(&t, 1);
    }
}
