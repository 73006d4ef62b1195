/* A hop, from the store of a block to what the other block does next, takes 1,030 cycles on an H200 with a
 * fence (2026-11-29). */
#include "eval/sim/memory/block_waits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/machine/values.h"
#include "eval/sim/memory/busy.h"

enum {
    DRAM_WAIT = 670, /* cycles of a wait, as WAITS_LOOK, for other places */
    L1_WAIT = 40,
    PLACES = 1 << 12,
    MOST = 1 << 20,
    MOST_TOLD = 16,
    MOST_DRAWN = 16,
    MOST_COUNTERS = 256
};

/* By what a word was written: the instruction, and the amount of an atomic. */
typedef struct {
    const MemOp *mo; /* NULL: it is not known */
    uint64_t by;
} Writing;

/* A word that blocks have told each other something by. */
typedef struct {
    uint64_t word;     /* 1 + its index; 0: free */
    uint32_t tag;      /* the first tag of the block that wrote it last */
    int64_t time;      /* when that block first did, */
    int64_t again;     /* and when it last did */
    int64_t before;    /* when other blocks had added to it; -1: none has */
    uint64_t compared; /* 1 + what a compare and swap found last */
    uint64_t writers;  /* blocks */
    Writing last,      /* of that block, */
        earlier;       /* and of the one before it */
} Place;

/* A counter of a sample. */
typedef struct {
    uint64_t word, begin, blocks, thread, takes; /* begin: its value when the launch began */
    const MemOp *mo;                             /* of the first draw */
    uint32_t tag;
    size_t bytes;
    int is_shared; /* several threads of a block add to it */
} Counter;

/* An atomic by which loops end, and the blocks that have executed it. */
typedef struct {
    const MemOp *mo;
    uint32_t tag; /* of the last one */
    uint64_t blocks;
} Drawn;

/* A block that has ended with a delay. */
typedef struct {
    uint32_t first, last; /* its tags */
    int64_t delay;
} Ended;

struct BlockWaits {
    uint32_t block_tag; /* the first tag of the running block */
    int64_t now;        /* time_of at the access under way; -1: nobody has asked */
    int64_t delay[MAX_WARPS];
    Place *places;
    size_t n, cap;
    Ended *ended; /* in order */
    int n_ended, cap_ended;
    uint64_t told[MOST_TOLD]; /* addresses, as operands, of what blocks have waited by */
    int n_told;
    Counter counters[MOST_COUNTERS];
    int n_counters;
    Drawn drawn[MOST_DRAWN];
    int n_drawn;
};

static struct BlockWaits *waits_of(Exec *x)
{
    if (x->waits) return x->waits;
    struct BlockWaits *t = x->waits = memory_alloc(sizeof *t);
    t->cap = PLACES;
    t->places = memory_array(t->cap, sizeof *t->places);
    t->block_tag = x->cta.tag;
    return t;
}

void waits_start_launch(Exec *x)
{
    struct BlockWaits *t = x->waits;
    if (!t) return;
    if (t->n) memset(t->places, 0, t->cap * sizeof *t->places);
    t->n = 0;
    t->n_counters = t->n_ended = t->n_told = t->n_drawn = 0;
}

void waits_start_block(Exec *x)
{
    struct BlockWaits *t = x->waits;
    if (!t) return;
    t->block_tag = x->cta.tag;
    memset(t->delay, 0, sizeof t->delay);
}

void waits_release(Exec *x)
{
    if (x->waits) {
        free(x->waits->places);
        free(x->waits->ended);
    }
    free(x->waits);
    x->waits = NULL;
}

static Place *slot_of(const struct BlockWaits *t, uint64_t word)
{
    size_t i = (size_t)((word + 1) * 0x9e3779b97f4a7c15u >> 20) & (t->cap - 1);
    while (t->places[i].word && t->places[i].word != word + 1) i = (i + 1) & (t->cap - 1);
    return &t->places[i];
}

static void grow(struct BlockWaits *t)
{
    struct BlockWaits old = *t;
    t->cap *= 2;
    t->places = memory_array(t->cap, sizeof *t->places);
    for (size_t i = 0; i < old.cap; i++)
        if (old.places[i].word) *slot_of(t, old.places[i].word - 1) = old.places[i];
    free(old.places);
}

