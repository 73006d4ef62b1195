/* Causal attention, in four ways: three launches with a buffer of scores; one block per query; one
 * warp per query with an online softmax; tiles of keys and values in shared memory. */
#include <string.h>

#include "stages/teacher/template_grammar.h"

static void attention_scores(Grammar *g)
{
    static const int wide[] = {8, 16, 32, 32}, high[] = {8, 16, 4, 8};
    int shape = grammar_choose(g, "shape", "8x8 16x16 32x4 32x8");
    int by_row = grammar_choose(g, "fast", "col row");
    grammar_set(g, "slow", by_row ? "col" : "row");
    grammar_set_int(g, "wide", wide[shape]);
    grammar_set_int(g, "high", high[shape]);
    grammar_plan(g, "buffer float s[heads * seq * seq]");
    grammar_plan(g, "launch scores<<<dim3(ceil_div(seq, $wide), ceil_div(seq, $high), heads), "
                    "dim3($wide, $high)>>>(q, k, s, seq, dim)");
    grammar_code(
        g, "__global__ void scores(const float *q, const float *k, float *s, int seq, int dim) {\n"
           "  int $fast = blockIdx.x * blockDim.x + threadIdx.x, $slow = blockIdx.y * blockDim.y + "
           "threadIdx.y, head = blockIdx.z;\n"
           "  if (row >= seq || col > row) return;\n"
           "  q += (head * seq + row) * dim;\n"
           "  k += (head * seq + col) * dim;\n"
           "  float sum = 0.0f;\n"
           "  for (int i = 0; i < dim; i++) sum += q[i] * k[i];\n"
           "  s[(head * seq + row) * seq + col] = sum * rsqrtf((float)dim);\n"
           "}\n");
}

static void attention_three(Grammar *g)
{
    rows_mapping(g, "thread:2 warp", NULL);
    grammar_set(g, "row_count", "heads * seq");
    grammar_set(g, "exp", "expf");
    rows_reduce(g, "top", "max");
    rows_reduce(g, "sum", "sum");
    attention_scores(g);
    grammar_choose(g, "out", "16x8 32x4 32x8 64x4");
    static const char *const wides[] = {"16", "32", "32", "64"}, *const highs[] = {"8", "4", "8",
                                                                                   "4"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(grammar_get(g, "out"),
                    (const char *const[]){"16x8", "32x4", "32x8", "64x4"}[i])) {
            grammar_set(g, "out_wide", wides[i]);
            grammar_set(g, "out_high", highs[i]);
        }
    grammar_plan(g, "launch softmax<<<$grid, $block>>>(s, heads * seq, seq)");
    grammar_plan(g, "launch output<<<dim3(ceil_div(dim, $out_wide), ceil_div(seq, $out_high), "
                    "heads), dim3($out_wide, $out_high)>>>"
                    "(s, v, o, seq, dim)");
    grammar_code(
        g, "__global__ void softmax(float *s, int rows, int seq) {\n$head"
           "  s += row * seq;\n"
           "  int cols = row % seq + 1;\n"
           "  float top = -1e30f, sum = 0.0f;\n"
           "  $for top = fmaxf(top, s[i]);\n$reduce_top"
           "  $for sum += $exp(s[i] - top);\n$reduce_sum"
           "  float scale = 1.0f / sum;\n"
           "  $for s[i] = $exp(s[i] - top) * scale;\n"
           "}\n"
           "__global__ void output(const float *s, const float *v, float *o, int seq, int dim) {\n"
           "  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + "
           "threadIdx.y, head = blockIdx.z;\n"
           "  if (row >= seq || col >= dim) return;\n"
           "  s += (head * seq + row) * seq;\n"
           "  v += head * seq * dim;\n"
           "  float sum = 0.0f;\n"
           "  for (int j = 0; j <= row; j++) sum += s[j] * v[j * dim + col];\n"
           "  o[(head * seq + row) * dim + col] = sum;\n"
           "}\n");
    grammar_analysis(g, "Scores go through global memory three times.");
    grammar_design(g, "Three launches: scores, softmax with one $mapping per row, output.");
}

