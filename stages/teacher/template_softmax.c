/* Softmax over rows: in three passes, online, with the row in shared memory or in registers, or in
 * three launches. */
#include "stages/teacher/template_grammar.h"

enum { THREE, STORE, ONLINE, SHARED, REGISTERS, SPLIT };

/* The statements for column i (scalar) or columns i..i+3. */
static void softmax_steps(Grammar *g, int way)
{
    int vector = !grammar_is(g, "vector", "1");
    grammar_set(g, "load", vector ? "load4(x, i, cols, -1e30f)" : "x[i]");
    grammar_set(g, "find", vector ? "top = fmaxf(top, max4($load));" : "top = fmaxf(top, x[i]);");
    grammar_set(g, "add", vector ? "sum += sum4(exp4($load, top));" : "sum += $exp(x[i] - top);");
    grammar_set(g, "write",
                vector ? "store4(y, i, cols, scale4(exp4($load, top), scale));"
                       : "y[i] = $exp(x[i] - top) * scale;");
    if (way == STORE) {
        grammar_set(g, "add",
                    vector
                        ? "{\n    float4 v = exp4($load, top);\n    store4(y, i, cols, v);\n    "
                          "sum += sum4(v);\n  }"
                        : "{\n    float v = $exp(x[i] - top);\n    y[i] = v;\n    sum += v;\n  }");
        grammar_set(g, "write",
                    vector ? "store4(y, i, cols, scale4(load4(y, i, cols, 0.0f), scale));"
                           : "y[i] *= scale;");
    }
    if (way == SHARED) {
        grammar_set(
            g, "find",
            vector
                ? "{\n    float4 v = $load;\n    h[i / 4] = v;\n    top = fmaxf(top, max4(v));\n  }"
                : "{\n    float v = x[i];\n    h[i] = v;\n    top = fmaxf(top, v);\n  }");
        grammar_set(g, "add",
                    vector
                        ? "{\n    float4 v = exp4(h[i / 4], top);\n    h[i / 4] = v;\n    sum += "
                          "sum4(v);\n  }"
                        : "{\n    float v = $exp(h[i] - top);\n    h[i] = v;\n    sum += v;\n  }");
        grammar_set(g, "write",
                    vector ? "store4(y, i, cols, scale4(h[i / 4], scale));"
                           : "y[i] = h[i] * scale;");
    }
    if (way == ONLINE)
        grammar_set(
            g, "add",
            vector ? "{\n    float4 v = $load;\n    float big = fmaxf(top, max4(v));\n"
                     "    sum = sum * $exp(top - big) + sum4(exp4(v, big));\n    top = big;\n  }"
                   : "{\n    float v = x[i], big = fmaxf(top, v);\n"
                     "    sum = sum * $exp(top - big) + $exp(v - big);\n    top = big;\n  }");
}

static void softmax_loops(Grammar *g, int way)
{
    if (way == ONLINE) {
        grammar_set(g, "merge",
                    grammar_is(g, "mapping", "thread")
                        ? ""
                        : "  float own = top;\n$reduce_top  sum *= $exp(own - top);\n");
        grammar_code(g, "  float top = -1e30f, sum = 0.0f;\n"
                        "$pragma  $for $add\n$merge$reduce_sum");
    } else {
        grammar_code(g, "  float top = -1e30f, sum = 0.0f;\n"
                        "$pragma  $for $find\n$reduce_top"
                        "$pragma  $for $add\n$reduce_sum");
    }
    grammar_code(g, "  float scale = 1.0f / sum;\n"
                    "$pragma  $for $write\n");
}

/* Keeps the first columns of a row in registers; the columns past them are read again. */
static void softmax_registers(Grammar *g)
{
    grammar_code(
        g, "  float v[N], top = -1e30f, sum = 0.0f;\n"
           "$each {\n    int i = $first + j * $step;\n    v[j] = i < cols ? x[i] : -1e30f;\n"
           "    top = fmaxf(top, v[j]);\n  }\n"
           "  $rest top = fmaxf(top, x[i]);\n$reduce_top"
           "$each {\n    v[j] = $exp(v[j] - top);\n    sum += v[j];\n  }\n"
           "  $rest sum += $exp(x[i] - top);\n$reduce_sum"
           "  float scale = 1.0f / sum;\n"
           "$each {\n    int i = $first + j * $step;\n    if (i < cols) y[i] = v[j] * scale;\n  }\n"
           "  $rest y[i] = $exp(x[i] - top) * scale;\n");
}

