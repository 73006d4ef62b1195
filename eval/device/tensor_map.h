/* A tensor map: how TMA copies boxes of a tensor in global memory to and from shared memory. A plan's
 * `//@ map` line becomes one (eval/candidate), which stands in the parameters of a launch in place of the
 * 128 bytes of a CUtensorMap: a simulator reads it there, a GPU's driver encodes it. Innermost first, as
 * the driver and PTX count dimensions. */
#ifndef EVAL_DEVICE_TENSOR_MAP_H
#define EVAL_DEVICE_TENSOR_MAP_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"

enum { TENSOR_MAP_RANK = 5, TENSOR_MAP_BYTES = 128, TENSOR_MAP_ALIGN = 64 };

/* CUtensorMapDataType */
typedef enum {
    TENSOR_MAP_NONE = -1, /* a type that no map has */
    TENSOR_MAP_U8,
    TENSOR_MAP_U16,
    TENSOR_MAP_U32,
    TENSOR_MAP_I32,
    TENSOR_MAP_U64,
    TENSOR_MAP_I64,
    TENSOR_MAP_F16,
    TENSOR_MAP_F32,
    TENSOR_MAP_F64,
    TENSOR_MAP_BF16
} TensorMapType;

typedef struct {
    uint64_t base;
    uint64_t size[TENSOR_MAP_RANK]; /* elements */
    /* From one element to the next of dimension i + 1, in bytes. */
    uint64_t stride[TENSOR_MAP_RANK - 1];
    uint32_t box[TENSOR_MAP_RANK]; /* elements of one copy */
    int16_t type;                  /* TensorMapType */
    uint8_t rank, swizzle;         /* 1 to 5; 0, 32, 64 or 128 bytes */
} TensorMap;

_Static_assert(sizeof(TensorMap) <= TENSOR_MAP_BYTES, "a map stands where a CUtensorMap does");

TensorMapType tensor_map_type(Dtype d);
uint32_t tensor_map_element(TensorMapType type); /* bytes */
/* Is it what the hardware takes? -1: a sentence that names the dimension, counted as the plan does, from
 * the outermost. The base is not looked at where it is 0. */
int tensor_map_check(const TensorMap *m, Error *err);
/* The bytes of a box in shared memory, as an mbarrier counts them. */
uint32_t tensor_map_box_bytes(const TensorMap *m);

#endif
