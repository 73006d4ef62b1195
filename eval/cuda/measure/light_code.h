/* Device code of quern-light, as text for NVRTC, and its kernels. */
#ifndef EVAL_CUDA_MEASURE_LIGHT_CODE_H
#define EVAL_CUDA_MEASURE_LIGHT_CODE_H

typedef struct {
    const char *source;
    int n;
    const char *const *names; /* n kernels */
} LightCode;

/* The kernels of light_memory. */
enum {
    LIGHT_FILL,
    LIGHT_NOTHING,
    LIGHT_READ4,
    LIGHT_READ8,
    LIGHT_WRITE4,
    LIGHT_WRITE8,
    LIGHT_COPY4,
    LIGHT_COPY8,
    LIGHT_WATCH,
    LIGHT_N_MEMORY
};

/* light_warp, for compute capability 8.0 and later, and light_group, for
 * 9.0 alone: fp16, bf16 and tf32. */
extern const LightCode light_memory, light_arithmetic, light_warp, light_group;

#endif
