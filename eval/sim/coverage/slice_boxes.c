/* A box that lies in the tensor moves with the block as long as it does; where a side cuts it, its coordinate
 * is that of the block alone. */
#include "eval/sim/coverage/slice_boxes.h"

#include <string.h>

#include "eval/device/tensor_map.h"
#include "eval/sim/ptx/ptx.h"

static int map_at(const SliceRun *r, const Lanes *address, int lane, TensorMap *out)
{
    uint64_t at = address->v[address->uniform ? 0 : lane];
    if ((at & WINDOW_MASK) == PARAM_WINDOW) at &= UINT32_MAX;
    for (int i = 0; i < r->launch->n_maps; i++) {
        if (r->launch->map_at[i] != at) continue;
        memcpy(out, r->launch->params + at, sizeof *out);
        return 0;
    }
    return -1;
}

static int32_t value(const Lanes *v, int lane)
{
    return (int32_t)(uint32_t)v->v[v->uniform ? 0 : lane];
}

/* Is the coordinate of each lane that takes part in [0, most]? In all blocks of the box that is left it is
 * as here. */
static int is_within(SliceRun *r, Lanes *c, int64_t most, const LaneMask *m)
{
    SliceInst compare = {.op = OP_COMPARE, .bits = 32, .is_signed = 1, .n_sources = 2, .k = IS_GE};
    for (int i = 0; i < m->n; i++)
        if (m->on[i] && (value(c, i) < 0 || value(c, i) > most)) return 0;
    for (int k = 0; k < 2; k++) {
        uint64_t limit = k ? (uint64_t)most : 0;
        Lanes both[2] = {*c, {.known = 1, .set = 1, .uniform = 1, .v = &limit}};
        if (k) compare.k = IS_LE;
        if (lanes_compute(&compare, both, m, &r->box, &r->result)) return 0;
    }
    return 1;
}

/* The rows of a lane's box, each cut at the sides of the tensor. */
static void add_rows(SliceRun *r, const TensorMap *map, const Lanes *c, int lane)
{
    uint32_t rows = 1, element = tensor_map_element((TensorMapType)map->type);
    int64_t first = value(&c[0], lane), low = first < 0 ? 0 : first, high = first + map->box[0],
            d[3] = {0};
    if (high > (int64_t)map->size[0]) high = (int64_t)map->size[0];
    for (int i = 1; i < map->rank; i++) rows *= map->box[i];
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < map->rank; i++)
            d[k] += (int32_t)c[i].d[k] * (int64_t)(i ? map->stride[i - 1] : element);
    r->budget -= rows;
    for (uint32_t row = 0; row < rows && low < high; row++) {
        int64_t at = (int64_t)map->base + low * element;
        uint32_t rest = row;
        int inside = 1;
        for (int i = 1; i < map->rank; i++) {
            int64_t y = value(&c[i], lane) + (int64_t)(rest % map->box[i]);
            rest /= map->box[i];
            inside &= y >= 0 && y < (int64_t)map->size[i];
            at += y * (int64_t)map->stride[i - 1];
        }
        if (inside) slice_run_add(r, at, (high - low) * element, d);
    }
}

int slice_boxes_add(SliceRun *r, int rank, const Lanes *from, const LaneMask *m)
{
    TensorMap map = {0};
    Lanes address = from[0], c[TENSOR_MAP_RANK];
    int uniform = address.uniform, first = 0;
    while (first < m->n && !m->on[first]) first++;
    if (first == m->n) return 0;
    if (!uniform || map_at(r, &address, first, &map) || map.rank != rank) return -1;
    memcpy(c, from + 1, sizeof *c * (size_t)rank);
    lanes_pin(&address, &r->box);
    for (int i = 0; i < rank; i++) {
        if (!is_within(r, &c[i], (int64_t)map.size[i] - map.box[i], m)) lanes_pin(&c[i], &r->box);
        uniform &= c[i].uniform;
    }
    for (int i = first; i < m->n; i++) {
        if (m->on[i]) add_rows(r, &map, c, i);
        if (m->on[i] && uniform) break;
    }
    return 0;
}
