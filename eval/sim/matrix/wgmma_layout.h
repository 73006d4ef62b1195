/* The layout of a factor of wgmma in shared memory, as its descriptor says. */
#ifndef EVAL_SIM_MATRIX_WGMMA_LAYOUT_H
#define EVAL_SIM_MATRIX_WGMMA_LAYOUT_H

#include <stdint.h>

typedef struct {
    uint32_t start, leading, stride; /* bytes */
    uint32_t wide;                   /* bytes of a row of a swizzled tile; 16: it is not swizzled */
    int base;                        /* base offset: 0, or the tile is not aligned */
} WgmmaLayout;

WgmmaLayout wgmma_layout(uint64_t descriptor);
/* The offset of a chunk of 16 bytes. Not transposed, that is elements along K: a is the row of A or the
 * column of B, and b 0 or 1. Transposed: a counts groups of 8 rows or columns, and b is the place along K. */
uint32_t wgmma_place(const WgmmaLayout *l, int transposed, uint32_t a, uint32_t b);

#endif
