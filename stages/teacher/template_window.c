/* Convolutions and pools over the last two dimensions, with what follows them. A thread computes one
 * output, or the same place of several channels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/teacher/template_formula.h"

typedef struct {
    FormulaKernel *k;
    const FormulaWindow *w;
    int window; /* the value */
} Window;

static void set_result(Window *t, const char *sum)
{
    FormulaKernel *k = t->k;
    CodeScope s;
    Buffer unused;
    char name[24];
    snprintf(name, sizeof name, k->number > 1 ? "apply%d" : "apply", k->number);
    buffer_init(&unused, 1 << 12);
    kernel_scope(k, &s, &unused);
    s.col = "col";
    char *result = kernel_expression(k, &s, k->result, t->window, sum, name);
    grammar_set(k->g, "result", result);
    free(result);
    code_release(&s);
    buffer_release(&unused);
}

/* Sets "guard" (inside the input) and the texts of places and constants. */
static void set_places(Window *t)
{
    Grammar *g = t->k->g;
    const FormulaWindow *w = t->w;
    char oy[48], ox[48];
    const char *forms[] = {"oy + dy",           "ox + dx",          "oy * %d + dy",
                           "ox * %d + dx",      "oy + dy - %d",     "ox + dx - %d",
                           "oy * %d + dy - %d", "ox * %d + dx - %d"};
    int form = (w->stride > 1 ? 2 : 0) + (w->padding ? 4 : 0), s = (int)w->stride,
        p = (int)w->padding;
    snprintf(oy, sizeof oy, forms[form], w->stride > 1 ? s : p, p);
    snprintf(ox, sizeof ox, forms[form + 1], w->stride > 1 ? s : p, p);
    grammar_set(g, "iy", oy);
    grammar_set(g, "ix", ox);
    grammar_set_int(g, "side", (int)w->size[0]);
    grammar_set(g, "guard",
                w->padding ? "if (py >= 0 && py < in_high && px >= 0 && px < in_wide) " : "");
    const FormulaValue *in = &t->k->f->value[t->k->f->value[t->window].arg[0]];
    int weight = t->k->f->value[t->window].arg[1];
    grammar_set(g, "in", in->name);
    grammar_set(g, "cast", in->dtype == OP_F32 ? "" : "(float)");
    grammar_set(g, "taps", weight < 0 ? "" : t->k->f->value[weight].name);
    grammar_set(g, "element", "$cast$in[($plane * in_high + py) * in_wide + px]");
    grammar_set(g, "out", t->k->f->value[t->k->result].name);
    grammar_set(g, "loops",
                "$pragma$pad  for (int dy = 0; dy < $side; dy++)\n"
                "$pragma$pad    for (int dx = 0; dx < $side; dx++) {\n"
                "$pad      int py = $iy, px = $ix;\n"
                "$pad      $guard$step\n$pad    }\n");
    grammar_choose(g, "unroll", "0 1");
    grammar_set(g, "pragma", grammar_is(g, "unroll", "1") ? "    #pragma unroll\n" : "");
}

static const char head[] =
    "  int row = i / (high * wide), col = i % (high * wide);\n"
    "  int oy = col / wide, ox = col % wide, b = row / channels, o = row % channels;\n";

