/* A block that waits for its turn at a counter has looked there before it tells anything. At a barrier it
 * tells first. */
#include "eval/sim/memory/told.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/memory/path.h"

enum { TOLD_WORDS = 1 << 10, MOST_TOLD_WORDS = 1 << 16, MOST_PHASED = 256 };
/* Of a block: it has told something in the phase under way, or ever; it has looked before it told anything,
 * so that it is not the end of a phase that it waits for. LOOKED: in the phase under way. */
enum { HAS_TOLD = 1, HAS_TOLD_EVER = 2, TAKES_TURNS = 4, HAS_LOOKED = 8 };

void told_begin(ToldWords *c, uint64_t blocks)
{
    const uint64_t current = c->current;
    told_release(c);
    c->blocks = blocks;
    c->current = current;
}

void told_release(ToldWords *c)
{
    for (size_t i = 0; i < c->cap; i++) free(c->words[i].of);
    free(c->words);
    free(c->plain);
    *c = (ToldWords){0};
}

static ToldWord *slot_of(const ToldWords *c, uint64_t word)
{
    size_t i = (size_t)((word + 1) * 0x9e3779b97f4a7c15u >> 20) & (c->cap - 1);
    while (c->words[i].word && c->words[i].word != word + 1) i = (i + 1) & (c->cap - 1);
    return &c->words[i];
}

static void grow(ToldWords *c)
{
    const ToldWords old = *c;
    c->cap = old.cap ? 2 * old.cap : TOLD_WORDS;
    c->words = memory_array(c->cap, sizeof *c->words);
    for (size_t i = 0; i < old.cap; i++)
        if (old.words[i].word) *slot_of(c, old.words[i].word - 1) = old.words[i];
    free(old.words);
}

/* The word's entry, which is added; NULL: there are too many. */
static ToldWord *told_at(ToldWords *c, uint64_t word)
{
    if (2 * c->n >= c->cap && c->cap < MOST_TOLD_WORDS) grow(c);
    ToldWord *t = slot_of(c, word);
    if (t->word) return t;
    if (2 * c->n >= c->cap) return NULL;
    c->n++;
    t->word = word + 1;
    if (c->n_phased < MOST_PHASED) c->n_phased++, t->of = memory_array(c->blocks, 1);
    return t;
}

void told_tell(ToldWords *c, uint64_t word, const WarpPath *path, int looked)
{
    ToldWord *t = told_at(c, word);
    if (!t) return;
    path_raise(&t->arriving, path);
    if (!t->of) return;
    uint8_t *of = &t->of[c->current];
    if (looked && !(*of & HAS_TOLD_EVER)) *of |= TAKES_TURNS;
    t->count += !(*of & HAS_TOLD);
    *of |= HAS_TOLD | HAS_TOLD_EVER;
    if (t->count < c->blocks) return;
    t->phases++;
    t->ended = t->arriving;
    t->arriving = (WarpPath){0};
    t->count = 0;
    for (uint64_t b = 0; b < c->blocks; b++) t->of[b] &= (uint8_t) ~(HAS_TOLD | HAS_LOOKED);
}

static PlainWord *plain_at(const ToldWords *c, uint64_t word)
{
    return &c->plain[word * 0x9e3779b97f4a7c15u >> 32 & (PLAIN_WORDS - 1)];
}

void told_tell_plainly(ToldWords *c, uint64_t word, const WarpPath *path)
{
    if (!c->plain) c->plain = memory_array(PLAIN_WORDS, sizeof *c->plain);
    *plain_at(c, word) = (PlainWord){word + 1, *path};
}

/* What waits for the end of a phase does not wait for others that have gone on and told something since. It
 * waits for more where it looks again after that end. */
void told_hear(ToldWords *c, Warp *w, uint64_t word, int looked)
{
    ToldWord *t = c->cap ? slot_of(c, word) : NULL;
    const PlainWord *plain = c->plain ? plain_at(c, word) : NULL;
    if (plain && plain->word == word + 1) path_await(w, &plain->path);
    if (!t || !t->word) return;
    if (t->phases) path_await(w, &t->ended);
    if (!t->phases || !t->of || t->of[c->current] & TAKES_TURNS ||
        (looked && t->of[c->current] & HAS_LOOKED))
        path_await(w, &t->arriving);
    if (t->of) t->of[c->current] |= HAS_LOOKED;
}