/* A block computes a query and keeps its scores in shared memory. */
static void attention_block(Grammar *g)
{
    grammar_set(g, "mapping", "block");
    grammar_choose(g, "block", "32 64 128 256");
    grammar_choose(g, "reduce", "tree shuffle");
    int warp = grammar_choose(g, "keys", "thread warp");
    grammar_choose(g, "exp", "expf:2 __expf");
    if (warp)
        grammar_helper(g,
                       "__device__ float warp_sum(float v) {\n"
                       "  for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(0xffffffff, v, s);\n"
                       "  return v;\n}\n");
    rows_reduce(g, "top", "max");
    rows_reduce(g, "sum", "sum");
    grammar_plan(g,
                 "launch attention<<<dim3(seq, heads), $block, seq * 4>>>(q, k, v, o, seq, dim)");
    grammar_code(g, "__global__ void attention(const float *q, const float *k, const float *v, "
                    "float *o, int seq, int dim) {\n"
                    "  extern __shared__ float s[];\n"
                    "  int row = blockIdx.x, head = blockIdx.y, tid = threadIdx.x;\n"
                    "  q += (head * seq + row) * dim;\n"
                    "  o += (head * seq + row) * dim;\n"
                    "  k += head * seq * dim;\n"
                    "  v += head * seq * dim;\n"
                    "  float top = -1e30f, sum = 0.0f;\n");
    grammar_code(
        g, warp ? "  for (int j = tid / 32; j <= row; j += blockDim.x / 32) {\n"
                  "    float dot = 0.0f;\n"
                  "    for (int i = tid % 32; i < dim; i += 32) dot += q[i] * k[j * dim + i];\n"
                  "    dot = warp_sum(dot) * rsqrtf((float)dim);\n"
                  "    if (tid % 32 == 0) s[j] = dot;\n"
                  "    top = fmaxf(top, dot);\n"
                  "  }\n"
                : "  for (int j = tid; j <= row; j += blockDim.x) {\n"
                  "    float dot = 0.0f;\n"
                  "    for (int i = 0; i < dim; i++) dot += q[i] * k[j * dim + i];\n"
                  "    dot *= rsqrtf((float)dim);\n"
                  "    s[j] = dot;\n"
                  "    top = fmaxf(top, dot);\n"
                  "  }\n");
    grammar_code(g, "$reduce_top"
                    "  for (int j = tid; j <= row; j += blockDim.x) {\n"
                    "    s[j] = $exp(s[j] - top);\n"
                    "    sum += s[j];\n"
                    "  }\n$reduce_sum"
                    "  for (int i = tid; i < dim; i += blockDim.x) {\n"
                    "    float out = 0.0f;\n"
                    "    for (int j = 0; j <= row; j++) out += s[j] * v[j * dim + i];\n"
                    "    o[i] = out / sum;\n"
                    "  }\n"
                    "}\n");
    grammar_analysis(g, "Scores stay in shared memory; keys are read again for each query.");
    grammar_design(g, "One block per query, one $keys per key, $block threads a block.");
}

/* Texts of the two online variants: a warp per query, its output in registers. */
static void attention_warp_texts(Grammar *g)
{
    grammar_choose(g, "block", "32 64 128 256 512 1024");
    grammar_choose(g, "regs", "4 2"); /* a head of at most 32 * regs elements */
    grammar_choose(g, "exp", "expf:2 __expf");
    grammar_set(g, "each", "for (int r = 0, i = lane; r < N && i < dim; r++, i += 32)");
    grammar_helper(g, "__device__ float warp_sum(float v) {\n"
                      "  for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(0xffffffff, v, s);\n"
                      "  return v;\n}\n");
    grammar_plan(g, "launch attention<$regs><<<dim3(ceil_div(seq, $block / 32), heads), "
                    "$block$shared>>>(q, k, v, o, seq, dim)");
    grammar_code(g, "template <int N>\n"
                    "__global__ void attention(const float *q, const float *k, const float *v, "
                    "float *o, int seq, int dim) {\n"
                    "$keep"
                    "  int lane = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + "
                    "threadIdx.x / 32, head = blockIdx.y;\n"
                    "$leave"
                    "  q += (head * seq + row) * dim;\n"
                    "  o += (head * seq + row) * dim;\n"
                    "  k += head * seq * dim;\n"
                    "  v += head * seq * dim;\n"
                    "  float out[N] = {}, top = -1e30f, sum = 0.0f, scale = rsqrtf((float)dim);\n");
}

