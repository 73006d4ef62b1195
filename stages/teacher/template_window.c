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
    CodeScope s = kernel_place(t->k);
    s.col = "col";
    kernel_set(t->k, "result", &s, (KernelText){t->k->result, t->window, sum, "apply"});
}

/* Sets the text of an element of the argument, for which statements may be needed in a function. */
static void set_element(Window *t, const FormulaValue *window)
{
    CodeScope s = kernel_place(t->k);
    s.full = "at";
    s.col = t->w->dims == 3 ? "((pz * in_high + py) * in_wide + px)" : "(py * in_wide + px)";
    kernel_set(t->k, "element", &s, (KernelText){window->arg[0], -1, "", "before"});
}

/* The place along one dimension: "oy * 2 + dy - 1". */
static void set_place(Window *t, const char *name, char axis)
{
    char text[64], scale[24] = "", less[24] = "";
    if (t->w->stride > 1) snprintf(scale, sizeof scale, " * %d", (int)t->w->stride);
    if (t->w->padding) snprintf(less, sizeof less, " - %d", (int)t->w->padding);
    snprintf(text, sizeof text, "o%c%s + d%c%s", axis, scale, axis, less);
    grammar_set(t->k->g, name, text);
}

/* Sets the loops over the window around "$step", and the texts of places and constants. */
static void set_places(Window *t)
{
    Grammar *g = t->k->g;
    const FormulaValue *window = &t->k->f->value[t->window];
    int deep = t->w->dims == 3, weight = window->arg[1];
    set_place(t, "iz", 'z');
    set_place(t, "iy", 'y');
    set_place(t, "ix", 'x');
    grammar_set_int(g, "side", (int)t->w->size);
    grammar_set(g, "guard",
                !t->w->padding ? ""
                : deep ? "if (pz >= 0 && pz < in_deep && py >= 0 && py < in_high && px >= 0 && "
                         "px < in_wide) "
                       : "if (py >= 0 && py < in_high && px >= 0 && px < in_wide) ");
    if (weight >= 0) {
        const FormulaValue *in = &t->k->f->value[window->arg[0]];
        grammar_set(g, "in", in->name);
        grammar_set(g, "cast", in->dtype == DTYPE_F32 ? "" : "(float)");
        grammar_set(g, "taps", t->k->f->value[weight].name);
        grammar_set(g, "element", "$cast$in[($plane * in_high + py) * in_wide + px]");
    } else {
        set_element(t, window);
    }
    grammar_set(g, "out", t->k->f->value[t->k->result].name);
    grammar_set(g, "loops",
                deep ? "$pragma  for (int dz = 0; dz < $side; dz++)\n"
                       "$pragma  for (int dy = 0; dy < $side; dy++)\n"
                       "$pragma    for (int dx = 0; dx < $side; dx++) {\n"
                       "      int pz = $iz, py = $iy, px = $ix;\n"
                       "      $guard$step\n    }\n"
                     : "$pragma$pad  for (int dy = 0; dy < $side; dy++)\n"
                       "$pragma$pad    for (int dx = 0; dx < $side; dx++) {\n"
                       "$pad      int py = $iy, px = $ix;\n"
                       "$pad      $guard$step\n$pad    }\n");
    grammar_choose(g, "unroll", "0 1");
    grammar_set(g, "pragma", grammar_is(g, "unroll", "1") ? "    #pragma unroll\n" : "");
}

static const char head[] =
    "  int row = i / (high * wide), col = i % (high * wide);\n"
    "  int oy = col / wide, ox = col % wide, b = row / channels, o = row % channels;\n";

/* Depthwise convolutions: one plane of the input. */
static void one_plane(Window *t)
{
    Grammar *g = t->k->g;
    set_result(t, "acc");
    grammar_set(g, "plane", "row");
    grammar_set(g, "pad", "");
    grammar_set(g, "step", "acc += $element * $cast$taps[(o * $side + dy) * $side + dx];");
    grammar_plan(g, "launch $kernel<<<ceil_div($count, $block), $block>>>($args)");
    grammar_code(g, "__global__ void $kernel($params) {\n"
                    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (i >= n) return;\n"
                    "  int row = i / (high * wide), col = i % (high * wide);\n"
                    "  int oy = col / wide, ox = col % wide;\n"
                    "  int o = row % channels;\n"
                    "  float acc = 0.0f;\n$loops  $out[i] = $result;\n}\n");
    grammar_design(g, "One output per thread, $block threads a block.");
}

/* Pools: one plane, or one volume of three dimensions. */
static void pool(Window *t)
{
    Grammar *g = t->k->g;
    int is_max = t->w->kind == WINDOW_MAX, deep = t->w->dims == 3;
    set_result(t, is_max ? "acc"
                  : deep ? "(acc / ($side * $side * $side))"
                         : "(acc / ($side * $side))");
    grammar_set(g, "pad", "");
    grammar_set(g, "place",
                deep ? "((row * in_deep + pz) * in_high + py) * in_wide + px"
                     : "(row * in_high + py) * in_wide + px");
    grammar_set(g, "step",
                is_max ? "{ int at = $place; acc = fmaxf(acc, $element); }"
                       : "{ int at = $place; acc += $element; }");
    grammar_set(g, "start", is_max ? "-1e30f" : "0.0f");
    grammar_plan(g, "launch $kernel<<<ceil_div($count, $block), $block>>>($args)");
    grammar_code(g, "__global__ void $kernel($params) {\n"
                    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (i >= n) return;\n");
    grammar_code(g,
                 deep ? "  int row = i / (deep * high * wide), col = i % (deep * high * wide);\n"
                        "  int oz = col / (high * wide), oy = col / wide % high, ox = col % wide;\n"
                      : "  int row = i / (high * wide), col = i % (high * wide);\n"
                        "  int oy = col / wide, ox = col % wide;\n");
    grammar_code(g, "  float acc = $start;\n$loops  $out[i] = $result;\n}\n");
    grammar_analysis(g, "Each input is read by the threads around it, coalesced.");
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

static void set_signature(Window *t)
{
    const FormulaWindow *w = t->w;
    char count[2 * FORMULA_TEXT];
    kernel_count(kernel_space(t->k), count);
    KernelSize sizes[10] = {{"n", count}, {"channels", w->channels}};
    int n = 2;
    if (w->dims == 3) sizes[n++] = (KernelSize){"deep", w->out[0]};
    sizes[n++] = (KernelSize){"high", w->out[1]};
    sizes[n++] = (KernelSize){"wide", w->out[2]};
    sizes[n++] = (KernelSize){"in_channels", w->in_channels};
    if (w->dims == 3) sizes[n++] = (KernelSize){"in_deep", w->in[0]};
    sizes[n++] = (KernelSize){"in_high", w->in[1]};
    sizes[n++] = (KernelSize){"in_wide", w->in[2]};
    sizes[n] = (KernelSize){0};
    kernel_signature(t->k, sizes);
    grammar_set(t->k->g, "count", count);
}

void template_window(FormulaKernel *k)
{
    Window t = {k, NULL, -1};
    Grammar *g = k->g;
    for (int i = 0; i < k->n; i++)
        if (k->f->value[k->value[i]].kind == VALUE_WINDOW) t.window = k->value[i];
    t.w = &k->f->window[k->f->value[t.window].window];
    set_signature(&t);
    set_places(&t);
    grammar_choose(g, "block", "64 128 256 512");
    if (t.w->kind >= WINDOW_MAX) {
        pool(&t);
        return;
    }
    if (t.w->kind == WINDOW_DEPTHWISE) {
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
