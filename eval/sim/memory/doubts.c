/* Events are few: one for each line and outcome. They are kept over the runs of a module,
 * since those that never matter are the verdict's warnings. Tentative values have numbers of their
 * own, which grow; those below Doubts.first are settled. */
#include "eval/sim/memory/doubts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/machine/values.h"
#include "eval/sim/memory/shadow.h"
#include "eval/sim/memory/undefined.h"

enum { SETTLED_MAX = 256, TAKE_COST = 1500 /* in thread-instructions */ };
#define MATTERED 0xffffffffu

/* The last read of a word of shared memory. */
typedef struct {
    uint32_t epoch, value; /* value: a tentative one, or MATTERED */
} Reader;

struct Doubts {
    int n, unwritten; /* unwritten: what unwritten places give is doubtful */
    Fault events[DOUBTS_MAX];
    uint32_t next, first; /* tentative values; those from first on are of this epoch */
    uint32_t epoch;
    unsigned char *mattered; /* by value, from first on */
    size_t cap;
    Reader *readers;
    size_t words;
    int n_settled; /* tentative values of this block that became doubtful */
    struct {
        uint32_t value, event;
    } settled[SETTLED_MAX];
};

Doubts *doubts_new(int doubted)
{
    Doubts *d = memory_alloc(sizeof *d);
    d->unwritten = doubted & (DOUBTED_UNWRITTEN | DOUBTED_USED);
    d->first = d->next = DOUBT_TENTATIVE;
    return d;
}

void doubts_free(Doubts *d)
{
    if (!d) return;
    free(d->mattered);
    free(d->readers);
    free(d);
}

void doubts_start_block(Exec *x)
{
    if (x->doubts) x->doubts->n_settled = 0;
}

const Fault *doubts_event(const Doubts *d, int i)
{
    return i < d->n ? &d->events[i] : NULL;
}

void doubts_change_block(Exec *x)
{
    if (x->doubts) x->doubts->epoch = 0;
}

/* ---- events ---- */

uint32_t doubt_of(Exec *x, const Fault *fault)
{
    Doubts *d = x->doubts;
    int i = 0;
    if (!d) return 0;
    while (i < d->n &&
           (d->events[i].line != fault->line || d->events[i].outcome != fault->outcome ||
            strcmp(d->events[i].kernel, fault->kernel)))
        i++;
    if (i == DOUBTS_MAX) return 0;
    if (i == d->n) d->events[d->n++] = *fault;
    return (uint32_t)i + 1;
}

/* Returns the number of the event of the fault that is in x->fault, which is taken back. 0: there are
 * too many. */
static uint32_t take(Exec *x)
{
    uint32_t event = doubt_of(x, x->fault);
    if (!event) return 0;
    memset(x->fault, 0, sizeof *x->fault);
    x->faulted = 0;
    return event;
}

/* The decoder has placed behind an instruction what follows its value. */
static int is_followed(const Inst *in, int kind)
{
    return in[1].fn == h_track && in[1].source == in->source && in[1].track->kind == kind;
}

/* Returns the event of a value, or 0: the fault stays. */
static uint32_t doubt(Warp *w, const Inst *in, int kind)
{
    Exec *x = w->x;
    const PtxInst *p = exec_source(w, in);
    int can_be = p && (!strcmp(p->op, "ld") || !strcmp(p->op, "ldu") || !strcmp(p->op, "shfl") ||
                       !strcmp(p->op, "wgmma") || !strcmp(p->op, "ldmatrix"));
    if (!x->code->follow || !x->doubts) {
        x->doubted |= can_be;
        return 0;
    }
    exec_charge(x, TAKE_COST);
    return is_followed(in, kind) ? take(x) : 0;
}

/* What follows the value of a load. */
static int kind_of_load(const Warp *w, const Inst *in)
{
    const PtxInst *p = exec_source(w, in);
    return p && !strcmp(p->op, "ldmatrix") ? TRACK_MATRIX : TRACK_LOADED;
}

int doubt_load(Warp *w, const Inst *in, uint32_t lanes)
{
    uint32_t event = doubt(w, in, kind_of_load(w, in));
    if (!event) return -1;
    w->doubtful_load |= lanes;
    w->load_event = event;
    return 0;
}

uint32_t doubt_product(Warp *w, const Inst *in)
{
    return doubt(w, in, TRACK_PRODUCT);
}

int doubt_bytes(Warp *w, const Inst *in, int lane, uint32_t bytes)
{
    uint32_t bit = 1u << lane;
    if (!w->partial_load && !(w->load_event = doubt(w, in, kind_of_load(w, in)))) return -1;
    w->partial_bytes[lane] = bytes | (w->partial_load & bit ? w->partial_bytes[lane] : 0);
    w->partial_load |= bit;
    return 0;
}

int doubt_is_followed(const Warp *w, const Inst *load)
{
    const Doubts *d = w->x->doubts;
    return w->x->code->follow && d && d->unwritten && is_followed(load, kind_of_load(w, load));
}

int doubt_is_race(const Exec *x, uint32_t event)
{
    const Doubts *d = x->doubts;
    return !d || !event || event > (uint32_t)d->n || d->events[event - 1].outcome == OUTCOME_RACE;
}

