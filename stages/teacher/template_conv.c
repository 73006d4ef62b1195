/* The 3-D convolution whose clamp makes every output zero: in two to four launches, with one block
 * per batch entry, and as the fill with zeros that the algebra allows. */
#include "stages/teacher/template_grammar.h"

static void conv_convolve(Grammar *g)
{
    grammar_plan(g, "launch convolve<<<ceil_div($total, $block), $block>>>(x, weight, bias, y, "
                    "batch, cin, cout, d)");
    grammar_code(g,
                 "__global__ void convolve(const float *x, const float *weight, const float *bias, "
                 "float *y, "
                 "int batch, int cin, int cout, int d) {\n"
                 "  int i = blockIdx.x * blockDim.x + threadIdx.x, e = d - 2, volume = e * e * e;\n"
                 "  if (i >= batch * cout * volume) return;\n"
                 "  int entry = i / (cout * volume), channel = i / volume % cout, p = i % volume;\n"
                 "  x += entry * cin * d * d * d + (p / (e * e) * d + p / e % e) * d + p % e;\n"
                 "  weight += channel * cin * 27;\n"
                 "  float sum = bias[channel];\n"
                 "  for (int c = 0; c < cin; c++)\n"
                 "$pragma    for (int j = 0; j < 27; j++) sum += weight[c * 27 + j] * x[((c * d + "
                 "j / 9) * d + j / 3 % 3) * d + j % 3];\n"
                 "  y[i] = sum;\n"
                 "}\n");
}

/* A block normalizes one batch entry, whose convolution has the sum `sum`. The text "clamped" is
 * the new value of y. */
static void conv_norm_body(Grammar *g)
{
    grammar_code(g, "$reduce_sum"
                    "  float mean = sum / cols;\n"
                    "  for (int i = tid; i < cols; i += blockDim.x) var += (y[i] - mean) * (y[i] - "
                    "mean);\n$reduce_var"
                    "  float scale = rsqrtf(var / cols + 1e-5f);\n"
                    "  for (int i = tid; i < cols; i += blockDim.x) {\n"
                    "    float v = (y[i] - mean) * scale * gamma[i / volume] + beta[i / volume];\n"
                    "    y[i] = $clamped;\n"
                    "  }\n"
                    "}\n");
}

static void conv_norm(Grammar *g)
{
    grammar_plan(g, "launch normalize<<<batch, $threads>>>(gamma, beta, y, cout, $volume)");
    grammar_code(g, "__global__ void normalize(const float *gamma, const float *beta, float *y, "
                    "int cout, int volume) {\n"
                    "  int tid = threadIdx.x, cols = cout * volume;\n"
                    "  y += blockIdx.x * cols;\n"
                    "  float sum = 0.0f, var = 0.0f;\n"
                    "  for (int i = tid; i < cols; i += blockDim.x) sum += y[i];\n");
    conv_norm_body(g);
}

static void conv_step(Grammar *g, const char *name, const char *value)
{
    grammar_set(g, "step", name);
    grammar_set(g, "value", value);
    grammar_plan(g, "launch $step<<<ceil_div($total, 256), 256>>>(y, $total)");
    grammar_code(g, "__global__ void $step(float *y, int n) {\n"
                    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (i < n) y[i] = $value;\n"
                    "}\n");
}

static void conv_long(Grammar *g)
{
    int launches = 2 + grammar_choose(g, "launches", "2 3 4:2");
    grammar_choose(g, "block", "32 64 128 256 512");
    grammar_choose(g, "threads", "64 128 256 512 1024");
    grammar_set(g, "reduce", "shuffle");
    grammar_choose(g, "unroll", "1 0:2");
    grammar_set(g, "mapping", "block");
    grammar_set(g, "pragma", grammar_is(g, "unroll", "1") ? "    #pragma unroll\n" : "");
    grammar_set(g, "clamped",
                launches == 2   ? "fminf(fmaxf(fminf(v, 0.0f), 0.0f), 1.0f)"
                : launches == 3 ? "fminf(v, 0.0f)"
                                : "v");
    grammar_analysis(g, "The convolution dominates; each launch reads and writes y.");
    grammar_design(
        g,
        "$launches launches: the convolution with $block threads a block, the norm with $threads.");
    conv_convolve(g);
    rows_reduce(g, "sum", "sum");
    rows_reduce(g, "var", "sum");
    conv_norm(g);
    if (launches == 4) conv_step(g, "lower", "fminf(y[i], 0.0f)");
    if (launches >= 3) conv_step(g, "clamp", "fminf(fmaxf(y[i], 0.0f), 1.0f)");
}

