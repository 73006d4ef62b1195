/* Matrix products: matmul, matmul_bias_relu (with the epilogue fused or in its own launch), and
 * diag_matmul. */
#include <string.h>

#include "stages/teacher/template_grammar.h"

/* Sets the texts of the epilogue: "args" and "params" of the product's launch, "result" around its
 * sum. */
static void matmul_epilogue(Grammar *g)
{
    grammar_set(g, "args", "(a, b, c, m, n, k)");
    grammar_set(g, "params", "(const float *a, const float *b, float *c, int m, int n, int k)");
    grammar_set(g, "result_of_sum", "sum");
    grammar_set(g, "left", "");
    grammar_set(g, "right", "");
    if (!strcmp(g->task, "matmul")) return;
    if (grammar_choose(g, "launches", "1:2 2 3") == 0) {
        grammar_set(g, "args", "(a, b, bias, c, m, n, k)");
        grammar_set(
            g, "params",
            "(const float *a, const float *b, const float *bias, float *c, int m, int n, int k)");
        grammar_set(g, "left", "fmaxf(");
        grammar_set(g, "right", " + bias[col], 0.0f)");
    }
}

static void matmul_epilogue_launches(Grammar *g)
{
    if (!strcmp(g->task, "matmul") || grammar_is(g, "launches", "1")) return;
    int fused = grammar_is(g, "launches", "2");
    grammar_set(g, "after", fused ? "bias_relu" : "add_bias");
    grammar_set(g, "value", fused ? "fmaxf(c[i] + bias[i % n], 0.0f)" : "c[i] + bias[i % n]");
    grammar_plan(g, "launch $after<<<ceil_div(m * n, 256), 256>>>(bias, c, m, n)");
    grammar_code(g, "__global__ void $after(const float *bias, float *c, int m, int n) {\n"
                    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (i < m * n) c[i] = $value;\n"
                    "}\n");
    if (fused) return;
    grammar_plan(g, "launch relu<<<ceil_div(m * n, 256), 256>>>(c, m * n)");
    grammar_code(g, "__global__ void relu(float *c, int n) {\n"
                    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (i < n) c[i] = fmaxf(c[i], 0.0f);\n"
                    "}\n");
}

static void matmul_shape(Grammar *g, const char *shapes)
{
    static const char *const names[] = {"8x8",  "16x8",  "16x16", "32x4",
                                        "32x8", "32x16", "32x32", "8x32"};
    static const int wide[] = {8, 16, 16, 32, 32, 32, 32, 8}, high[] = {8, 8, 16, 4, 8, 16, 32, 32};
    grammar_choose(g, "shape", shapes);
    for (int i = 0; i < 8; i++)
        if (grammar_is(g, "shape", names[i])) {
            grammar_set_int(g, "wide", wide[i]);
            grammar_set_int(g, "high", high[i]);
        }
}

/* One output per thread, from global memory; with "row" adjacent threads have adjacent rows. */
static void matmul_naive(Grammar *g)
{
    int by_row = grammar_choose(g, "fast", "col:3 row:1");
    matmul_shape(g, "8x8 16x8 16x16 32x4 32x8 32x32 8x32");
    grammar_choose(g, "unroll", "1:2 4 8");
    grammar_set(g, "pragma", grammar_is(g, "unroll", "1") ? "" : "  #pragma unroll $unroll\n");
    grammar_set(g, "slow", by_row ? "col" : "row");
    grammar_plan(g, by_row ? "launch matmul<<<dim3(ceil_div(m, $wide), ceil_div(n, $high)), "
                             "dim3($wide, $high)>>>$args"
                           : "launch matmul<<<dim3(ceil_div(n, $wide), ceil_div(m, $high)), "
                             "dim3($wide, $high)>>>$args");
    grammar_code(g, "__global__ void matmul$params {\n"
                    "  int $fast = blockIdx.x * blockDim.x + threadIdx.x, $slow = blockIdx.y * "
                    "blockDim.y + threadIdx.y;\n"
                    "  if (row >= m || col >= n) return;\n"
                    "  float sum = 0.0f;\n"
                    "$pragma  for (int p = 0; p < k; p++) sum += a[row * k + p] * b[p * n + col];\n"
                    "  c[row * n + col] = $(left)sum$right;\n"
                    "}\n");
    grammar_analysis(
        g, by_row
               ? "Every product reads global memory; neighbours read different rows, not coalesced."
               : "Every product reads global memory; columns are coalesced.");
    grammar_design(g, "One output per thread, $wide x $high threads a block.");
}