int doubt_shuffle(Warp *w, const Inst *in, uint32_t lanes)
{
    uint32_t event = doubt(w, in, TRACK_SHUFFLE);
    if (!event) return -1;
    w->doubtful_shuffle |= lanes;
    w->shuffle_event = event;
    return 0;
}

int doubt_report(Warp *w, const Inst *in, uint32_t event, const char *use)
{
    Exec *x = w->x;
    Doubts *d = x->doubts;
    for (int i = 0; i < d->n_settled; i++)
        if (d->settled[i].value == event) event = d->settled[i].event;
    if (x->faulted || !event || event > (uint32_t)d->n) return -1;
    const PtxInst *here = exec_source(w, in);
    *x->fault = d->events[event - 1];
    size_t used = strlen(x->fault->message);
    snprintf(x->fault->message + used, sizeof x->fault->message - used, ", and line %d %s",
             here ? here->line : 0, use);
    x->faulted = 1;
    return -1;
}

/* ---- tentative values ---- */

static void enter_epoch(Exec *x)
{
    Doubts *d = x->doubts;
    if (d->epoch == x->cta.epoch) return;
    d->epoch = x->cta.epoch;
    d->first = d->next;
    if (d->next > 1u << 31) d->first = d->next = DOUBT_TENTATIVE; /* registers of old blocks */
}

static int is_settled(const Doubts *d, uint32_t value)
{
    for (int i = 0; i < d->n_settled; i++)
        if (d->settled[i].value == value) return 1;
    return 0;
}

int doubt_is_tentative(const Exec *x, uint32_t event)
{
    const Doubts *d = x->doubts;
    return d && event >= d->first && event < d->next && d->epoch == x->cta.epoch &&
           !is_settled(d, event);
}

int doubt_is_settled(const Exec *x, uint32_t event)
{
    return event >= DOUBT_TENTATIVE && !doubt_is_tentative(x, event) &&
           !(x->doubts && is_settled(x->doubts, event));
}

void doubt_matters(Exec *x, uint32_t event)
{
    Doubts *d = x->doubts;
    if (event >= d->first && event < d->next) d->mattered[event - d->first] = 1;
}

/* The value of the load that runs now; MATTERED: it is not followed. */
static uint32_t new_value(Warp *w, const Inst *in)
{
    Doubts *d = w->x->doubts;
    if (!is_followed(in, TRACK_LOADED)) return MATTERED;
    if (w->load_value) return w->load_value;
    size_t n = d->next - d->first;
    if (n >= DOUBT_LOADS_MAX) return MATTERED;
    if (n >= d->cap) {
        d->cap = d->cap ? d->cap * 2 : 1024;
        d->mattered = memory_grow(d->mattered, d->cap, 1);
    }
    d->mattered[n] = 0;
    return w->load_value = d->next++;
}

static void fit_readers(Exec *x)
{
    Doubts *d = x->doubts;
    size_t words = (size_t)x->shared_cap / 4 + 2;
    if (words <= d->words) return;
    d->readers = memory_grow(d->readers, words, sizeof *d->readers);
    memset(d->readers + d->words, 0, (words - d->words) * sizeof *d->readers);
    d->words = words;
}

void doubt_note_read(Warp *w, const Access *a)
{
    Doubts *d = w->x->doubts;
    if (!d || !w->x->code->follow) return;
    enter_epoch(w->x);
    fit_readers(w->x);
    uint32_t value = new_value(w, a->in), epoch = w->x->cta.epoch;
    for (int i = 0; i < a->p->n_ranges; i++) {
        ShadowRange r = shadow_range(a, i, 0);
        for (uint64_t word = r.lo >> 2; word <= (r.hi - 1) >> 2; word++) {
            Reader *old = &d->readers[word];
            if (old->epoch == epoch && old->value != value) {
                /* One of several reads is kept: the others count as those that matter. */
                if (value != MATTERED) doubt_matters(w->x, value);
                old->value = MATTERED;
            } else {
                *old = (Reader){epoch, value};
            }
        }
    }
}

/* The value counts as one that matters: an accumulator depends on many. */
void doubt_note_product(Warp *w, uint64_t at, uint32_t bytes)
{
    Doubts *d = w->x->doubts;
    if (!d || !w->x->code->follow) return;
    enter_epoch(w->x);
    fit_readers(w->x);
    for (uint64_t word = at / 4; word < (at + bytes) / 4; word++)
        d->readers[word] = (Reader){w->x->cta.epoch, MATTERED};
}

int doubt_read_before(Warp *w, uint64_t word)
{
    Exec *x = w->x;
    Doubts *d = x->doubts;
    if (!x->code->follow || !d) {
        x->doubted = 1;
        return -1;
    }
    enter_epoch(x);
    const Reader *r = word < d->words ? &d->readers[word] : NULL;
    if (!r || r->epoch != x->cta.epoch || r->value < d->first || r->value >= d->next) return -1;
    if (d->mattered[r->value - d->first]) return -1;
    if (is_settled(d, r->value)) {
        x->faulted = 0;
        memset(x->fault, 0, sizeof *x->fault);
        return 0;
    }
    if (d->n_settled == SETTLED_MAX) return -1;
    exec_charge(x, TAKE_COST);
    uint32_t event = take(x);
    if (!event) return -1;
    d->settled[d->n_settled].value = r->value;
    d->settled[d->n_settled++].event = event;
    return 0;
}