/* A block convolves, normalizes and clamps one batch entry; y holds the convolution meanwhile. */
static void conv_fused(Grammar *g)
{
    grammar_choose(g, "block", "64 128 256 512 1024");
    grammar_set(g, "reduce", "shuffle");
    grammar_set(g, "mapping", "block");
    grammar_set(g, "clamped", "fminf(fmaxf(fminf(v, 0.0f), 0.0f), 1.0f)");
    rows_reduce(g, "sum", "sum");
    rows_reduce(g, "var", "sum");
    grammar_plan(g,
                 "launch fused<<<batch, $block>>>(x, weight, bias, gamma, beta, y, cin, cout, d)");
    grammar_code(g,
                 "__global__ void fused(const float *x, const float *weight, const float *bias, "
                 "const float *gamma, const float *beta, "
                 "float *y, int cin, int cout, int d) {\n"
                 "  int tid = threadIdx.x, e = d - 2, volume = e * e * e, cols = cout * volume;\n"
                 "  x += blockIdx.x * cin * d * d * d;\n"
                 "  y += blockIdx.x * cols;\n"
                 "  float sum = 0.0f, var = 0.0f;\n"
                 "  for (int i = tid; i < cols; i += blockDim.x) {\n"
                 "    int channel = i / volume, p = i % volume, at = (p / (e * e) * d + p / e % e) "
                 "* d + p % e;\n"
                 "    float v = bias[channel];\n"
                 "    for (int c = 0; c < cin; c++)\n"
                 "      for (int j = 0; j < 27; j++)\n"
                 "        v += weight[(channel * cin + c) * 27 + j] * x[at + ((c * d + j / 9) * d "
                 "+ j / 3 % 3) * d + j % 3];\n"
                 "    y[i] = v;\n"
                 "    sum += v;\n"
                 "  }\n");
    conv_norm_body(g);
    grammar_analysis(g, "One launch, but only one block per batch entry.");
    grammar_design(g, "Convolution, norm and clamp fused, $block threads a block.");
}

/* min(v, 0) clamped to [0, 1] is 0 for every v. */
static void conv_zero(Grammar *g)
{
    int vector = grammar_choose(g, "vector", "1:2 4");
    grammar_choose(g, "block", "32 64 128 256 512 1024");
    grammar_choose(g, "items", "1:2 2 4");
    grammar_set(g, "body", vector ? "zero4(y, i, n);\n" : "if (i < n) y[i] = 0.0f;\n");
    grammar_set(g, "unit", vector ? "$block * 4" : "$block");
    grammar_set(g, "stride", vector ? "blockDim.x * 4" : "blockDim.x");
    grammar_set(g, "offset", vector ? "threadIdx.x * 4" : "threadIdx.x");
    if (vector)
        grammar_helper(g, "__device__ void zero4(float *y, int i, int n) {\n"
                          "  if (i + 4 <= n) {\n"
                          "    *(float4 *)(y + i) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);\n"
                          "  } else {\n"
                          "    for (; i < n; i++) y[i] = 0.0f;\n"
                          "  }\n"
                          "}\n");
    grammar_plan(g, "launch zero<$items><<<ceil_div($total, $unit * $items), $block>>>(y, $total)");
    grammar_code(g, "template <int N>\n"
                    "__global__ void zero(float *y, int n) {\n"
                    "  int i = blockIdx.x * $stride * N + $offset;\n"
                    "  for (int j = 0; j < N; j++, i += $stride)\n    $body}\n");
    grammar_analysis(
        g, "min(v, 0) clamped to [0, 1] is 0 for every v, so nothing needs to be computed.");
    grammar_design(g, vector
                          ? "Zero fill, float4 stores, $block threads a block, $items per thread."
                          : "Zero fill, scalar stores, $block threads a block, $items per thread.");
}

void template_conv3d(Grammar *g)
{
    grammar_set(g, "volume", "(d - 2) * (d - 2) * (d - 2)");
    grammar_set(g, "total", "batch * cout * $volume");
    switch (grammar_choose(g, "way", "long:16 fused:8 zero:1")) {
    case 0: conv_long(g); break;
    case 1: conv_fused(g); break;
    default: conv_zero(g);
    }
}
