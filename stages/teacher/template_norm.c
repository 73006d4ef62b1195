/* Normalizations over rows: layernorm, and the residual addition fused with RMS norm. */
#include <string.h>

#include "stages/teacher/template_grammar.h"

enum {
    PASSES,
    SECOND, /* layernorm: both moments in one pass; rmsnorm: the sum is stored in y */
    SHARED,
    REGISTERS,
    SPLIT
};

static void norm_rows(Grammar *g, int way)
{
    /* The padding of a tail in shared memory would count in the variance. */
    int plain_only = way == SHARED && !strcmp(g->task, "layernorm");
    rows_mapping(g, way == SHARED || way == REGISTERS ? "warp block" : "thread:3 warp:1 block:3",
                 way == REGISTERS || plain_only ? NULL : "1:6 4");
    if (!strcmp(g->task, "residual_rmsnorm") && grammar_is(g, "mapping", "block"))
        grammar_choose(g, "reduce", "tree shuffle");
    if (way == REGISTERS)
        rows_keep_registers(g, "2 4 8 16");
    else
        grammar_choose(g, "unroll", "1:2 4");
    grammar_set(g, "pragma", grammar_is(g, "unroll", "4") ? "  #pragma unroll 4\n" : "");
    if (way == SHARED) rows_keep_shared(g);
    grammar_set(g, "put", grammar_is(g, "vector", "1") ? "h[i]" : "h[i / 4]");
    grammar_analysis(g, "Memory bound: the row should be read once.");
    grammar_analysis(g, "$who");
}

static void norm_loads(Grammar *g, const char *design)
{
    grammar_design(g, design);
    grammar_design(g, grammar_is(g, "vector", "1") ? "Scalar loads, $block threads a block."
                                                   : "float4 loads, $block threads a block.");
}

static void layernorm_steps(Grammar *g, int way)
{
    int vector = !grammar_is(g, "vector", "1");
    grammar_set(g, "add", vector ? "sum += sum4(load4(x, i, cols, 0.0f));" : "sum += x[i];");
    if (way == SECOND)
        grammar_set(g, "add",
                    vector ? "{\n    float4 v = load4(x, i, cols, 0.0f);\n    sum += sum4(v);\n    "
                             "var += sum4(mul4(v, v));\n  }"
                           : "{\n    float v = x[i];\n    sum += v;\n    var += v * v;\n  }");
    if (way == SHARED)
        grammar_set(g, "add", "{\n    float v = x[i];\n    h[i] = v;\n    sum += v;\n  }");
    grammar_set(g, "again", way == SHARED ? "h[i]" : vector ? "load4(x, i, cols, mean)" : "x[i]");
    grammar_set(g, "spread",
                vector
                    ? "{\n    float4 v = shift4($again, mean);\n    var += sum4(mul4(v, v));\n  }"
                    : "{\n    float v = $again - mean;\n    var += v * v;\n  }");
    grammar_set(g, "write",
                vector ? "{\n    float4 v = scale4(shift4($again, mean), scale);\n"
                         "    store4(y, i, cols, add4(mul4(v, load4(gamma, i, cols, 0.0f)), "
                         "load4(beta, i, cols, 0.0f)));\n  }"
                       : "y[i] = ($again - mean) * scale * gamma[i] + beta[i];");
}