/* Pools and depthwise convolutions: one plane of the input. */
static void one_plane(Window *t)
{
    Grammar *g = t->k->g;
    int kind = t->w->kind;
    set_result(t, kind == WINDOW_MEAN ? "(acc / ($side * $side))" : "acc");
    grammar_set(g, "plane", "row");
    grammar_set(g, "pad", "");
    grammar_set(g, "step",
                kind == WINDOW_MAX ? "acc = fmaxf(acc, $element);"
                : kind == WINDOW_MEAN
                    ? "acc += $element;"
                    : "acc += $element * $cast$taps[(o * $side + dy) * $side + dx];");
    grammar_set(g, "start", kind == WINDOW_MAX ? "-1e30f" : "0.0f");
    grammar_plan(g, "launch $kernel<<<ceil_div($count, $block), $block>>>($args)");
    grammar_code(g, "__global__ void $kernel($params) {\n"
                    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (i >= n) return;\n");
    grammar_code(g, "  int row = i / (high * wide), col = i % (high * wide);\n"
                    "  int oy = col / wide, ox = col % wide;\n");
    if (kind == WINDOW_DEPTHWISE) grammar_code(g, "  int o = row % channels;\n");
    grammar_code(g, "  float acc = $start;\n$loops  $out[i] = $result;\n}\n");
    grammar_design(g, "One output per thread, $block threads a block.");
}

static void direct(Window *t)
{
    Grammar *g = t->k->g;
    set_result(t, "acc");
    grammar_set(g, "plane", "(b * in_channels + c)");
    grammar_set(g, "pad", "  ");
    grammar_set(g, "step",
                "acc += $element * $cast$taps[((o * in_channels + c) * $side + dy) * $side + dx];");
    grammar_plan(g, "launch $kernel<<<ceil_div($count, $block), $block>>>($args)");
    grammar_code(g, "__global__ void $kernel($params) {\n"
                    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (i >= n) return;\n");
    grammar_code(g, head);
    grammar_code(g, "  float acc = 0.0f;\n"
                    "  for (int c = 0; c < in_channels; c++)\n"
                    "$loops  $out[i] = $result;\n}\n");
    grammar_design(g, "One output per thread, $block threads a block.");
}

/* The taps of a channel in shared memory: a block has places of one channel of one image. */
static void shared_taps(Window *t)
{
    Grammar *g = t->k->g;
    set_result(t, "acc");
    grammar_set(g, "plane", "(b * in_channels + c)");
    grammar_set(g, "pad", "  ");
    grammar_set(g, "step", "acc += $element * part[(c * $side + dy) * $side + dx];");
    grammar_set(g, "planes", kernel_space(t->k)->rows);
    grammar_set(g, "places", kernel_space(t->k)->cols);
    grammar_set(g, "depth", t->w->in_channels);
    grammar_plan(
        g, "launch $kernel<<<dim3(ceil_div($places, $block), $planes), $block, $depth * $side * "
           "$side * 4>>>($args)");
    grammar_code(g,
                 "__global__ void $kernel($params) {\n"
                 "  extern __shared__ float part[];\n"
                 "  int row = blockIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "  int oy = col / wide, ox = col % wide, b = row / channels, o = row % channels;\n"
                 "  for (int j = threadIdx.x; j < in_channels * $side * $side; j += blockDim.x)\n"
                 "    part[j] = $cast$taps[o * in_channels * $side * $side + j];\n"
                 "  __syncthreads();\n"
                 "  int i = row * high * wide + col;\n"
                 "  if (col >= high * wide) return;\n"
                 "  float acc = 0.0f;\n"
                 "  for (int c = 0; c < in_channels; c++)\n"
                 "$loops  $out[i] = $result;\n}\n");
    grammar_design(g, "The taps of a channel lie in shared memory, $block threads a block.");
}

/* A thread has one place of N channels: each input is read once for all of them. */
static void many_channels(Window *t)
{
    Grammar *g = t->k->g;
    set_result(t, "acc[j]");
    grammar_choose(g, "items", "2 4 8");
    grammar_set(g, "plane", "(b * in_channels + c)");
    grammar_set(g, "pad", "  ");
    grammar_set(g, "images", t->w->batch);
    grammar_set(g, "filters", t->w->channels);
    grammar_set(g, "places", kernel_space(t->k)->cols);
    grammar_set(g, "step",
                "{\n          float v = $element;\n"
                "          for (int j = 0; j < N; j++)\n"
                "            if (first + j < channels) acc[j] += v * $cast$taps[(((first + j) * "
                "in_channels + c) * $side + dy) * $side + dx];\n        }");
    grammar_plan(g, "launch $kernel<$items><<<dim3(ceil_div($places, $block), ceil_div($filters, "
                    "$items), $images), $block>>>($args)");
    grammar_code(g,
                 "template <int N>\n__global__ void $kernel($params) {\n"
                 "  int col = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * N, b = "
                 "blockIdx.z;\n"
                 "  if (col >= high * wide) return;\n"
                 "  int oy = col / wide, ox = col % wide;\n"
                 "  float acc[N] = {};\n"
                 "  for (int c = 0; c < in_channels; c++)\n"
                 "$loops"
                 "  for (int j = 0; j < N && first + j < channels; j++) {\n"
                 "    int row = b * channels + first + j, i = row * high * wide + col;\n"
                 "    $out[i] = $result;\n  }\n}\n");
    grammar_design(g, "$items channels per thread share each input, $block threads a block.");
}

void template_window(FormulaKernel *k)
{
    Window t = {k, &k->f->window, -1};
    Grammar *g = k->g;
    char count[2 * FORMULA_TEXT];
    for (int i = 0; i < k->n; i++)
        if (k->f->value[k->value[i]].kind == VALUE_WINDOW) t.window = k->value[i];
    kernel_count(kernel_space(k), count);
    KernelSize sizes[] = {{"n", count},
                          {"channels", t.w->channels},
                          {"high", t.w->high},
                          {"wide", t.w->wide},
                          {"in_channels", t.w->in_channels},
                          {"in_high", t.w->in_high},
                          {"in_wide", t.w->in_wide},
                          {0}};
    kernel_signature(k, sizes);
    grammar_set(g, "count", count);
    set_places(&t);
    grammar_choose(g, "block", "64 128 256 512");
    if (t.w->kind != WINDOW_CONV) {
        one_plane(&t);
        grammar_analysis(g, "Each input is read by the threads around it, coalesced.");
        return;
    }
    switch (grammar_choose(g, "way", "direct:3 taps:2 registers:2")) {
    case 0: direct(&t); break;
    case 1: shared_taps(&t); break;
    default: many_channels(&t);
    }
    grammar_analysis(g, "Neighbours read neighbouring inputs; taps are the same for all of them.");
}