/* One launch per step with buffers between them, as in an eager framework. */
static void softmax_split(Grammar *g)
{
    grammar_plan(g, "buffer float tops[rows]");
    grammar_plan(g, "buffer float sums[rows]");
    grammar_plan(g, "launch row_max<<<$grid, $block>>>(x, tops, rows, cols)");
    grammar_plan(g, "launch row_sum<<<$grid, $block>>>(x, tops, sums, rows, cols)");
    grammar_plan(g, "launch softmax$size<<<ceil_div(rows * cols, $block), $block>>>(x, tops, sums, "
                    "y, rows, cols)");
    grammar_code(g,
                 "__global__ void row_max(const float *x, float *tops, int rows, int cols) {\n$head"
                 "  x += row * cols;\n"
                 "  float top = -1e30f;\n"
                 "$pragma  $for $find\n$reduce_top"
                 "  $(one)tops[row] = top;\n"
                 "}\n"
                 "__global__ void row_sum(const float *x, const float *tops, float *sums, int "
                 "rows, int cols) {\n$head"
                 "  x += row * cols;\n"
                 "  float top = tops[row], sum = 0.0f;\n"
                 "$pragma  $for $add\n$reduce_sum"
                 "  $(one)sums[row] = sum;\n"
                 "}\n"
                 "__global__ void softmax(const float *x, const float *tops, const float *sums, "
                 "float *y, int rows, int cols) {\n"
                 "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "  if (i < rows * cols) y[i] = $exp(x[i] - tops[i / cols]) / sums[i / cols];\n"
                 "}\n");
}

void template_softmax(Grammar *g)
{
    static const char *const designs[] = {
        "Three passes over the row: maximum, sum, write.",
        "Exponentials are stored in y and scaled in place.",
        "Online softmax: maximum and sum in one pass.",
        "The row is kept in shared memory, read once.",
        "The row is kept in registers, read once.",
        "Three launches: row maximum, row sum, write.",
    };
    int way = grammar_choose(g, "way", "three:3 store:3 online:2 shared:1 registers:2 split:4");
    rows_mapping(g, way == SHARED || way == REGISTERS ? "warp block" : "thread:3 warp:1 block:3",
                 way == REGISTERS ? NULL : "1:6 4");
    grammar_set(g, "reduce", "shuffle");
    grammar_choose(g, "exp", "expf:3 __expf");
    if (way == REGISTERS)
        rows_keep_registers(g, "2 4 8 16");
    else
        grammar_choose(g, "unroll", "1:2 4");
    grammar_set(g, "pragma", grammar_is(g, "unroll", "4") ? "  #pragma unroll 4\n" : "");
    rows_vector_helpers(g, way == SPLIT ? "load4 sum4 max4 exp4"
                                        : "load4 store4 sum4 max4 exp4 scale4");
    rows_reduce(g, "top", "max");
    rows_reduce(g, "sum", "sum");
    grammar_analysis(g, "Memory bound: the row should be read once.");
    grammar_analysis(g, "$who");
    grammar_design(g, designs[way]);
    grammar_design(g, grammar_is(g, "vector", "1") ? "Scalar loads, $block threads a block."
                                                   : "float4 loads, $block threads a block.");
    if (way != REGISTERS) softmax_steps(g, way);
    if (way == SPLIT) {
        softmax_split(g);
        return;
    }
    if (way == SHARED) rows_keep_shared(g);
    grammar_plan(g, "launch softmax$size<<<$grid, $block$shared>>>(x, y, rows, cols)");
    grammar_code(g, "$(template)__global__ void softmax(const float *x, float *y, int rows, int "
                    "cols) {\n$keep$head"
                    "  x += row * cols;\n"
                    "  y += row * cols;\n");
    if (way == REGISTERS)
        softmax_registers(g);
    else
        softmax_loops(g, way);
    grammar_code(g, "}\n");
}