static void layernorm_split(Grammar *g)
{
    grammar_plan(g, "buffer float means[rows]");
    grammar_plan(g, "buffer float scales[rows]");
    grammar_plan(g, "launch row_mean<<<$grid, $block>>>(x, means, rows, cols)");
    grammar_plan(g, "launch row_scale<<<$grid, $block>>>(x, means, scales, rows, cols)");
    grammar_plan(g, "launch layernorm<<<ceil_div(rows * cols, $block), $block>>>(x, means, scales, "
                    "gamma, beta, y, rows, cols)");
    grammar_code(
        g, "__global__ void row_mean(const float *x, float *means, int rows, int cols) {\n$head"
           "  x += row * cols;\n"
           "  float sum = 0.0f;\n"
           "$pragma  $for $add\n$reduce_sum"
           "  $(one)means[row] = sum / cols;\n"
           "}\n"
           "__global__ void row_scale(const float *x, const float *means, float *scales, int rows, "
           "int cols) {\n$head"
           "  x += row * cols;\n"
           "  float mean = means[row], var = 0.0f;\n"
           "$pragma  $for $spread\n$reduce_var"
           "  $(one)scales[row] = rsqrtf(var / cols + 1e-5f);\n"
           "}\n"
           "__global__ void layernorm(const float *x, const float *means, const float *scales, "
           "const float *gamma, "
           "const float *beta, float *y, int rows, int cols) {\n"
           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
           "  if (i >= rows * cols) return;\n"
           "  int row = i / cols, col = i % cols;\n"
           "  y[i] = (x[i] - means[row]) * scales[row] * gamma[col] + beta[col];\n"
           "}\n");
}

static void layernorm_registers(Grammar *g)
{
    grammar_code(g, "  float v[N], sum = 0.0f, var = 0.0f;\n"
                    "$each {\n    int i = $first + j * $step;\n    v[j] = i < cols ? x[i] : "
                    "0.0f;\n    sum += v[j];\n  }\n"
                    "  $rest sum += x[i];\n$reduce_sum"
                    "  float mean = sum / cols;\n"
                    "$each {\n    int i = $first + j * $step;\n    v[j] -= mean;\n    if (i < "
                    "cols) var += v[j] * v[j];\n  }\n"
                    "  $rest var += (x[i] - mean) * (x[i] - mean);\n$reduce_var"
                    "  float scale = rsqrtf(var / cols + 1e-5f);\n"
                    "$each {\n    int i = $first + j * $step;\n    if (i < cols) y[i] = v[j] * "
                    "scale * gamma[i] + beta[i];\n  }\n"
                    "  $rest y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];\n");
}

void template_layernorm(Grammar *g)
{
    static const char *const designs[] = {
        "Three passes over the row: mean, variance, write.",
        "Two passes: both moments at once, then write.",
        "The row is kept in shared memory, read once.",
        "The row is kept in registers, read once.",
        "Three launches: mean, variance, write.",
    };
    int way = grammar_choose(g, "way", "passes:3 moments:3 shared:2 registers:2 split:3");
    norm_rows(g, way);
    norm_loads(g, designs[way]);
    rows_vector_helpers(g, way == SPLIT ? "load4 sum4 mul4 shift4"
                                        : "load4 store4 sum4 add4 mul4 scale4 shift4");
    rows_reduce(g, "sum", "sum");
    rows_reduce(g, "var", "sum");
    if (way != REGISTERS) layernorm_steps(g, way);
    if (way == SPLIT) {
        layernorm_split(g);
        return;
    }
    grammar_plan(g,
                 "launch layernorm$size<<<$grid, $block$shared>>>(x, gamma, beta, y, rows, cols)");
    grammar_code(g, "$(template)__global__ void layernorm(const float *x, const float *gamma, "
                    "const float *beta, float *y, int rows, int cols) {\n"
                    "$keep$head"
                    "  x += row * cols;\n"
                    "  y += row * cols;\n");
    if (way == REGISTERS) {
        layernorm_registers(g);
    } else if (way == SECOND) {
        grammar_code(g, "  float sum = 0.0f, var = 0.0f;\n"
                        "$pragma  $for $add\n$reduce_sum$reduce_var"
                        "  float mean = sum / cols;\n"
                        "  float scale = rsqrtf(var / cols - mean * mean + 1e-5f);\n"
                        "$pragma  $for $write\n");
    } else {
        grammar_code(g, "  float sum = 0.0f, var = 0.0f;\n"
                        "$pragma  $for $add\n$reduce_sum"
                        "  float mean = sum / cols;\n"
                        "$pragma  $for $spread\n$reduce_var"
                        "  float scale = rsqrtf(var / cols + 1e-5f);\n"
                        "$pragma  $for $write\n");
    }
    grammar_code(g, "}\n");
}

