/* Kernels without folds: one thread computes an element or a few, at a flat index. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stages/teacher/template_formula.h"

typedef struct {
    FormulaKernel *k;
    int rows;             /* the result has one element a row */
    int vector;           /* elements of a vector; 1: none */
    const char *elements; /* "n" or "rows * cols": elements */
} Flat;

/* Vectors need one type, in the order of the result. */
static int vector_type(const FormulaKernel *k)
{
    const FormulaValue *y = &k->f->value[k->result];
    int any = 0;
    if (y->domain != PER_ELEMENT || kernel_has(k, PER_TRANSPOSED)) return 0;
    if (kernel_space(k)->n_inner > 1 && (kernel_has(k, PER_ROW) || kernel_has(k, PER_COL)))
        return 0; /* a vector has elements of several rows */
    for (int i = 0; i < k->n_loads; i++) {
        const FormulaValue *v = &k->f->value[k->load[i]];
        if (v->domain == PER_ELEMENT && v->dtype != y->dtype) return 0;
        any |= v->domain == PER_ELEMENT;
    }
    return any && y->dtype <= DTYPE_BF16;
}

static void flat_sizes(Flat *t)
{
    FormulaKernel *k = t->k;
    const FormulaSpace *s = kernel_space(k);
    KernelSize sizes[KERNEL_ROW_SIZES];
    char count[2 * FORMULA_TEXT];
    t->rows = k->f->value[k->result].domain == PER_ROW;
    int whole = k->f->value[k->result].domain == PER_TASK;
    t->elements = "n";
    if (t->rows || whole) {
        sizes[0] = (KernelSize){"n", whole ? "1" : s->rows};
        sizes[1] =
            kernel_has(k, PER_CHANNEL) ? (KernelSize){"channels", s->channels} : (KernelSize){0};
        sizes[2] = (KernelSize){0};
        snprintf(count, sizeof count, "%s", sizes[0].text);
    } else {
        kernel_count(s, count);
        kernel_row_sizes(k, kernel_space(k), sizes);
        if (kernel_has(k, PER_COL) || kernel_has(k, PER_ROW) || kernel_has(k, PER_CHANNEL) ||
            kernel_has(k, PER_TRANSPOSED)) {
            t->elements = "rows * cols";
        } else {
            sizes[0] = (KernelSize){"n", count};
            sizes[1] = (KernelSize){0};
        }
    }
    kernel_signature(k, sizes);
    grammar_set(k->g, "count", count);
    grammar_set(k->g, "most", t->elements);
}

/* The statements for element i. */
static void element(Flat *t, Buffer *b, const char *indent)
{
    FormulaKernel *k = t->k;
    CodeScope s;
    kernel_scope(k, &s, b);
    s.indent = indent;
    if (t->rows) s.row = "i";
    if (!t->rows) s.col = "col";
    const FormulaSpace *space = kernel_space(k);
    int row = kernel_has(k, PER_ROW) || (kernel_has(k, PER_CHANNEL) && !space->n_plane),
        col = kernel_has(k, PER_COL);
    if (kernel_has(k, PER_TRANSPOSED)) row = col = 1;
    if (!t->rows && (row || col))
        buffer_printf(b, "%sint %s%s%s%s%s;\n", indent, row ? "row = " : "",
                      row ? kernel_row_of(space) : "", row && col ? ", " : "", col ? "col = " : "",
                      col ? kernel_col_of(space) : "");
    code_count(&s, k->result);
    const char *value = code_value(&s, k->result);
    buffer_printf(b, "%s%s[i] = %s;\n", indent, k->f->value[k->result].name, value);
    code_close(&s);
}

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

/* Emits `head` and the statements for element i, behind a guard or none. */
static void loop(Flat *t, const char *head, const char *guard)
{
    Buffer b;
    const char *indent = *guard ? "      " : "    ";
    buffer_init(&b, 1 << 15);
    element(t, &b, indent);
    int one = lines_of(b.data) == 1;
    grammar_code(t->k->g, head);
    grammar_code(t->k->g, guard);
    if (one) {
        grammar_code(t->k->g, b.data + strlen(indent));
    } else {
        grammar_code(t->k->g, "{\n");
        grammar_code(t->k->g, b.data);
        grammar_code(t->k->g, *guard ? "    }\n" : "  }\n");
    }
    buffer_release(&b);
}