/* Several rows per thread, which share each value of b. */
static void matmul_strip(Grammar *g)
{
    matmul_shape(g, "16x8 16x16 32x4 32x8");
    grammar_choose(g, "items", "2 4 8");
    grammar_plan(g, "launch matmul<$items><<<dim3(ceil_div(n, $wide), ceil_div(m, $high * "
                    "$items)), dim3($wide, $high)>>>$args");
    grammar_code(
        g, "template <int N>\n__global__ void matmul$params {\n"
           "  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y * N + "
           "threadIdx.y, next = blockDim.y;\n"
           "  if (col >= n) return;\n"
           "  float sum[N] = {};\n"
           "  for (int p = 0; p < k; p++) {\n"
           "    float v = b[p * n + col];\n"
           "    for (int i = 0; i < N; i++)\n"
           "      if (row + i * next < m) sum[i] += a[(row + i * next) * k + p] * v;\n"
           "  }\n"
           "  for (int i = 0; i < N; i++)\n"
           "    if (row + i * next < m) c[(row + i * next) * n + col] = $(left)sum[i]$right;\n"
           "}\n");
    grammar_analysis(g, "Global reads of b are shared by $items rows in registers.");
    grammar_design(g, "$items outputs per thread, $wide x $high threads a block.");
}

static void matmul_tile(Grammar *g)
{
    grammar_choose(g, "tile", "8 16 32");
    grammar_choose(g, "unroll", "1 0");
    grammar_set(g, "pragma", grammar_is(g, "unroll", "0") ? "" : "    #pragma unroll\n");
    grammar_plan(g, "launch matmul<$tile><<<dim3(ceil_div(n, $tile), ceil_div(m, $tile)), "
                    "dim3($tile, $tile)>>>$args");
    grammar_code(g, "template <int T>\n__global__ void matmul$params {\n"
                    "  __shared__ float as[T][T], bs[T][T];\n"
                    "  int tx = threadIdx.x, ty = threadIdx.y;\n"
                    "  int col = blockIdx.x * T + tx, row = blockIdx.y * T + ty;\n"
                    "  float sum = 0.0f;\n"
                    "  for (int t = 0; t < k; t += T) {\n"
                    "    as[ty][tx] = row < m && t + tx < k ? a[row * k + t + tx] : 0.0f;\n"
                    "    bs[ty][tx] = t + ty < k && col < n ? b[(t + ty) * n + col] : 0.0f;\n"
                    "    __syncthreads();\n"
                    "$pragma    for (int p = 0; p < T; p++) sum += as[ty][p] * bs[p][tx];\n"
                    "    __syncthreads();\n"
                    "  }\n"
                    "  if (row < m && col < n) c[row * n + col] = $(left)sum$right;\n"
                    "}\n");
    grammar_analysis(g, "Shared tiles cut global reads $tile times.");
    grammar_design(g, "Shared tile $tile x $tile, one output per thread.");
}

/* The copy of a tile from global to shared memory: element by element, or with all loads of a
 * thread first, so that they are in flight together. can_batch: each thread has at least one
 * element of both tiles. */
static void matmul_stage(Grammar *g, int can_batch)
{
    if (grammar_choose(g, "stage", can_batch ? "direct:3 batch" : "direct") == 0) {
        grammar_set(g, "fill",
                    "    for (int i = tid; i < M * K; i += P) {\n"
                    "      int row = row0 + i / K, p = t + i % K;\n"
                    "      as[i % K][i / K] = row < m && p < k ? a[row * k + p] : 0.0f;\n"
                    "    }\n"
                    "    for (int i = tid; i < K * N; i += P) {\n"
                    "      int p = t + i / N, col = col0 + i % N;\n"
                    "      bs[i / N][i % N] = p < k && col < n ? b[p * n + col] : 0.0f;\n"
                    "    }\n");
        return;
    }
    grammar_set(g, "fill",
                "    float va[M * K / P], vb[K * N / P];\n"
                "    for (int j = 0; j < M * K / P; j++) {\n"
                "      int i = tid + j * P, row = row0 + i / K, p = t + i % K;\n"
                "      va[j] = row < m && p < k ? a[row * k + p] : 0.0f;\n"
                "    }\n"
                "    for (int j = 0; j < K * N / P; j++) {\n"
                "      int i = tid + j * P, p = t + i / N, col = col0 + i % N;\n"
                "      vb[j] = p < k && col < n ? b[p * n + col] : 0.0f;\n"
                "    }\n"
                "    for (int j = 0; j < M * K / P; j++) as[(tid + j * P) % K][(tid + j * P) / K] "
                "= va[j];\n"
                "    for (int j = 0; j < K * N / P; j++) bs[(tid + j * P) / N][(tid + j * P) % N] "
                "= vb[j];\n");
}

