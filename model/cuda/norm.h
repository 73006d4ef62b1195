/* Inside model/cuda: which threads compute the norm of a vector. This determines the order of the
 * sum of its squares. Every launcher of a norm uses these functions, so that equal rows get equal
 * bits in all kernels. */
#ifndef MODEL_CUDA_NORM_H
#define MODEL_CUDA_NORM_H

/* A vector of at most 1024 numbers has a team of lanes of one warp, a longer one has a block. */
typedef struct {
    int lanes;        /* of a team, a power of two; 0: one block per vector */
    unsigned vectors; /* of 8 numbers, per lane */
    unsigned threads; /* of a block */
} NormShare;

/* aligned: vectors begin at multiples of 16 bytes and have a multiple of 8 numbers. */
NormShare cuda_norm_share(int n, int aligned);
/* Returns whether n is too long for a block; then the failure is kept. */
int cuda_norm_too_long(int n, int aligned);

#endif
