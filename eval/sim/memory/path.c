/* Mbarriers whose offsets meet in the table share an entry, as do lines of memory: that makes a path
 * longer and never shorter. */
#include "eval/sim/memory/path.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/machine/values.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/cooperative.h"

enum {
    MBARRIERS = 64,
    MBARRIER_BYTES = 8,
    LINES = 64,
    LINE_BYTES = 128,
    SPACES = 2,
    WORDS = 256,
    WORD_BYTES = 4,
    FLAG_BYTES = 16
};

typedef struct {
    WarpPath arriving, ended; /* of the phase under way, and of the last one */
} MbarrierPaths;

typedef struct {
    uint64_t told[SPACES];      /* a bit for each line by which something was told */
    WarpPath of[SPACES][LINES]; /* of the warps that have told something by a line */
} ToldLines;

/* A word that warps have changed by comparing and swapping. */
typedef struct {
    uint64_t at;
    WarpPath path;
} ComparedWord;

/* Each part is there when it is needed: a launch may have many blocks at a time. */
struct BlockPaths {
    MbarrierPaths *mbarriers; /* MBARRIERS */
    ToldLines *told;
    ComparedWord *compared; /* WORDS */
    uint64_t looked;        /* 1 + the first word of other blocks that the block looked at last */
};

static struct BlockPaths *paths_of(Exec *x)
{
    if (!x->paths) x->paths = memory_alloc(sizeof *x->paths);
    return x->paths;
}

static int slot_of(uint32_t at)
{
    return (int)(at / MBARRIER_BYTES % MBARRIERS);
}

void path_arrive(Exec *x, uint32_t at, const Warp *w)
{
    struct BlockPaths *p = paths_of(x);
    const WarpPath path = path_of(w);
    if (!p->mbarriers) p->mbarriers = memory_array(MBARRIERS, sizeof *p->mbarriers);
    path_raise(&p->mbarriers[slot_of(at)].arriving, &path);
}

void path_end_phase(Exec *x, uint32_t at)
{
    if (!x->paths || !x->paths->mbarriers) return;
    MbarrierPaths *of = &x->paths->mbarriers[slot_of(at)];
    path_raise(&of->ended, &of->arriving);
    of->arriving = (WarpPath){0};
}

void path_await_phase(Warp *w, uint32_t at)
{
    const struct BlockPaths *p = w->x->paths;
    if (p && p->mbarriers) path_await(w, &p->mbarriers[slot_of(at)].ended);
}

/* The path of the warps that have compared the word. It displaces that of another word. */
static WarpPath *compared_at(struct BlockPaths *p, const Access *a)
{
    if (!p->compared) p->compared = memory_array(WORDS, sizeof *p->compared);
    ComparedWord *c = &p->compared[(a->base / WORD_BYTES + a->base / LINE_BYTES) % WORDS];
    if (c->at != a->base) c->path = (WarpPath){0};
    c->at = a->base;
    return &c->path;
}

/* The lines of an access, in the table's part for shared or for global memory. */
typedef struct {
    uint64_t first, n;
    int is_global;
} Lines;

static Lines lines_of(const Access *a)
{
    const uint64_t lo = a->base + (uint64_t)(int64_t)a->p->min,
                   hi = a->base + (uint64_t)(int64_t)a->p->max,
                   n = hi / LINE_BYTES - lo / LINE_BYTES + 1;
    return (Lines){lo / LINE_BYTES, n < LINES ? n : LINES, lo >= ARENA_BASE};
}

/* The words of a lane, as told.h counts them. */
typedef struct {
    uint64_t first, last;
} Words;

static Words words_of(const Access *a, uint32_t lane)
{
    const uint64_t at = access_address(a, (int)lane);
    return (Words){at / WORD_BYTES, (at + (uint64_t)a->size - 1) / WORD_BYTES};
}

/* Is the first word that the block has looked at last among these? */
static int looked_at(const Warp *w, Words words)
{
    const uint64_t looked = w->x->paths->looked;
    return looked > words.first && looked <= words.last + 1;
}

