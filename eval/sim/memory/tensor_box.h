/* A box of a tensor, as cp.async.bulk.tensor copies it: which rows of it lie in the tensor, and where each
 * 16 bytes are in shared memory. */
#ifndef EVAL_SIM_MEMORY_TENSOR_BOX_H
#define EVAL_SIM_MEMORY_TENSOR_BOX_H

#include "eval/device/tensor_map.h"
#include "eval/sim/memory/access.h"

typedef struct {
    TensorMap map;
    int32_t at[TENSOR_MAP_RANK]; /* of the box's first element; innermost first */
    uint32_t bytes, row_bytes;   /* of the box, of a row of it */
    uint32_t pitch;              /* from row to row in shared memory: with a swizzle its span */
} TensorBox;

/* What of a row lies in the tensor. */
typedef struct {
    uint64_t global; /* its address */
    uint32_t bytes;  /* 0: nothing */
    uint32_t place;  /* bytes from the start of the box, without a swizzle */
} TensorRow;

/* The map and the coordinates of a lane's copy. Returns 0, or -1 with a fault: there is no map at the
 * address, or the box is of another rank. */
int tensor_box_of(Warp *w, const Inst *in, int lane, TensorBox *out);
/* The number of rows, and row i of them. */
uint32_t tensor_box_rows(const TensorBox *b);
TensorRow tensor_box_row(const TensorBox *b, uint32_t i);
/* Where a byte of the box is in shared memory: `place` bytes behind its start at `shared`. */
uint64_t tensor_box_shared(const TensorBox *b, uint64_t shared, uint32_t place);

#endif