/* The place of a word, which is added; NULL: there are too many. */
static Place *place_of(struct BlockWaits *t, uint64_t word)
{
    if (2 * t->n >= t->cap && t->cap < MOST) grow(t);
    Place *p = slot_of(t, word);
    if (p->word) return p;
    if (2 * t->n >= t->cap) return NULL;
    t->n++;
    p->word = word + 1;
    return p;
}

/* An access begins, which has one time for all its lanes. */
static void begin_access(Exec *x)
{
    waits_of(x)->now = -1;
}

/* The cycles that the warp has taken so far, without delay: as a launch of its block alone would. */
static int64_t time_of(const Warp *w)
{
    struct BlockWaits *t = w->x->waits;
    if (t->now >= 0) return t->now;
    const uint64_t near = w->global_waits - w->dram_waits - w->l2_waits,
                   waits = WAITS_LOOK * w->l2_waits + DRAM_WAIT * w->dram_waits + L1_WAIT * near;
    return t->now = (int64_t)hypot((double)(w->chain + waits), busy_cycles(w->x));
}

/* When the word was first written by another block of this launch, or last where `takes`, in cycles of the
 * running warp; -1: it was not. A plain store counts as the end of its block. */
static int64_t written_at(const Warp *w, uint64_t word, int takes)
{
    const Exec *x = w->x;
    const struct BlockWaits *t = x->waits;
    const DevMem *mem = x->mem;
    const Place *p = slot_of(t, word);
    uint32_t tag = (uint32_t)(mem->writer[word] >> 32);
    if (p->word && p->tag) return p->tag >= t->block_tag ? p->before : takes ? p->again : p->time;
    if (tag <= mem->tag_floor || mem->tag_block[tag - mem->tag_floor] == (uint32_t)x->cta.linear)
        return -1;
    for (int i = t->n_ended - 1; i >= 0 && t->ended[i].last >= tag; i--)
        if (t->ended[i].first <= tag) return time_of(w) + t->ended[i].delay;
    return time_of(w);
}

static uint64_t address_of(const MemOp *mo)
{
    return (uint64_t)mo->address << 32 | (uint32_t)mo->offset;
}

int waits_were_told(const Exec *x, const MemOp *mo)
{
    const struct BlockWaits *t = x->waits;
    for (int i = 0; t && i < t->n_told; i++)
        if (t->told[i] == address_of(mo)) return 1;
    return 0;
}

static void note_told(struct BlockWaits *t, const Exec *x, const MemOp *mo)
{
    if (t->n_told < MOST_TOLD && !waits_were_told(x, mo)) t->told[t->n_told++] = address_of(mo);
}

/* The warp goes on when another block has written the word, where one has. */
static void wait_for(Warp *w, const MemOp *mo, uint64_t word, int takes)
{
    struct BlockWaits *t = waits_of(w->x);
    int64_t at = written_at(w, word, takes);
    if (at < 0) return;
    int64_t delay = at + WAITS_HOP - time_of(w);
    if (slot_of(t, word)->tag) note_told(t, w->x, mo);
    if (delay > t->delay[w->index]) t->delay[w->index] = delay;
}

/* The block writes the word, or adds to what others have. */
static void publish(Warp *w, uint64_t word, Writing writing, int adds)
{
    struct BlockWaits *t = waits_of(w->x);
    Place *p = place_of(t, word);
    if (!p) return;
    const Writing last = p->last;
    p->last = writing;
    int64_t now = time_of(w) + t->delay[w->index];
    p->again = now;
    if (p->tag >= t->block_tag) return; /* it has before */
    p->earlier = last;
    p->writers++;
    p->before = adds && p->tag ? p->time : -1;
    p->time = p->before > now ? p->before : now;
    p->tag = w->x->cta.tag;
}

static uint64_t word_of(const Access *a, uint32_t lane)
{
    return (access_address(a, (int)lane) - ARENA_BASE) >> 2;
}

static uint64_t last_word_of(const Access *a, uint32_t lane)
{
    return (access_address(a, (int)lane) + (uint64_t)a->size - 1 - ARENA_BASE) >> 2;
}