/* Shared tiles, and a small square of outputs in the registers of each thread. */
static void matmul_registers(Grammar *g)
{
    int bm = 16 << grammar_choose(g, "rows", "16 32 64"),
        bn = 16 << grammar_choose(g, "cols", "16 32 64");
    grammar_choose(g, "depth", "8:2 16:2 32 64");
    int each = 2 << grammar_choose(g, "each",
                                   bm * bn <= 512    ? "2"
                                   : bm * bn <= 2048 ? "2 4"
                                                     : "2 4 8");
    int apart = grammar_choose(g, "layout", "together apart");
    grammar_choose(g, "pad", "1:2 4");
    int threads = bn / each * (bm / each), depth = grammar_int(g, "depth");
    matmul_stage(g, depth * (bm < bn ? bm : bn) >= threads);
    grammar_set_int(g, "threads", threads);
    grammar_set(g, "ri", apart ? "ty + i * (M / T)" : "ty * T + i");
    grammar_set(g, "cj", apart ? "tx + j * (N / T)" : "tx * T + j");
    grammar_plan(g, "launch matmul<$rows, $cols, $depth, $each><<<dim3(ceil_div(n, $cols), "
                    "ceil_div(m, $rows)), $threads>>>$args");
    grammar_code(g, "template <int M, int N, int K, int T>\n"
                    "__global__ void matmul$params {\n"
                    "  __shared__ __align__(16) float as[K][M + $pad], bs[K][N];\n"
                    "  const int P = M / T * (N / T);\n"
                    "  int tid = threadIdx.x, tx = tid % (N / T), ty = tid / (N / T);\n"
                    "  int row0 = blockIdx.y * M, col0 = blockIdx.x * N;\n"
                    "  float sum[T][T] = {};\n"
                    "  for (int t = 0; t < k; t += K) {\n"
                    "$fill"
                    "    __syncthreads();\n"
                    "    for (int p = 0; p < K; p++)\n"
                    "      for (int i = 0; i < T; i++)\n"
                    "        for (int j = 0; j < T; j++) sum[i][j] += as[p][$ri] * bs[p][$cj];\n"
                    "    __syncthreads();\n"
                    "  }\n"
                    "  for (int i = 0; i < T; i++)\n"
                    "    for (int j = 0; j < T; j++) {\n"
                    "      int row = row0 + $ri, col = col0 + $cj;\n"
                    "      if (row < m && col < n) c[row * n + col] = $(left)sum[i][j]$right;\n"
                    "    }\n"
                    "}\n");
    grammar_analysis(g, "Shared tiles, and each shared value is used $each times from registers.");
    grammar_design(g, "Shared tile $rows x $cols x $depth, $each x $each outputs per thread, "
                      "$threads threads a block.");
}

void template_matmul(Grammar *g)
{
    static void (*const ways[])(Grammar *) = {matmul_naive, matmul_strip, matmul_tile,
                                              matmul_registers};
    int way = grammar_choose(g, "way", "naive:4 strip:2 tile:2 registers:4");
    matmul_epilogue(g);
    ways[way](g);
    matmul_epilogue_launches(g);
    if (!strcmp(g->task, "matmul")) return;
    grammar_design(g, grammar_is(g, "launches", "1")   ? "Bias and relu fused."
                      : grammar_is(g, "launches", "2") ? "Bias and relu in a second launch."
                                                       : "Bias and relu in launches of their own.");
}

/* The direct way: a product with d as a matrix. */
static void diag_product(Grammar *g, int stored)
{
    matmul_shape(g, "8x8 16x8 16x16 32x4 32x8 32x32 8x32");
    grammar_set(g, "left_of", stored ? "a[row * n + p]" : "(p == row ? d[p] : 0.0f)");
    grammar_set(g, "source", stored ? "a" : "d");
    if (stored) {
        grammar_plan(g, "buffer float a[n * n]");
        grammar_plan(g, "launch diag<<<ceil_div(n * n, 256), 256>>>(d, a, n)");
        grammar_code(g, "__global__ void diag(const float *d, float *a, int n) {\n"
                        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                        "  if (i < n * n) a[i] = i / n == i % n ? d[i / n] : 0.0f;\n"
                        "}\n");
    }
    grammar_plan(g, "launch matmul<<<dim3(ceil_div(m, $wide), ceil_div(n, $high)), dim3($wide, "
                    "$high)>>>($source, b, c, n, m)");
    grammar_code(
        g,
        "__global__ void matmul(const float *$source, const float *b, float *c, int n, int m) {\n"
        "  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + "
        "threadIdx.y;\n"
        "  if (row >= n || col >= m) return;\n"
        "  float sum = 0.0f;\n"
        "  for (int p = 0; p < n; p++) sum += $left_of * b[p * m + col];\n"
        "  c[row * m + col] = sum;\n"
        "}\n");
    grammar_analysis(g,
                     "A product with a matrix of zeros: $left_of does nothing off the diagonal.");
    grammar_design(
        g, stored ? "The diagonal as a matrix, then a product, $wide x $high threads a block."
                  : "A product that tests for the diagonal, $wide x $high threads a block.");
}

