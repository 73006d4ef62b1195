/* The kernels of the engine, and the .cu file of this folder or of decode/ that has each. NVRTC
 * compiles each source for the GPU when the engine is opened, and the cache keeps the binaries. A
 * new kernel or source is one more line below. */
#ifndef MODEL_CUDA_KERNELS_H
#define MODEL_CUDA_KERNELS_H

/* X(folder, file): device code that sources include as "file.cuh" */
#define CUDA_HEADERS(X) \
    X(., attention)     \
    X(., engine)        \
    X(., overlap)       \
    X(., row)           \
    X(., softmax)       \
    X(decode, decode)

/* clang-format off */

/* X(folder, source): source.cu */
#define CUDA_SOURCES(X)  \
    X(., attention)      \
    X(., attention_grad) \
    X(., gemm)           \
    X(., pointwise)      \
    X(., norm)           \
    X(., sums)           \
    X(., logprob)        \
    X(., optim)          \
    X(decode, gemv)      \
    X(decode, residual)  \
    X(decode, fresh)     \
    X(decode, paged)     \
    X(decode, draw)

/* X(source, kernel), grouped by source; names of kernels are unique */
#define CUDA_KERNELS(X)                                                                    \
    X(attention, attention_32) X(attention, attention_64) X(attention, attention_128)      \
    X(attention, attention_256)                                                            \
    X(attention_grad, attention_grad_rows) X(attention_grad, attention_grad_sum)           \
    X(attention_grad, attention_grad_q_32) X(attention_grad, attention_grad_q_64)          \
    X(attention_grad, attention_grad_q_128) X(attention_grad, attention_grad_q_256)        \
    X(attention_grad, attention_grad_kv_32) X(attention_grad, attention_grad_kv_64)        \
    X(attention_grad, attention_grad_kv_128) X(attention_grad, attention_grad_v_256)       \
    X(attention_grad, attention_grad_k_256)                                                \
    X(gemm, spread_bias) X(gemm, spread_bias_wide)                                         \
    X(pointwise, add) X(pointwise, swiglu) X(pointwise, swiglu_grad) X(pointwise, rope8)   \
    X(pointwise, rope4) X(pointwise, rope2) X(pointwise, embed)                            \
    X(norm, rmsnorm_team1) X(norm, rmsnorm_team4) X(norm, rmsnorm_block)                   \
    X(norm, rmsnorm_any) X(norm, rmsnorm_grad_team1) X(norm, rmsnorm_grad_team4)           \
    X(norm, rmsnorm_grad_block) X(norm, rmsnorm_grad_any) X(norm, head_norm_team)          \
    X(norm, head_norm_any) X(norm, head_norm_grad_team) X(norm, head_norm_grad_any)        \
    X(sums, sum_parts) X(sums, bias_columns) X(sums, embed_runs) X(sums, squares)          \
    X(sums, sum_doubles)                                                                   \
    X(logprob, cross_entropy) X(logprob, cross_entropy_grad)                               \
    X(optim, adamw_master) X(optim, adamw_lean)                                            \
    X(gemv, product8) X(gemv, product16) X(gemv, product32) X(gemv, product64)             \
    X(gemv, chain8) X(gemv, chain16) X(gemv, chain32) X(gemv, chain64) X(gemv, adapter_up) \
    X(residual, residual_norm_team) X(residual, residual_norm_block)                       \
    X(fresh, fresh_heads)                                                                  \
    X(paged, store_prompt) X(paged, paged_weights) X(paged, paged_values16)                \
    X(paged, paged_values64) X(paged, paged_values128)                                     \
    X(draw, draw_chunks) X(draw, draw_cut) X(draw, draw_token)

/* clang-format on */

typedef enum {
#define X(source, kernel) KERNEL_##kernel,
    CUDA_KERNELS(X)
#undef X
        KERNEL_COUNT
} CudaKernel;

typedef enum {
#define X(folder, source) SOURCE_##source,
    CUDA_SOURCES(X)
#undef X
        SOURCE_COUNT
} CudaSource;

#endif
