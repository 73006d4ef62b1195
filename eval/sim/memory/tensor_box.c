/* The swizzle exchanges chunks of 16 bytes: bits of the address from bit 4 on by those from bit 7 on, as many
 * as its span has chunks. Rows that are shorter than the span lie as far apart (an H200, 2026-11-30); what is
 * between them stays as it is, and an mbarrier counts the rows alone. */
#include "eval/sim/memory/tensor_box.h"

enum { CHUNK = 16 };

/* The launch's map at a generic address or one of the parameters; NULL: there is none. */
static const unsigned char *map_at(const Warp *w, const MemOp *mo, uint64_t address)
{
    const DeviceLaunch *l = w->x->launch;
    int is_parameter = mo->space == SPACE_PARAM ||
                       (mo->space == SPACE_GENERIC && access_space(address) == SPACE_PARAM);
    for (int i = 0; is_parameter && i < l->n_maps; i++)
        if (l->map_at[i] == (uint32_t)address) return l->params + l->map_at[i];
    return NULL;
}

static int refuse_map(Warp *w, const Inst *in, int lane, const MemOp *mo, uint64_t address)
{
    PtxSpace space = mo->space == SPACE_GENERIC ? access_space(address) : (PtxSpace)mo->space;
    if (space == SPACE_LOCAL)
        return exec_fail(w, in, lane, OUTCOME_LAUNCH_ERROR,
                         "takes its tensor map from local memory, where a thread has a copy of it: "
                         "declare the parameter as const __grid_constant__ CUtensorMap");
    if (space == SPACE_PARAM)
        return exec_fail(
            w, in, lane, OUTCOME_LAUNCH_ERROR,
            "takes its tensor map from a parameter where the launch has none: pass the "
            "name of a map of the plan");
    return exec_fail(
        w, in, lane, OUTCOME_UNSUPPORTED,
        "takes its tensor map from memory; only a map of the plan in a parameter, const "
        "__grid_constant__ CUtensorMap, is known here");
}

int tensor_box_of(Warp *w, const Inst *in, int lane, TensorBox *out)
{
    const BulkOp *op = in->bulk;
    const MemOp *side = op->from.space == SPACE_SHARED ? &op->to : &op->from;
    uint64_t address = access_lane_address(w, side, lane);
    const unsigned char *map = map_at(w, side, address);
    if (!map) return refuse_map(w, in, lane, side, address);
    if (address % TENSOR_MAP_ALIGN)
        return exec_fail(
            w, in, lane, OUTCOME_LAUNCH_ERROR,
            "takes its tensor map from a parameter that is not aligned to %d bytes: declare it as "
            "the CUtensorMap of <cuda.h>",
            TENSOR_MAP_ALIGN);
    memcpy(&out->map, map, sizeof out->map);
    const TensorMap *m = &out->map;
    if (m->rank != op->rank)
        return exec_fail(w, in, lane, OUTCOME_LAUNCH_ERROR,
                         "copies a box of %d dimensions, and its tensor map has %d", op->rank,
                         m->rank);
    for (int i = 0; i < m->rank; i++) out->at[i] = (int32_t)row32(w, op->coordinates[i])[lane];
    out->bytes = tensor_map_box_bytes(m);
    out->row_bytes = m->box[0] * tensor_map_element((TensorMapType)m->type);
    out->pitch = m->swizzle ? m->swizzle : out->row_bytes;
    return 0;
}

uint32_t tensor_box_rows(const TensorBox *b)
{
    return b->bytes / b->row_bytes;
}

TensorRow tensor_box_row(const TensorBox *b, uint32_t i)
{
    const TensorMap *m = &b->map;
    TensorRow row = {.global = m->base, .place = i * b->pitch};
    for (int d = 1; d < m->rank; d++) {
        int64_t at = b->at[d] + (int64_t)(i % m->box[d]);
        i /= m->box[d];
        if (at < 0 || (uint64_t)at >= m->size[d]) return row;
        row.global += (uint64_t)at * m->stride[d - 1];
    }
    uint32_t element = b->row_bytes / m->box[0];
    int64_t low = b->at[0] < 0 ? 0 : b->at[0], high = (int64_t)b->at[0] + m->box[0];
    if ((uint64_t)(high < 0 ? 0 : high) > m->size[0]) high = (int64_t)m->size[0];
    if (low >= high) return row;
    row.global += (uint64_t)low * element;
    row.bytes = (uint32_t)(high - low) * element;
    row.place += (uint32_t)(low - b->at[0]) * element;
    return row;
}

uint64_t tensor_box_shared(const TensorBox *b, uint64_t shared, uint32_t place)
{
    uint64_t at = shared + place;
    return b->map.swizzle ? at ^ (at >> 3 & (uint64_t)(b->map.swizzle - CHUNK)) : at;
}