/* Scales the rows over a flat index; a division gives the row. */
static void diag_flat(Grammar *g)
{
    int vector = grammar_choose(g, "vector", "1:2 4");
    grammar_choose(g, "block", "32 64 128 256 512 1024");
    grammar_choose(g, "items", "1 2 4");
    if (vector) {
        grammar_helper(g,
                       "__device__ void scale4(const float *d, const float *b, float *c, int i, "
                       "int n, int m) {\n"
                       "  if (m % 4 == 0 && i < n * m) {\n"
                       "    float4 v = *(const float4 *)(b + i);\n"
                       "    float s = d[i / m];\n"
                       "    *(float4 *)(c + i) = make_float4(v.x * s, v.y * s, v.z * s, v.w * s);\n"
                       "  } else {\n"
                       "    for (int j = i; j < i + 4 && j < n * m; j++) c[j] = d[j / m] * b[j];\n"
                       "  }\n"
                       "}\n");
    }
    grammar_set(g, "body",
                vector ? "scale4(d, b, c, i, n, m);\n"
                       : "if (i < n * m) c[i] = d[i / m] * b[i];\n");
    grammar_set(g, "unit", vector ? "$block * 4" : "$block");
    grammar_set(g, "stride", vector ? "blockDim.x * 4" : "blockDim.x");
    grammar_set(g, "offset", vector ? "threadIdx.x * 4" : "threadIdx.x");
    grammar_plan(
        g,
        "launch diag_matmul<$items><<<ceil_div(n * m, $unit * $items), $block>>>(d, b, c, n, m)");
    grammar_code(
        g, "template <int N>\n"
           "__global__ void diag_matmul(const float *d, const float *b, float *c, int n, int m) {\n"
           "  int i = blockIdx.x * $stride * N + $offset;\n"
           "  for (int j = 0; j < N; j++, i += $stride)\n    $body}\n");
    grammar_analysis(g, "diag(d) times b only scales row i of b by d[i]: memory bound.");
    grammar_design(
        g, vector ? "Flat index, float4 loads, $block threads a block, $items steps per thread."
                  : "Flat index, scalar loads, $block threads a block, $items steps per thread.");
}

static void diag_rows(Grammar *g)
{
    matmul_shape(g, "8x8 16x8 16x16 32x4 32x8 32x16 32x32 8x32");
    int by_row = grammar_choose(g, "fast", "col:2 row");
    grammar_set(g, "slow", by_row ? "col" : "row");
    grammar_plan(g, by_row ? "launch diag_matmul<<<dim3(ceil_div(n, $wide), ceil_div(m, $high)), "
                             "dim3($wide, $high)>>>(d, b, c, n, m)"
                           : "launch diag_matmul<<<dim3(ceil_div(m, $wide), ceil_div(n, $high)), "
                             "dim3($wide, $high)>>>(d, b, c, n, m)");
    grammar_code(
        g, "__global__ void diag_matmul(const float *d, const float *b, float *c, int n, int m) {\n"
           "  int $fast = blockIdx.x * blockDim.x + threadIdx.x, $slow = blockIdx.y * blockDim.y + "
           "threadIdx.y;\n"
           "  if (row < n && col < m) c[row * m + col] = d[row] * b[row * m + col];\n"
           "}\n");
    grammar_analysis(g, "diag(d) times b only scales row i of b by d[i]: memory bound.");
    grammar_design(g, by_row
                          ? "One element per thread, $wide x $high threads a block, not coalesced."
                          : "One element per thread, $wide x $high threads a block, coalesced.");
}

void template_diag_matmul(Grammar *g)
{
    int way = grammar_choose(g, "way", "matrix:6 test:5 rows:2 flat:1");
    if (way < 2)
        diag_product(g, way == 0);
    else if (way == 2)
        diag_rows(g);
    else
        diag_flat(g);
}
