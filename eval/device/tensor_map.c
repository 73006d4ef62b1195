/* The limits of cuTensorMapEncodeTiled, in the words of a plan. */
#include "eval/device/tensor_map.h"

enum { UNIT = 16, MOST_BOX = 256 };
static const uint64_t most_stride = 1ull << 40, most_size = UINT32_MAX;

static const struct {
    TensorMapType type;
    uint32_t bytes;
} of_dtype[DTYPES] = {
    [DTYPE_F32] = {TENSOR_MAP_F32, 4},   [DTYPE_F16] = {TENSOR_MAP_F16, 2},
    [DTYPE_BF16] = {TENSOR_MAP_BF16, 2}, [DTYPE_I32] = {TENSOR_MAP_I32, 4},
    [DTYPE_I64] = {TENSOR_MAP_I64, 8},   [DTYPE_B8] = {TENSOR_MAP_U8, 1},
    [DTYPE_I8] = {TENSOR_MAP_U8, 1},     [DTYPE_U8] = {TENSOR_MAP_U8, 1},
    [DTYPE_I16] = {TENSOR_MAP_U16, 2},   [DTYPE_E4M3] = {TENSOR_MAP_U8, 1},
    [DTYPE_E5M2] = {TENSOR_MAP_U8, 1},   [DTYPE_F64] = {TENSOR_MAP_F64, 8},
};

TensorMapType tensor_map_type(Dtype d)
{
    return of_dtype[d].type;
}

uint32_t tensor_map_element(TensorMapType type)
{
    static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
    return type < 0 || type > TENSOR_MAP_BF16 ? 0 : bytes[type];
}

uint32_t tensor_map_box_bytes(const TensorMap *m)
{
    uint32_t n = tensor_map_element((TensorMapType)m->type);
    for (int i = 0; i < m->rank; i++) n *= m->box[i];
    return n;
}

static int check_dimension(const TensorMap *m, int i, Error *err)
{
    int shown = m->rank - i; /* 1 is the outermost */
    if (m->size[i] < 1 || m->size[i] > most_size)
        return error_set(err, ERROR_INVALID,
                         "dimension %d of the tensor has %llu elements; TMA takes 1 to %llu", shown,
                         (unsigned long long)m->size[i], (unsigned long long)most_size);
    if (m->box[i] < 1 || m->box[i] > MOST_BOX)
        return error_set(err, ERROR_INVALID,
                         "the box has %u elements in dimension %d; TMA takes 1 to %d", m->box[i],
                         shown, MOST_BOX);
    if (!i) return 0;
    uint64_t stride = m->stride[i - 1];
    if (stride && stride % UNIT == 0 && stride < most_stride) return 0;
    return error_set(err, ERROR_INVALID,
                     "the stride of dimension %d is %llu bytes; TMA takes multiples of %d below "
                     "2^40 (//@ when can keep other sizes away)",
                     shown, (unsigned long long)stride, UNIT);
}

int tensor_map_check(const TensorMap *m, Error *err)
{
    uint32_t inner = m->box[0] * tensor_map_element((TensorMapType)m->type);
    if (m->rank < 1 || m->rank > TENSOR_MAP_RANK)
        return error_set(err, ERROR_INVALID, "a tensor of %d dimensions; TMA takes 1 to %d",
                         m->rank, TENSOR_MAP_RANK);
    for (int i = m->rank - 1; i >= 0; i--)
        if (check_dimension(m, i, err)) return -1;
    if (inner % UNIT)
        return error_set(err, ERROR_INVALID,
                         "the last dimension of the box has %u bytes; TMA takes multiples of %d",
                         inner, UNIT);
    if (m->swizzle && inner > m->swizzle)
        return error_set(err, ERROR_INVALID,
                         "the last dimension of the box has %u bytes; with swizzle=%d it has at "
                         "most %d",
                         inner, m->swizzle, m->swizzle);
    if (m->base % UNIT)
        return error_set(err, ERROR_INVALID,
                         "the tensor starts at address 0x%llx; TMA takes multiples of %d",
                         (unsigned long long)m->base, UNIT);
    return 0;
}
