/* Inside model/cuda: who has a vector for its norm. The order of the sum of its squares follows
 * from that, so whoever norms a row asks here: the same rows then have the same bits wherever they
 * are normed. */
#ifndef MODEL_CUDA_NORM_H
#define MODEL_CUDA_NORM_H

/* Of a vector of n numbers a team of lanes of one warp when it has 1024 or fewer, else a block. */
typedef struct {
    int lanes;        /* of a team, a power of two; 0: a block has a vector */
    unsigned vectors; /* of 8 numbers, of a lane */
    unsigned threads; /* of a block */
} NormShare;

/* aligned: vectors begin at 16 bytes and have a multiple of 8 numbers. */
NormShare cuda_norm_share(int n, int aligned);
/* Whether no block takes so long a vector: the engine has then failed. */
int cuda_norm_too_long(int n, int aligned);

#endif
