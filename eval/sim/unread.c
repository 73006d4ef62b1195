/* What a plan leaves unread: bytes of its inputs, and of what its kernels write to its buffers, that no
 * launch reads, with all blocks (eval/sim/coverage).
 *
 * Left out are tensors that an op line may read, whose contents begin anew between launches, or of which
 * it is not known what a launch reads or writes. What one op line gives is all written. */
#include "eval/sim/sim_launches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Lanes of instructions: about a quarter of a second. */
static const int64_t most_lanes = 100000000;

/* By allocation. */
typedef struct {
    int known, begun; /* begun: how often contents begin */
    int op, own;      /* the op line that gives it; a launch of the plan's own has it */
    Written read, stored;
} Tensor;

typedef struct {
    Device *d;
    const DeviceLaunch *launches;
    int n;
    Tensor *of;
    uint8_t *wanted;
    uint32_t unit;
    int64_t budget;
} Unread;

/* Before any launch is looked at, all of them are in turn: which tensors may be known? */
static void announce(const Unread *u, int i)
{
    DevMem *m = &u->d->mem;
    const DeviceLaunch *l = &u->launches[i];
    for (int k = 0; k < l->n_fresh; k++) {
        int a = devmem_find(m, l->fresh[k].p);
        if (a < 0 || devmem_renew(m, l->fresh[k].p, l->fresh[k].bytes, l->fresh[k].label)) continue;
        u->of[a].known &= !u->of[a].begun++ && !u->of[a].own;
    }
    for (int a = 0; a < m->n_allocs; a++) {
        Tensor *t = &u->of[a];
        if (!sim_has_pointer(m, l, a)) continue;
        if (!l->op_line && !l->library_args) {
            t->own = 1;
            continue;
        }
        if (m->allocs[a].read_only || t->own || (t->op && t->op != l->op_line)) t->known = 0;
        t->op = l->op_line;
    }
}

/* Adds the accesses of the wanted tensors. Returns -1 where they are not known. */
static int add_wanted(Unread *u, const CoverageOf *of)
{
    Coverage found;
    coverage_find(of, &u->budget, &found);
    int rc = found.why[0] ? -1 : 0;
    for (int a = 0; a < u->d->mem.n_allocs && !rc; a++)
        if (u->wanted[a])
            written_add(of->kind == SLICE_LOADS ? &u->of[a].read : &u->of[a].stored, &found.of[a]);
    coverage_release(&found);
    return rc;
}

static uint8_t is_wanted(const Unread *u, const CoverageOf *of, int a)
{
    int may = of->kind == SLICE_LOADS || !u->d->mem.allocs[a].read_only;
    return u->of[a].known && may && coverage_has_pointer(of, a);
}

/* Adds the launch's accesses of a kind to the tensors that are left: of all, or else of each alone. */
static void add_accesses(Unread *u, int i, SliceKind kind)
{
    const DevMem *m = &u->d->mem;
    const CoverageOf of = sim_coverage_of(m, &u->launches[i], u->wanted, kind, u->unit);
    int some = 0;
    for (int a = 0; a < m->n_allocs; a++) some |= u->wanted[a] = is_wanted(u, &of, a);
    if (!some || !add_wanted(u, &of)) return;
    for (int a = 0; a < m->n_allocs; a++) {
        memset(u->wanted, 0, (size_t)m->n_allocs);
        u->wanted[a] = is_wanted(u, &of, a);
        if (u->wanted[a] && add_wanted(u, &of)) u->of[a].known = 0;
    }
}

static void begin(Unread *u, const DeviceUnread *out)
{
    const DevMem *m = &u->d->mem;
    for (int i = 0; i < u->n; i++) {
        const PtxFunction *f = sim_kernel_of(&u->launches[i]);
        uint32_t least = f ? coverage_unit(f) : 16;
        if (least < u->unit) u->unit = least;
    }
    for (int a = 0; a < m->n_allocs; a++) u->of[a] = (Tensor){.known = !m->allocs[a].variable};
    for (int k = 0; k < out->n_outputs; k++) {
        int a = devmem_find(m, out->outputs[k]);
        if (a >= 0) u->of[a].known = 0;
    }
    for (int i = 0; i < u->n; i++) announce(u, i);
    for (int a = 0; a < m->n_allocs; a++) {
        Tensor *t = &u->of[a];
        t->read = (Written){.bytes = m->allocs[a].bytes, .unit = u->unit};
        t->stored = (Written){.bytes = m->allocs[a].bytes, .unit = u->unit, .all = t->op != 0};
    }
}

/* Adds what is known of the tensor, if a launch reads some of it. */
static void finish(const Unread *u, int a, DeviceUnread *out)
{
    const Alloc *m = &u->d->mem.allocs[a];
    Tensor *t = &u->of[a];
    uint64_t first, some = t->known ? written_units(&t->read, &first) : 0;
    if (some && out->n < DEVICE_MAX_UNREAD) {
        uint64_t all = m->read_only ? m->bytes / u->unit : written_units(&t->stored, &first);
        if (!m->read_only) written_remove(&t->stored, &t->read);
        uint64_t left =
            m->read_only ? written_holes(&t->read, &first) : written_units(&t->stored, &first);
        snprintf(out->of[out->n].label, sizeof out->of->label, "%s", m->label);
        out->of[out->n].is_given = m->read_only || t->op;
        out->of[out->n].all = all * u->unit;
        out->of[out->n++].bytes = left * u->unit;
    }
    written_release(&t->read);
    written_release(&t->stored);
}

void sim_unread(Device *d, const DeviceLaunch *launches, int n, DeviceUnread *out)
{
    size_t room = (size_t)d->mem.n_allocs + 1;
    Unread u = {.d = d,
                .launches = launches,
                .n = n,
                .of = memory_array(room, sizeof *u.of),
                .wanted = memory_alloc(room),
                .unit = 16,
                .budget = most_lanes};
    out->n = 0;
    begin(&u, out);
    for (int i = 0; i < n; i++) {
        if (launches[i].op_line || !sim_kernel_of(&launches[i])) continue;
        add_accesses(&u, i, SLICE_LOADS);
        add_accesses(&u, i, SLICE_CHANGES);
    }
    for (int a = 0; a < d->mem.n_allocs; a++) finish(&u, a, out);
    free(u.of);
    free(u.wanted);
}