/* What the blocks tell one another that run together; NULL: the access is no part of it. */
static ToldWords *told_among(const Warp *w, const Access *a)
{
    const Exec *x = w->x;
    if (!x->counted || a->base < ARENA_BASE) return NULL;
    return x->cooperative ? &x->cooperative->told : x->cluster ? &x->cluster->told : NULL;
}

static int is_comparison(const Access *a)
{
    return a->mo->kind != MEM_LOAD && a->mo->atom == ATOM_CAS;
}

static void tell_blocks(Warp *w, const Access *a, const WarpPath *path)
{
    ToldWords *told = told_among(w, a);
    EACH_LANE(told ? a->mask : 0, i)
    {
        const Words words = words_of(a, i);
        const int looked = looked_at(w, words);
        for (uint64_t k = words.first; k <= words.last; k++) told_tell(told, k, path, looked);
    }
}

static void hear_blocks(Warp *w, const Access *a)
{
    ToldWords *told = told_among(w, a);
    if (!told) return;
    struct BlockPaths *p = paths_of(w->x);
    EACH_LANE(a->mask, i)
    {
        const Words words = words_of(a, i);
        const int looked = looked_at(w, words);
        for (uint64_t k = words.first; k <= words.last; k++) told_hear(told, w, k, looked);
        p->looked = words.first + 1;
    }
}

void path_tell_plainly(Warp *w, const Access *a)
{
    ToldWords *told = told_among(w, a);
    if (!told || (int64_t)a->p->max - a->p->min >= FLAG_BYTES) return;
    const WarpPath path = path_of(w);
    EACH_LANE(a->mask, i)
    {
        const Words words = words_of(a, i);
        for (uint64_t k = words.first; k <= words.last; k++) told_tell_plainly(told, k, &path);
    }
}

void path_tell(Warp *w, const Access *a)
{
    Exec *x = w->x;
    if (!x->counted) return;
    struct BlockPaths *p = paths_of(x);
    const WarpPath path = path_of(w);
    const Lines l = lines_of(a);
    tell_blocks(w, a, &path);
    if (!p->told) p->told = memory_alloc(sizeof *p->told);
    for (uint64_t i = 0; i < l.n; i++) {
        const uint64_t line = (l.first + i) % LINES;
        path_raise(&p->told->of[l.is_global][line], &path);
        p->told->told[l.is_global] |= (uint64_t)1 << line;
    }
}

void path_tell_compared(Warp *w, const Access *a)
{
    Exec *x = w->x;
    if (!x->counted) return;
    struct BlockPaths *p = paths_of(x);
    const WarpPath path = path_of(w);
    tell_blocks(w, a, &path);
    path_raise(compared_at(p, a), &path);
}

void path_hear_compared(Warp *w, const Access *a)
{
    if (is_comparison(a)) hear_blocks(w, a);
    if (w->x->paths && w->x->paths->compared) path_await(w, compared_at(w->x->paths, a));
}

void path_hear(Warp *w, const Access *a)
{
    if (!is_comparison(a)) hear_blocks(w, a);
    const struct BlockPaths *p = w->x->paths;
    if (!p || !p->told) return;
    const Lines l = lines_of(a);
    const uint64_t told = p->told->told[l.is_global];
    for (uint64_t i = 0; told && i < l.n; i++)
        if (told >> (l.first + i) % LINES & 1)
            path_await(w, &p->told->of[l.is_global][(l.first + i) % LINES]);
}

void path_start_block(Exec *x)
{
    struct BlockPaths *p = x->paths;
    if (!p) return;
    p->looked = 0;
    if (p->mbarriers) memset(p->mbarriers, 0, MBARRIERS * sizeof *p->mbarriers);
    for (int i = 0; p->told && i < SPACES; i++) {
        if (p->told->told[i]) memset(p->told->of[i], 0, sizeof p->told->of[i]);
        p->told->told[i] = 0;
    }
    if (p->compared) memset(p->compared, 0, WORDS * sizeof *p->compared);
}

void path_release(Exec *x)
{
    if (x->paths) {
        free(x->paths->mbarriers);
        free(x->paths->told);
        free(x->paths->compared);
    }
    free(x->paths);
    x->paths = NULL;
}
