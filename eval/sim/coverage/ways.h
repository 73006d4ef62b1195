/* The ways that the blocks of a launch go, without running them: which outcomes of a kernel's comparisons and
 * branches follow one another in some block, as far as these follow from the place of a thread and the
 * parameters. What a kernel does wrong at a certain row, tile or trip alone, it does behind such an outcome:
 * blocks that together go all ways show it, however few blocks of the grid do.
 *
 * An outcome is: for no thread of those that come there, for some, for all. A way is two outcomes, one right
 * behind the other. */
#ifndef EVAL_SIM_COVERAGE_WAYS_H
#define EVAL_SIM_COVERAGE_WAYS_H

#include "eval/device/device.h"
#include "eval/sim/ptx/ptx.h"

enum { WAYS_WORDS = 32 }; /* of 64 ways: others are not told apart from these */

typedef struct {
    uint64_t of[WAYS_WORDS]; /* a bit a way */
} WaySet;

/* Blocks that go the same ways. */
typedef struct {
    uint32_t from[3], to[3]; /* both ends are of it */
    int set;
} WayBox;

typedef struct {
    int n_sets, n_boxes;
    WaySet *sets;
    WayBox *boxes;
    uint32_t grid[3];
} Ways;

/* Looks at drawn blocks until all are known, or the budget (as in coverage_find) is used; with half of it, at
 * few threads of each. Where the ways are not known, there are no boxes. */
void ways_find(const PtxModule *m, const PtxFunction *f, const DeviceLaunch *l, int64_t budget,
               uint64_t seed, Ways *out);
void ways_release(Ways *w);
/* Blocks that have run. parts: not 0: those of the last of so many equal parts of the grid alone count. */
typedef struct {
    const uint64_t *ran;
    int n;
    uint64_t parts, seed;
} WaysOf;

/* Up to `most` blocks that go ways which none of these goes, most ways first; drawn by the seed or, with
 * parts, the last that goes them. Returns how many. */
int ways_choose(const Ways *w, const WaysOf *of, uint64_t *blocks, int most);

#endif
