/* Fixed: element strides of 1, no interleave, zeros outside of the tensor, lines of 128 bytes to L2, as
 * CUTLASS has it. */
#include "eval/cuda/maps.h"

#include <stdalign.h>
#include <string.h>

#include "eval/device/tensor_map.h"

static int encode_one(const CudaDriver *cu, const TensorMap *m, unsigned char *out, Error *err)
{
    static const unsigned steps[TENSOR_MAP_RANK] = {1, 1, 1, 1, 1};
    alignas(TENSOR_MAP_ALIGN) unsigned char encoded[TENSOR_MAP_BYTES];
    int swizzle = m->swizzle == 128  ? CU_SWIZZLE_128
                  : m->swizzle == 64 ? CU_SWIZZLE_64
                  : m->swizzle == 32 ? CU_SWIZZLE_32
                                     : CU_SWIZZLE_NONE;
    CuResult r =
        cu->tensor_map(encoded, m->type, m->rank, (void *)(uintptr_t)m->base, m->size, m->stride,
                       m->box, steps, CU_INTERLEAVE_NONE, swizzle, CU_PROMOTION_128, CU_FILL_ZEROS);
    if (!cuda_check(r, "the driver refuses a tensor map", err)) {
        memcpy(out, encoded, sizeof encoded);
        return 0;
    }
    if (r == CU_INVALID_VALUE || r == CU_NOT_SUPPORTED) err->code = ERROR_UNSUPPORTED;
    return -1;
}

int maps_encode(const CudaDriver *cu, DeviceLaunch *l, Error *err)
{
    for (int i = 0; i < l->n_maps; i++) {
        TensorMap m;
        memcpy(&m, l->params + l->map_at[i], sizeof m);
        if (encode_one(cu, &m, l->params + l->map_at[i], err)) return -1;
    }
    l->n_maps = 0;
    return 0;
}
