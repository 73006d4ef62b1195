/* The sources of quern-light's kernels, and their names. */
#include "eval/cuda/measure/light_code.h"

#include "base/embed.h"

EMBED(light_memory_cu, "eval/cuda/measure/light_memory.cu")
EMBED(light_arithmetic_cu, "eval/cuda/measure/light_arithmetic.cu")
EMBED(light_warp_cu, "eval/cuda/measure/light_warp.cu")
EMBED(light_group_cu, "eval/cuda/measure/light_group.cu")

static const char *const memory_names[LIGHT_N_MEMORY] = {
    "fill",           "nothing",       "read_tiles<4>", "read_tiles<8>", "write_tiles<4>",
    "write_tiles<8>", "copy_tiles<4>", "copy_tiles<8>", "watch"};
static const char *const arithmetic_names[] = {"fma32"};
static const char *const warp_names[] = {"warp_f16", "warp_bf16", "warp_tf32"};
static const char *const group_names[] = {"group_f16", "group_bf16", "group_tf32"};

const LightCode light_memory = {light_memory_cu, LIGHT_N_MEMORY, memory_names},
                light_arithmetic = {light_arithmetic_cu, 1, arithmetic_names},
                light_warp = {light_warp_cu, 3, warp_names},
                light_group = {light_group_cu, 3, group_names};