/* takes: what the block finds is what another one has left there, as a lock that is free again, and not the
 * first of the states that it tells. */
static void look(Warp *w, const Access *a, uint32_t lane, int takes)
{
    for (uint64_t word = word_of(a, lane); word <= last_word_of(a, lane); word++)
        wait_for(w, a->mo, word, takes);
}

static void write_words(Warp *w, const Access *a, uint32_t lane, uint64_t by, int adds)
{
    for (uint64_t word = word_of(a, lane); word <= last_word_of(a, lane); word++)
        publish(w, word, (Writing){a->mo, by}, adds);
}

void waits_look(Warp *w, const Access *a)
{
    uint64_t last = UINT64_MAX;
    if (w->x->cooperative || (a->mo->order != ORDER_WEAK && a->mo->scope != SCOPE_DEVICE)) return;
    begin_access(w->x);
    EACH_LANE(a->mask, i)
    {
        if (word_of(a, i) != last) look(w, a, i, 0);
        last = word_of(a, i);
    }
}

void waits_store(Warp *w, const Access *a)
{
    if (w->x->cooperative || a->mo->scope != SCOPE_DEVICE) return;
    begin_access(w->x);
    EACH_LANE(a->mask, i) write_words(w, a, i, 0, 0);
}

/* ---- counters ---- */

static Counter *counter_of(struct BlockWaits *t, uint64_t word)
{
    for (int i = 0; i < t->n_counters; i++)
        if (t->counters[i].word == word) return &t->counters[i];
    if (t->n_counters == (int)(sizeof t->counters / sizeof *t->counters)) return NULL;
    Counter *c = &t->counters[t->n_counters++];
    memset(c, 0, sizeof *c);
    c->word = word;
    return c;
}

/* The number that the nth block of a sample draws: the last one, last. */
static uint64_t ticket_of(const Exec *x, uint64_t nth)
{
    uint64_t last = x->n_blocks - 1;
    if (x->closing || nth >= last) return last;
    return (x->ticket + nth * x->ticket_step) % last;
}

/* About how many blocks draw from the counter, by those that have. */
static uint64_t sharers(const Exec *x, const Counter *c)
{
    const struct BlockWaits *t = x->waits;
    for (int i = 0; i < t->n_drawn; i++)
        if (t->drawn[i].mo == c->mo && t->drawn[i].blocks > c->blocks)
            return (x->n_blocks * c->blocks + t->drawn[i].blocks / 2) / t->drawn[i].blocks;
    return x->n_blocks;
}

/* Has another block drawn from a counter of its own by the same instruction? Blocks of a queue share one, so
 * that both may wait for blocks that do not run. */
static int another_has_its_own(const struct BlockWaits *t, const Counter *c)
{
    for (int i = 0; i < t->n_counters; i++) {
        const Counter *o = &t->counters[i];
        if (o != c && o->mo == c->mo && o->blocks == 1 && c->blocks == 1 && o->tag != c->tag)
            return 1;
    }
    return 0;
}

/* One thread adds `by` to a counter, whose value becomes what it would be if all blocks ran. */
static void count(Warp *w, const Access *a, uint64_t by)
{
    Exec *x = w->x;
    struct BlockWaits *t = waits_of(x);
    uint32_t lane = (uint32_t)__builtin_ctz(a->mask);
    size_t bytes = a->mo->element;
    uint64_t value = 0, thread = (uint64_t)w->index * LANES + lane;
    unsigned char *at = a->host + a->p->delta[lane];
    Counter *c = counter_of(t, word_of(a, lane));
    memcpy(&value, at, bytes);
    if (!c || c->is_shared) return;
    c->bytes = bytes;
    if (!c->blocks) c->begin = value, c->mo = a->mo;
    if (c->tag != t->block_tag || !c->blocks) {
        c->tag = t->block_tag;
        c->thread = thread;
        c->takes = 0;
        c->blocks++;
    } else if (c->thread != thread) {
        c->is_shared = 1;
        return;
    } else {
        c->takes++;
    }
    if ((c->takes || a->mo->ends) && a->mo->decides && !x->in_order && another_has_its_own(t, c) &&
        !waits_were_told(x, a->mo)) {
        x->block_floor = INT64_MAX;
        x->vain = NULL;
    }
    uint64_t rank = ticket_of(x, c->blocks - 1);
    value = c->begin + (rank + c->takes * sharers(x, c)) * by;
    memcpy(at, &value, bytes);
}