static void rmsnorm_steps(Grammar *g, int way)
{
    int vector = !grammar_is(g, "vector", "1");
    grammar_set(g, "sum_of",
                vector ? "add4(load4(x, i, cols, 0.0f), load4(residual, i, cols, 0.0f))"
                       : "x[i] + residual[i]");
    grammar_set(g, "type", vector ? "float4" : "float");
    grammar_set(g, "store", "");
    if (way == SECOND)
        grammar_set(g, "store", vector ? "    store4(y, i, cols, v);\n" : "    y[i] = v;\n");
    if (way == SHARED) grammar_set(g, "store", "    $put = v;\n");
    grammar_set(g, "add",
                vector ? "{\n    float4 v = $sum_of;\n$store    sum += sum4(mul4(v, v));\n  }"
                       : "{\n    float v = $sum_of;\n$store    sum += v * v;\n  }");
    grammar_set(g, "again",
                way == SHARED   ? "$put"
                : way == SECOND ? vector ? "load4(y, i, cols, 0.0f)" : "y[i]"
                : vector        ? "$sum_of"
                                : "($sum_of)");
    grammar_set(
        g, "write",
        vector ? "store4(y, i, cols, mul4(scale4($again, scale), load4(weight, i, cols, 0.0f)));"
               : "y[i] = $again * scale * weight[i];");
}

static void rmsnorm_registers(Grammar *g)
{
    grammar_code(g, "  float v[N], sum = 0.0f;\n"
                    "$each {\n    int i = $first + j * $step;\n    v[j] = i < cols ? x[i] + "
                    "residual[i] : 0.0f;\n"
                    "    sum += v[j] * v[j];\n  }\n"
                    "  $rest sum += (x[i] + residual[i]) * (x[i] + residual[i]);\n$reduce_sum"
                    "  float scale = rsqrtf(sum / cols + 1e-6f);\n"
                    "$each {\n    int i = $first + j * $step;\n    if (i < cols) y[i] = v[j] * "
                    "scale * weight[i];\n  }\n"
                    "  $rest y[i] = (x[i] + residual[i]) * scale * weight[i];\n");
}

/* The scale of a row in its own launch. With more launches the addition, the square or the root
 * have their own launches too, as in an eager framework. */
