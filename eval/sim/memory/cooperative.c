/* A block that only looks at a flag again and again leaves its turn to the next one. */
#include "eval/sim/memory/cooperative.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/memory/doubts.h"
#include "eval/sim/memory/path.h"

enum { QUIET_ROUNDS = 1024, TOLD_WORDS = 1 << 10, MOST_TOLD_WORDS = 1 << 16, MOST_PHASED = 256 };
/* Of a block: it has told something in the phase under way, or ever; it has looked before it told anything,
 * so that it is not the end of a phase that it waits for. LOOKED: in the phase under way. */
enum { HAS_TOLD = 1, HAS_TOLD_EVER = 2, TAKES_TURNS = 4, HAS_LOOKED = 8 };

void cooperative_prepare(Exec *x)
{
    Cooperative *c = x->cooperative = memory_alloc(sizeof *c);
    c->n = x->n_blocks;
    c->blocks = memory_array(c->n, sizeof *c->blocks);
    c->arrivals = memory_array(c->n, sizeof *c->arrivals);
}

void cooperative_select(Exec *x, uint64_t block)
{
    Cooperative *c = x->cooperative;
    if (block == c->current) return;
    block_save(x, &c->blocks[c->current]);
    block_restore(x, &c->blocks[block]);
    c->current = block;
    doubts_change_block(x);
}

void cooperative_release(Exec *x)
{
    Cooperative *c = x->cooperative;
    if (!c) return;
    for (uint64_t b = c->n - 1; b > 0; b--) {
        cooperative_select(x, b);
        block_release(x);
    }
    cooperative_select(x, 0);
    for (size_t i = 0; i < c->cap_told; i++) free(c->told[i].of);
    free(c->told);
    free(c->blocks);
    free(c->arrivals);
    free(c);
    x->cooperative = NULL;
}

static ToldWord *slot_of(const Cooperative *c, uint64_t word)
{
    size_t i = (size_t)((word + 1) * 0x9e3779b97f4a7c15u >> 20) & (c->cap_told - 1);
    while (c->told[i].word && c->told[i].word != word + 1) i = (i + 1) & (c->cap_told - 1);
    return &c->told[i];
}

static void grow(Cooperative *c)
{
    const Cooperative old = *c;
    c->cap_told = old.cap_told ? 2 * old.cap_told : TOLD_WORDS;
    c->told = memory_array(c->cap_told, sizeof *c->told);
    for (size_t i = 0; i < old.cap_told; i++)
        if (old.told[i].word) *slot_of(c, old.told[i].word - 1) = old.told[i];
    free(old.told);
}

/* The word's entry, which is added; NULL: there are too many. */
static ToldWord *told_at(Cooperative *c, uint64_t word)
{
    if (2 * c->n_told >= c->cap_told && c->cap_told < MOST_TOLD_WORDS) grow(c);
    ToldWord *t = slot_of(c, word);
    if (t->word) return t;
    if (2 * c->n_told >= c->cap_told) return NULL;
    c->n_told++;
    t->word = word + 1;
    if (c->n_phased < MOST_PHASED) c->n_phased++, t->of = memory_array(c->n, 1);
    return t;
}

void cooperative_tell(Exec *x, uint64_t word, const WarpPath *path, int looked)
{
    Cooperative *c = x->cooperative;
    ToldWord *t = told_at(c, word);
    if (!t) return;
    path_raise(&t->arriving, path);
    if (!t->of) return;
    uint8_t *of = &t->of[c->current];
    if (looked && !(*of & HAS_TOLD_EVER)) *of |= TAKES_TURNS;
    t->count += !(*of & HAS_TOLD);
    *of |= HAS_TOLD | HAS_TOLD_EVER;
    if (t->count < c->n) return;
    t->phases++;
    t->ended = t->arriving;
    t->arriving = (WarpPath){0};
    t->count = 0;
    for (uint64_t b = 0; b < c->n; b++) t->of[b] &= (uint8_t) ~(HAS_TOLD | HAS_LOOKED);
}

/* What waits for the end of a phase does not wait for others that have gone on and told something since. It
 * waits for more where it looks again after that end. */
void cooperative_hear(Warp *w, uint64_t word, int looked)
{
    const Cooperative *c = w->x->cooperative;
    ToldWord *t = c->cap_told ? slot_of(c, word) : NULL;
    if (!t || !t->word) return;
    if (t->phases) path_await(w, &t->ended);
    if (!t->phases || !t->of || t->of[c->current] & TAKES_TURNS ||
        (looked && t->of[c->current] & HAS_LOOKED))
        path_await(w, &t->arriving);
    if (t->of) t->of[c->current] |= HAS_LOOKED;
}

void cooperative_read_early(Exec *x, uint64_t lo, uint64_t hi)
{
    Cooperative *c = x->cooperative;
    if (!c) return;
    c->stopped = 1;
    if (c->hi) return;
    c->lo = lo;
    c->hi = hi;
}

void cooperative_go_on(Exec *x)
{
    Cooperative *c = x->cooperative;
    if (!x->faulted || !c->stopped) return;
    if (!c->early.outcome) c->early = *x->fault;
    c->stopped = 0;
    x->faulted = 0;
    x->cta.live_threads = 0;
    for (int i = 0; i < x->cta.n_warps; i++) x->warps[i].n_splits = 0;
}

void cooperative_end(Exec *x)
{
    const Cooperative *c = x->cooperative;
    if (!c->early.outcome || (x->faulted && x->fault->outcome == OUTCOME_RACE)) return;
    *x->fault = c->early;
    x->faulted = 1;
    if (!devmem_is_written(x->mem, c->lo, c->hi)) return;
    x->fault->outcome = OUTCOME_RACE;
    char *message = x->fault->message, *cause = strstr(message, " before anything was written");
    size_t at = cause ? (size_t)(cause - message) : strlen(message);
    snprintf(message + at, sizeof x->fault->message - at,
             ", which another block writes in the same launch with no order between: a barrier of "
             "the grid must come between them");
}

/* Reports the first thread that looks at what never changes. */
static void report(Exec *x)
{
    uint64_t waiting = 0, first = 0;
    for (uint64_t b = x->cooperative->n; b-- > 0;) {
        cooperative_select(x, b);
        if (!x->cta.live_threads) continue;
        waiting++;
        first = b;
    }
    cooperative_select(x, first);
    for (int i = 0; i < x->cta.n_warps; i++) {
        Warp *w = &x->warps[i];
        for (int s = 0; s < w->n_splits; s++) {
            if (w->splits[s].state != SPLIT_READY || !w->splits[s].look) continue;
            w->frame = w->splits[s].frame;
            exec_fault(w, w->splits[s].look, __builtin_ctz(w->splits[s].mask), OUTCOME_RACE,
                       "waits for ever for other blocks: %llu of %llu blocks wait, the others have "
                       "ended; a barrier of the grid must be reached by all",
                       (unsigned long long)waiting, (unsigned long long)x->cooperative->n);
            return;
        }
    }
}

void cooperative_round(Exec *x, int busy)
{
    Cooperative *c = x->cooperative;
    c->quiet = busy ? 0 : c->quiet + 1;
    if (c->quiet > QUIET_ROUNDS && !x->faulted) report(x);
}