void waits_restore_counters(Exec *x)
{
    for (int i = 0; x->waits && i < x->waits->n_counters; i++) {
        const Counter *c = &x->waits->counters[i];
        if (c->blocks)
            memcpy(devmem_host(x->mem, ARENA_BASE + (c->word << 2)), &c->begin, c->bytes);
    }
}

int waits_has_counter(const Exec *x)
{
    for (int i = 0; x->waits && i < x->waits->n_counters; i++) {
        const Counter *c = &x->waits->counters[i];
        if (!c->is_shared && !c->takes && c->blocks > 1) return 1;
    }
    return 0;
}

/* ---- atomics ---- */

static uint64_t source(const Warp *w, const MemOp *mo, int k, int lane)
{
    return mo->element == 8 ? row64(w, mo->data[k])[lane] : row32(w, mo->data[k])[lane];
}

/* A compare and swap that finds the value which the one before found, by another block, takes a lock. One
 * that would change nothing looks. */
static void compare(Warp *w, const Access *a, uint32_t lane)
{
    const uint64_t word = word_of(a, lane);
    struct BlockWaits *t = waits_of(w->x);
    uint64_t with = source(w, a->mo, 1, (int)lane), value = 0;
    memcpy(&value, a->host + a->p->delta[lane], a->mo->element);
    /* In a sample, what is in a word that no block has written may come from a block that did not run. */
    const int unknown = w->x->sampled && !slot_of(t, word)->tag;
    int looks = source(w, a->mo, 2, (int)lane) == with,
        takes = (value == with || unknown) && !looks;
    if (looks && a->mo->data[0] != ROW_NONE) look(w, a, lane, 0);
    Place *p = takes ? place_of(t, word) : NULL;
    if (!p) return;
    if (p->compared == with + 1) look(w, a, lane, 1);
    p->compared = with + 1;
    write_words(w, a, lane, 0, 0);
}

/* Is it an increment whose counter does not turn to zero? */
static int turns_late(const MemOp *mo, uint64_t by)
{
    return mo->atom == ATOM_INC && by >= INT32_MAX;
}

/* 1: the operation leaves every word as it is, so that it looks. */
static int is_look(const MemOp *mo, uint64_t by)
{
    const uint64_t ones = mo->element == 8 ? UINT64_MAX : UINT32_MAX;
    const int is_signed = mo->type == T_S32 || mo->type == T_S64;
    by &= ones;
    switch (mo->atom) {
    case ATOM_ADD:
    case ATOM_OR:
    case ATOM_XOR: return !by;
    case ATOM_AND: return by == ones;
    case ATOM_MIN: return by == (is_signed ? ones >> 1 : ones);
    case ATOM_MAX: return by == (is_signed ? ones - (ones >> 1) : 0);
    default: return 0;
    }
}

/* Does a queue's block draw a number so? */
static int may_draw(const Warp *w, const Access *a, uint64_t by)
{
    const MemOp *mo = a->mo;
    return w->x->sampled && !(a->mask & (a->mask - 1)) && by && !mo->waits && mo->count == 1 &&
           mo->type < T_F16 && (mo->atom == ATOM_ADD || turns_late(mo, by));
}

/* Other blocks that have executed an atomic by which a loop ends. */
static uint64_t note_drawn(struct BlockWaits *t, const MemOp *mo)
{
    int i = 0;
    while (i < t->n_drawn && t->drawn[i].mo != mo) i++;
    if (i == MOST_DRAWN) return 0;
    Drawn *d = &t->drawn[i];
    if (i == t->n_drawn) t->n_drawn++, *d = (Drawn){.mo = mo};
    if (!d->blocks || d->tag != t->block_tag) d->blocks++, d->tag = t->block_tag;
    return d->blocks - 1;
}

/* What a loop that goes on by an atomic's result finds: nothing of another block; what blocks of one queue
 * draw, who draw by one instruction, or equal amounts by two; the same, of a queue of few blocks, or what few
 * blocks tell one another; or what another block has set. */