static void scalar_kernel(Flat *t)
{
    Grammar *g = t->k->g;
    int access = grammar_choose(g, "access", "plain:4 block:2 grid:3");
    grammar_set(g, "size", "");
    if (access == 1) {
        grammar_choose(g, "items", "2 4 8");
        grammar_set(g, "size", "<$items>");
        grammar_code(g, "template <int N>\n");
    }
    if (access == 2) grammar_choose(g, "blocks", "66 132 264 528 1056");
    static const char *const grids[] = {"ceil_div($count, $block)",
                                        "ceil_div($count, $block * $items)",
                                        "min(ceil_div($count, $block), $blocks)"};
    grammar_set(g, "grid", grids[access]);
    grammar_plan(g, "launch $kernel$size<<<$grid, $block>>>($args)");
    grammar_code(g, "__global__ void $kernel($params) {\n");
    if (access == 0) {
        Buffer b;
        buffer_init(&b, 1 << 15);
        element(t, &b, "  ");
        grammar_code(g, "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                        "  if (i >= $most) return;\n");
        grammar_code(g, b.data);
        buffer_release(&b);
        grammar_analysis(g, "One element per thread, coalesced.");
    } else if (access == 1) {
        loop(t,
             "  int i = blockIdx.x * blockDim.x * N + threadIdx.x;\n"
             "  for (int j = 0; j < N; j++, i += blockDim.x)\n    ",
             "if (i < $most) ");
        grammar_analysis(g, "$items elements per thread, a block apart, coalesced.");
    } else {
        loop(t,
             "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < $most; i += gridDim.x * "
             "blockDim.x) ",
             "");
        grammar_analysis(g, "$blocks blocks in a grid-stride loop, coalesced.");
    }
    grammar_code(g, "}\n");
    grammar_design(g, "Scalar loads, $block threads a block.");
}

/* Vectors of 8 or 16 bytes; the loads of rows and columns stay scalars. */
static void vector_kernel(Flat *t)
{
    FormulaKernel *k = t->k;
    Grammar *g = k->g;
    const FormulaValue *y = &k->f->value[k->result];
    CodeScope s = kernel_place(k);
    grammar_set(g, "type", code_type(y));
    grammar_set(g, "wide",
                t->vector == 2          ? "float2"
                : y->dtype == DTYPE_F32 ? "float4"
                : t->vector == 4        ? "uint2"
                                        : "uint4");
    grammar_set(g, "out", y->name);
    int flat = !strcmp(t->elements, "n");
    grammar_set(g, "whole", flat ? "i + $vector <= n" : "cols % $vector == 0");
    grammar_plan(g, "launch $kernel<<<ceil_div($count, $block * $vector), $block>>>($args)");
    grammar_code(g, "__global__ void $kernel($params) {\n"
                    "  int i = (blockIdx.x * blockDim.x + threadIdx.x) * $vector;\n"
                    "  if (i >= $most) return;\n");
    if (!flat) grammar_code(g, "  int row = i / cols, col = i % cols;\n");
    grammar_code(g, "  if ($whole) {\n    __align__(16) $type v[$vector];\n");
    for (int i = 0; i < k->n_loads; i++) {
        const FormulaValue *v = &k->f->value[k->load[i]];
        if (v->domain != PER_ELEMENT) continue;
        grammar_set(g, "in", v->name);
        grammar_code(g, "    __align__(16) $type $(in)4[$vector];\n"
                        "    *($wide *)$(in)4 = *(const $wide *)($in + i);\n");
    }
    s.lane = "j", s.full = "i + j", s.col = "col + j";
    kernel_set(k, "fast", &s, (KernelText){k->result, -1, "", "apply"});
    s.lane = NULL, s.full = "j", s.col = "j % cols", s.row = flat ? "" : "j / cols";
    kernel_set(k, "slow", &s, (KernelText){k->result, -1, "", "apply"});
    grammar_code(g, "    #pragma unroll\n"
                    "    for (int j = 0; j < $vector; j++) v[j] = $fast;\n"
                    "    *($wide *)($out + i) = *($wide *)v;\n"
                    "  } else\n"
                    "    for (int j = i; j < i + $vector && j < $most; j++) $out[j] = $slow;\n"
                    "}\n");
    grammar_analysis(g, "Vectors of $vector elements, coalesced.");
    grammar_design(g, "$wide loads, $block threads a block.");
}

/* A tile of a turned load goes through shared memory. */
static void tile_kernel(Flat *t)
{
    FormulaKernel *k = t->k;
    Grammar *g = k->g;
    int transposed = -1;
    for (int i = 0; i < k->n_loads; i++)
        if (k->f->value[k->load[i]].domain == PER_TRANSPOSED) transposed = k->load[i];
    const FormulaValue *x = &k->f->value[transposed];
    int tile = 16 << grammar_choose(g, "tile", "16 32");
    grammar_choose(g, "pad", "0:2 1");
    grammar_choose(g, "lines", tile == 16 ? "4 8 16" : "4 8 16 32");
    grammar_set(g, "width", grammar_is(g, "pad", "1") ? "T + 1" : "T");
    grammar_set(g, "in", x->name);
    grammar_set(g, "cast", x->dtype == DTYPE_F32 ? "" : "(float)");
    grammar_set(g, "rowsize", kernel_space(k)->rows);
    grammar_set(g, "colsize", kernel_space(k)->cols);
    KernelSize sizes[KERNEL_ROW_SIZES];
    kernel_row_sizes(k, kernel_space(k), sizes);
    kernel_signature(k, sizes);
    grammar_plan(g, "launch $kernel<$tile, $lines><<<dim3(ceil_div($colsize, $tile), "
                    "ceil_div($rowsize, $tile)), dim3($tile, $lines)>>>($args)");
    grammar_code(g, "template <int T, int R>\n__global__ void $kernel($params) {\n"
                    "  __shared__ float tile[T][$width];\n"
                    "  int tx = threadIdx.x, ty = threadIdx.y;\n"
                    "  int row = blockIdx.y * T + tx, col = blockIdx.x * T + ty;\n"
                    "  for (int j = 0; j < T; j += R)\n"
                    "    if (row < rows && col + j < cols) tile[ty + j][tx] = $cast$in[(col + j) * "
                    "rows + row];\n"
                    "  __syncthreads();\n"
                    "  col = blockIdx.x * T + tx;\n"
                    "  for (int j = 0; j < T; j += R) {\n"
                    "    row = blockIdx.y * T + ty + j;\n"
                    "    if (row >= rows || col >= cols) continue;\n");
    Buffer b;
    CodeScope s;
    buffer_init(&b, 1 << 15);
    kernel_scope(k, &s, &b);
    s.indent = "    ", s.full = "row * cols + col", s.col = "col";
    code_set(&s, transposed, 0, "tile[tx][ty + j]");
    code_count(&s, k->result);
    const char *value = code_value(&s, k->result);
    buffer_printf(&b, "    %s[row * cols + col] = %s;\n", k->f->value[k->result].name, value);
    code_close(&s);
    grammar_code(g, b.data);
    grammar_code(g, "  }\n}\n");
    buffer_release(&b);
    grammar_analysis(g, "Reads and writes are both coalesced through shared memory.");
    grammar_design(g, "Shared tile $tile x $tile, $lines lines a step.");
}

void template_flat(FormulaKernel *k)
{
    Flat t = {k, 0, 1, "n"};
    int can = vector_type(k), half = k->f->value[k->result].dtype != DTYPE_F32, transposed = 0;
    for (int i = 0; i < k->n_loads; i++)
        transposed += k->f->value[k->load[i]].domain == PER_TRANSPOSED;
    if (transposed == 1 && k->f->value[k->result].domain == PER_ELEMENT &&
        grammar_choose(k->g, "way", "direct tile") == 1) {
        tile_kernel(&t);
        return;
    }
    flat_sizes(&t);
    grammar_choose(k->g, "vector",
                   !can         ? "1"
                   : k->g->kept ? (half ? "1 4 8:2" : "1 2 4:4")
                   : half       ? "1:3 4 8"
                                : "1:3 2 4");
    t.vector = grammar_int(k->g, "vector");
    grammar_choose(k->g, "block", "64 128 256 512 1024");
    if (t.vector > 1)
        vector_kernel(&t);
    else
        scalar_kernel(&t);
}