static void rmsnorm_split(Grammar *g)
{
    int launches = 2 + grammar_choose(g, "launches", "2 3 4 5");
    int vector = !grammar_is(g, "vector", "1");
    rows_vector_helpers(g, launches == 2  ? "load4 sum4 add4 mul4"
                           : launches < 5 ? "load4 sum4 mul4"
                                          : "load4 sum4");
    grammar_set(g, "all", "<<<ceil_div(rows * cols, $block), $block>>>");
    grammar_plan(g, "buffer float scales[rows]");
    if (launches == 5) grammar_plan(g, "buffer float squares[rows * cols]");
    if (launches >= 3) grammar_plan(g, "launch add$all(x, residual, y, rows * cols)");
    if (launches == 5) grammar_plan(g, "launch square$all(y, squares, rows * cols)");
    grammar_set(g, "from", launches == 5 ? "squares" : "y");
    grammar_plan(g, launches == 2
                        ? "launch row_scale<<<$grid, $block>>>(x, residual, scales, rows, cols)"
                        : "launch row_scale<<<$grid, $block>>>($from, scales, rows, cols)");
    if (launches >= 4)
        grammar_plan(g, "launch root<<<ceil_div(rows, 128), 128>>>(scales, rows, cols)");
    grammar_plan(g, launches == 2 ? "launch rmsnorm$all(x, residual, scales, weight, y, rows, cols)"
                                  : "launch rmsnorm$all(scales, weight, y, rows, cols)");
    if (launches >= 3)
        grammar_code(
            g, "__global__ void add(const float *x, const float *residual, float *y, int n) {\n"
               "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
               "  if (i < n) y[i] = x[i] + residual[i];\n}\n");
    if (launches == 5)
        grammar_code(g, "__global__ void square(const float *y, float *squares, int n) {\n"
                        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                        "  if (i < n) squares[i] = y[i] * y[i];\n}\n");
    if (launches >= 3) grammar_set(g, "sum_of", vector ? "load4(x, i, cols, 0.0f)" : "x[i]");
    if (launches == 5) grammar_set(g, "add", vector ? "sum += sum4($sum_of);" : "sum += x[i];");
    grammar_set(g, "inputs",
                launches == 2 ? "const float *x, const float *residual" : "const float *x");
    grammar_set(g, "scaled", launches >= 4 ? "sum" : "rsqrtf(sum / cols + 1e-6f)");
    grammar_code(g, "__global__ void row_scale($inputs, float *scales, int rows, int cols) {\n$head"
                    "  x += row * cols;\n");
    if (launches == 2) grammar_code(g, "  residual += row * cols;\n");
    grammar_code(g, "  float sum = 0.0f;\n"
                    "$pragma  $for $add\n$reduce_sum"
                    "  $(one)scales[row] = $scaled;\n}\n");
    if (launches >= 4)
        grammar_code(g, "__global__ void root(float *scales, int rows, int cols) {\n"
                        "  int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
                        "  if (row < rows) scales[row] = rsqrtf(scales[row] / cols + 1e-6f);\n}\n");
    grammar_set(g, "from", launches == 2 ? "(x[i] + residual[i])" : "y[i]");
    grammar_set(g, "inputs",
                launches == 2 ? "const float *x, const float *residual, const float *scales"
                              : "const float *scales");
    grammar_code(
        g, "__global__ void rmsnorm($inputs, const float *weight, float *y, int rows, int cols) {\n"
           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
           "  if (i < rows * cols) y[i] = $from * scales[i / cols] * weight[i % cols];\n}\n");
    norm_loads(g, "$launches launches with buffers between.");
}

void template_residual_rmsnorm(Grammar *g)
{
    static const char *const designs[] = {
        "One launch: sum of squares, then write; the addition is done twice.",
        "One launch: the sum is stored in y and scaled in place.",
        "One launch: the sum is kept in shared memory.",
        "One launch: the sum is kept in registers.",
    };
    int way = grammar_choose(g, "way", "passes:3 store:2 shared:1 registers:1 split:8");
    norm_rows(g, way);
    if (way != SPLIT) rows_vector_helpers(g, "load4 store4 sum4 add4 mul4 scale4");
    rows_reduce(g, "sum", "sum");
    if (way != REGISTERS) rmsnorm_steps(g, way);
    if (way == SPLIT) {
        rmsnorm_split(g);
        return;
    }
    norm_loads(g, designs[way]);
    grammar_plan(
        g, "launch rmsnorm$size<<<$grid, $block$shared>>>(x, residual, weight, y, rows, cols)");
    grammar_code(g, "$(template)__global__ void rmsnorm(const float *x, const float *residual, "
                    "const float *weight, float *y, int rows, int cols) {\n"
                    "$keep$head"
                    "  x += row * cols;\n"
                    "  residual += row * cols;\n"
                    "  y += row * cols;\n");
    if (way == REGISTERS)
        rmsnorm_registers(g);
    else
        grammar_code(g, "  float sum = 0.0f;\n"
                        "$pragma  $for $add\n$reduce_sum"
                        "  float scale = rsqrtf(sum / cols + 1e-6f);\n"
                        "$pragma  $for $write\n");
    grammar_code(g, "}\n");
}
