/* Which mutants are tried: equal seeds and originals give equal mutants. */
#ifndef LAB_MUTATE_MUTANT_DRAW_H
#define LAB_MUTATE_MUTANT_DRAW_H

#include <stdint.h>

#include "lab/mutate/mutations.h"
#include "lab/mutate/originals.h"

typedef struct {
    uint64_t seed;
    int count;       /* mutants of all originals together */
    int part, parts; /* originals part, part + parts, part + 2 parts, ... alone; parts 0: all */
} MutantDraw;

/* how_many[i]: of original i, which are sorted by task. Every task has as many as another, and so has each of
 * its originals, as far as they have mutations: at[i] is their number. */
void mutants_share(const MutantDraw *d, const Originals *o, const int *at, int *how_many);

/* The order in which an original's mutations are tried: order[k] is an index of m->at. Each kind comes as
 * often as another, as long as it lasts. */
void mutants_order(uint64_t seed, const Original *o, const Mutations *m, int *order);

#endif