enum { FINDS_NOTHING, FINDS_QUEUE, FINDS_FEW, FINDS_SET };

static int is_negative(Writing a)
{
    return a.by >> (8 * a.mo->element - 1) & 1;
}

/* a: what another block did last with the word of place p. others: blocks that have executed b. */
static int found(const struct BlockWaits *t, const Place *p, Writing a, Writing b, uint64_t others)
{
    const uint64_t writers = p->writers - (p->tag >= t->block_tag && p->writers);
    const int is_equal = a.mo && a.mo->decides && a.mo->atom == b.mo->atom &&
                         (a.by == b.by || (a.mo == b.mo && is_negative(a) == is_negative(b)));
    if (!is_equal && (b.mo->ends || a.mo != b.mo)) return FINDS_SET;
    return b.mo->ends && 2 * writers <= others ? FINDS_FEW : FINDS_QUEUE;
}

/* Returns FINDS_*, of an atomic by which a loop goes on. */
static int finds(const Warp *w, const Access *a, uint32_t lane, uint64_t by)
{
    struct BlockWaits *t = waits_of(w->x);
    const uint64_t others = a->mo->ends ? note_drawn(t, a->mo) : 0;
    int most = FINDS_NOTHING;
    for (uint64_t word = word_of(a, lane); word <= last_word_of(a, lane); word++) {
        const Place *p = slot_of(t, word);
        const Writing of = p->tag < t->block_tag ? p->last : p->earlier;
        const int of_word = written_at(w, word, 0) < 0
                                ? FINDS_NOTHING
                                : found(t, p, of, (Writing){a->mo, by}, others);
        if (of_word > most) most = of_word;
    }
    return most;
}

/* What one lane does. Where its loop goes on by what another block has set, it waits. What it adds itself is
 * there before it goes on. */
static void waits_lane(Warp *w, const Access *a, uint32_t i)
{
    const MemOp *mo = a->mo;
    const int returns = mo->data[0] != ROW_NONE, alone = !(a->mask & (a->mask - 1));
    const uint64_t by = mo->atom == ATOM_CAS ? 1 : source(w, mo, mo->count, (int)i);
    const int what = mo->decides && !mo->waits ? finds(w, a, i, by) : FINDS_NOTHING;
    int64_t *delay = &waits_of(w->x)->delay[w->index], before = *delay, behind = before;
    const int looks = mo->atom != ATOM_CAS && mo->count == 1 && is_look(mo, by);
    if (mo->waits || what >= FINDS_FEW) look(w, a, i, !looks && what != FINDS_FEW);
    if (what >= FINDS_FEW) behind = *delay, *delay = before;
    if (mo->atom == ATOM_CAS) {
        compare(w, a, i);
    } else {
        if (returns && (looks || (mo->atom == ATOM_EXCH && alone)))
            look(w, a, i, !looks); /* a lock */
        if (returns && what != FINDS_SET && may_draw(w, a, by))
            count(w, a, mo->atom == ATOM_INC ? 1 : by);
        if (!looks) write_words(w, a, i, by, mo->atom != ATOM_EXCH);
    }
    if (behind > *delay) *delay = behind;
}

void waits_atomic(Warp *w, const Access *a)
{
    if (w->x->cooperative || a->mo->scope != SCOPE_DEVICE) return;
    begin_access(w->x);
    EACH_LANE(a->mask, i) waits_lane(w, a, i);
}

void waits_barrier(Exec *x)
{
    struct BlockWaits *t = x->waits;
    int64_t most = 0;
    for (int i = 0; i < x->cta.n_warps; i++)
        if (t->delay[i] > most) most = t->delay[i];
    for (int i = 0; i < x->cta.n_warps && most; i++) t->delay[i] = most;
}

uint64_t waits_end_block(Exec *x)
{
    struct BlockWaits *t = x->waits;
    int64_t most = 0;
    if (!t) return 0;
    for (int i = 0; i < x->cta.n_warps; i++)
        if (t->delay[i] > most) most = t->delay[i];
    if (!most) return 0;
    memory_room(t->ended, t->n_ended, t->cap_ended, 64);
    t->ended[t->n_ended++] = (Ended){t->block_tag, x->cta.tag, most};
    return (uint64_t)most;
}
