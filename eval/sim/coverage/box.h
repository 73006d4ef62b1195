/* Blocks around a block in the grid, in which the same happens, moved. A box begins as the whole grid, and
 * shrinks wherever an operation is not linear: to the blocks in which it is. Kernels take several coordinates
 * from one, by quotients and remainders, so that the grid's first dimension counts as several. */
#ifndef EVAL_SIM_COVERAGE_BOX_H
#define EVAL_SIM_COVERAGE_BOX_H

#include <stdint.h>

enum { X_PARTS = 5, BOX_DIMS = X_PARTS + 2 };
#define BOX_MOST (1ll << 61) /* values beyond this are not followed from block to block */

/* Looks for the largest number of blocks after which a quotient repeats, of those within a dimension. */
typedef struct {
    int64_t size[X_PARTS], stride[X_PARTS]; /* of the dimensions; 0: it is none */
    int64_t largest;                        /* 0: none is found */
} BoxPeriods;

typedef struct {
    int64_t low[BOX_DIMS], high[BOX_DIMS]; /* low <= 0 <= high */
    BoxPeriods *periods;                   /* mostly NULL */
} Box;

/* The first dimension of the grid as several, the nearest blocks first. Blocks of part k are stride[k] apart.
 * A layer of a part that the one above it, or the grid, cuts is apart from the others. */
typedef struct {
    int n;
    int64_t stride[X_PARTS];
} GridParts;

/* All blocks around `block`, as far as the parts of the first dimension have them in whole layers. */
void box_open(Box *b, const GridParts *p, const uint32_t grid[3], const uint32_t block[3]);
/* The steps from block `from` to block `to` in each dimension. Returns 1 where they stay in the box. */
int box_steps(const Box *b, const GridParts *p, const uint32_t from[3], const uint32_t to[3],
              int64_t steps[BOX_DIMS]);
/* Does a value that changes by d change in the box? */
int box_is_moving(const Box *b, const int64_t d[BOX_DIMS]);
/* The box has one place in dimension k. */
void box_pin(Box *b, int k);
/* All values that change by d, from range[0] to range[1] here, stay in [low, high] in every block of the
 * box. */
void box_keep(Box *b, const int64_t d[BOX_DIMS], const int64_t range[2], int64_t low, int64_t high);
/* Notes after how many blocks a quotient by `by` of such a value repeats. */
void box_note_periods(BoxPeriods *p, const int64_t d[BOX_DIMS], int64_t by);

#endif