static void attention_online(Grammar *g)
{
    grammar_set(g, "keep", "");
    grammar_set(g, "shared", "");
    grammar_set(g, "leave", "  if (row >= seq) return;\n");
    attention_warp_texts(g);
    grammar_code(g, "  for (int j = 0; j <= row; j++) {\n"
                    "    float dot = 0.0f;\n"
                    "    for (int i = lane; i < dim; i += 32) dot += q[i] * k[j * dim + i];\n"
                    "    dot = warp_sum(dot) * scale;\n"
                    "    float big = fmaxf(top, dot), old = $exp(top - big), p = $exp(dot - big);\n"
                    "    sum = sum * old + p;\n"
                    "    $each out[r] = out[r] * old + p * v[j * dim + i];\n"
                    "    top = big;\n"
                    "  }\n"
                    "  $each o[i] = out[r] / sum;\n"
                    "}\n");
    grammar_analysis(
        g, "Nothing goes through memory but q, k, v and o; a reduction per key is latency bound.");
    grammar_design(g, "One warp per query, online softmax, $block threads a block.");
}

static void attention_tiled(Grammar *g)
{
    grammar_choose(g, "pad", "0 1:2");
    grammar_set(g, "pitch", grammar_is(g, "pad", "1") ? "(dim + 1)" : "dim");
    int kept = grammar_choose(g, "query", "global:2 shared");
    grammar_set(g, "qs", kept ? "qs" : "q");
    grammar_set(g, "shared",
                kept ? ", (64 * $pitch + $block / 32 * dim) * 4" : ", 64 * $pitch * 4");
    grammar_set(
        g, "keep",
        kept ? "  extern __shared__ float ks[];\n"
               "  float *vs = ks + 32 * $pitch, *qs = vs + 32 * $pitch + threadIdx.x / 32 * dim;\n"
             : "  extern __shared__ float ks[];\n  float *vs = ks + 32 * $pitch;\n");
    grammar_set(g, "leave", "");
    grammar_helper(
        g, "__device__ float warp_max(float v) {\n"
           "  for (int s = 16; s > 0; s /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, s));\n"
           "  return v;\n}\n");
    attention_warp_texts(g);
    if (kept)
        grammar_code(g,
                     "  if (row < seq)\n    for (int i = lane; i < dim; i += 32) qs[i] = q[i];\n");
    grammar_code(
        g,
        "  for (int t = 0; t < min(seq, (blockIdx.x + 1) * (blockDim.x / 32)); t += 32) {\n"
        "    for (int i = threadIdx.x; i < 32 * dim; i += blockDim.x) {\n"
        "      int j = i / dim, at = j * $pitch + i % dim;\n"
        "      ks[at] = t + j < seq ? k[t * dim + i] : 0.0f;\n"
        "      vs[at] = t + j < seq ? v[t * dim + i] : 0.0f;\n"
        "    }\n"
        "    __syncthreads();\n"
        "    float dot = 0.0f;\n"
        "    if (row < seq && t + lane <= row) {\n"
        "      for (int i = 0; i < dim; i++) dot += $qs[i] * ks[lane * $pitch + i];\n"
        "      dot *= scale;\n"
        "    } else {\n"
        "      dot = -1e30f;\n"
        "    }\n"
        "    float big = fmaxf(top, warp_max(dot)), old = $exp(top - big), p = $exp(dot - big);\n"
        "    sum = sum * old + warp_sum(p);\n"
        "    $each out[r] *= old;\n"
        "    for (int j = 0; j < 32; j++) {\n"
        "      float w = __shfl_sync(0xffffffff, p, j);\n"
        "      $each out[r] += w * vs[j * $pitch + i];\n"
        "    }\n"
        "    top = big;\n"
        "    __syncthreads();\n"
        "  }\n"
        "  if (row < seq) $each o[i] = out[r] / sum;\n"
        "}\n");
    grammar_analysis(g,
                     "Keys and values are read once per block into shared memory; a lane per key.");
    grammar_design(g, "Tiles of 32 keys in shared memory, one warp per query, online softmax, "
                      "$block threads a block.");
}

void template_attention(Grammar *g)
{
    static void (*const ways[])(Grammar *) = {attention_three, attention_block, attention_online,
                                              attention_tiled};
    ways[grammar_choose(g, "way", "three:4 block:2 online:2 tiled:1")](g);
}
