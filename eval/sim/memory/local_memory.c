/* Local memory: indexed arrays and the frames of called functions. As on a device it is
 * interleaved: word i of the 32 lanes is one row, so lanes at the same offset touch 128 consecutive
 * bytes. Each lane has its own memory, so there are no races; four bits per word say which bytes
 * are written. */
#include "eval/sim/memory/local_memory.h"

#include "eval/sim/memory/unwritten.h"

enum { LANE_COST = 6 }; /* in thread-instructions */

static unsigned char *cell(const Warp *w, uint64_t offset, int lane)
{
    return w->local + (offset >> 2) * ROW32 + (uint64_t)lane * 4 + (offset & 3);
}

static int local_bounds(Warp *w, const Access *a, int is_write)
{
    const Frame *f = w->frame;
    uint64_t top = (uint64_t)f->local_base + f->fn->local_bytes;
    if (access_is_within(a, top) && a->p->aligned && !(a->base & (uint64_t)(a->size - 1))) return 0;
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t at = access_address(a, lane);
        if (access_is_beyond(at, a->size, top)) {
            return exec_fail(w, a->in, lane, OUTCOME_OUT_OF_BOUNDS,
                             "%s %d bytes at offset %lld of its local memory, which has %lld bytes",
                             is_write ? "writes" : "reads", a->size, (long long)at, (long long)top);
        }
        if (at & (uint64_t)(a->size - 1)) {
            return exec_fail(w, a->in, lane, OUTCOME_OUT_OF_BOUNDS,
                             "%s %d bytes at offset %lld of its local memory, which is misaligned",
                             is_write ? "writes" : "reads", a->size, (long long)at);
        }
    }
    return 0;
}

/* Counts sectors: a sector holds one word of each of 8 lanes. Adds them to *scattered where lanes do not
 * share them. */
static uint64_t local_sectors(const Access *a, uint64_t *scattered)
{
    uint64_t n = 0, words = (uint64_t)(a->size + 3) / 4;
    for (int group = 0; group < 4; group++) {
        uint32_t m = a->mask >> (group * 8) & 0xff;
        int32_t seen[8];
        int n_seen = 0;
        for (; m; m &= m - 1) {
            int32_t d = a->p->delta[group * 8 + __builtin_ctz(m)] >> 2;
            int k = 0;
            while (k < n_seen && seen[k] != d) k++;
            if (k == n_seen) seen[n_seen++] = d;
        }
        n += (uint64_t)n_seen * words;
    }
    if (2 * n > (uint64_t)__builtin_popcount(a->mask) * words && n > 4 * words) *scattered += n;
    return n;
}

/* A bit for each byte of a lane's access that has no value. */
static uint32_t unwritten_bytes(const Warp *w, const Access *a, int lane)
{
    uint32_t found = 0;
    uint64_t at = access_address(a, lane);
    for (int b = 0; b < a->size && b < 32; b++, at++) {
        unsigned init = w->local_init[(at >> 2) * LANES + (uint64_t)lane];
        found |= (~init >> (at & 3) & 1) << b;
    }
    return found;
}

int local_load(Warp *w, Access *a)
{
    const MemOp *mo = a->mo;
    if (local_bounds(w, a, 0)) return -1;
    exec_charge(w->x, LANE_COST * __builtin_popcount(a->mask));
    w->x->counts.local_load_sectors += local_sectors(a, &w->x->counts.scattered_local_loads);
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t at = access_address(a, lane);
        for (int k = 0; k < mo->count; k++, at += mo->element) {
            uint64_t v = 0;
            for (uint64_t b = 0; b < mo->element; b += b + 4 <= mo->element ? 4 : mo->element) {
                size_t n = mo->element < 4 ? mo->element : 4;
                uint32_t need = (15u >> (4 - n)) << (at & 3);
                if ((w->local_init[((at + b) >> 2) * LANES + (uint64_t)lane] & need) != need) {
                    uint32_t bytes = unwritten_bytes(w, a, lane);
                    if (unwritten_read(w, a, lane, at + b, 0, bytes)) return -1;
                }
                memcpy((unsigned char *)&v + b, cell(w, at + b, lane), n);
            }
            if (mo->data[k] == ROW_NONE) continue;
            int bits = mo->element * 8, width = mo->width[k & 3];
            if (mo->is_signed && bits < 64 && v >> (bits - 1) & 1) v |= ~0ull << bits;
            if (width == 64)
                row64(w, mo->data[k])[lane] = v;
            else
                row32(w, mo->data[k])[lane] = (uint32_t)(v & (~0ull >> (64 - width)));
        }
    }
    return 0;
}

int local_store(Warp *w, Access *a)
{
    const MemOp *mo = a->mo;
    if (local_bounds(w, a, 1)) return -1;
    exec_charge(w->x, LANE_COST * __builtin_popcount(a->mask));
    w->x->counts.local_store_sectors += local_sectors(a, &w->x->counts.scattered_local_stores);
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t at = access_address(a, lane);
        for (int k = 0; k < mo->count; k++, at += mo->element) {
            uint64_t v =
                mo->width[k & 3] == 64 ? row64(w, mo->data[k])[lane] : row32(w, mo->data[k])[lane];
            size_t n = mo->element < 4 ? mo->element : 4;
            for (uint64_t b = 0; b < mo->element; b += n) {
                memcpy(cell(w, at + b, lane), (unsigned char *)&v + b, n);
                w->local_init[((at + b) >> 2) * LANES + (uint64_t)lane] |=
                    (unsigned char)((15u >> (4 - n)) << (at & 3));
            }
        }
    }
    return 0;
}
