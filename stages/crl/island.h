/* Islands: four populations of kernels for a task, which evolve apart (FunSearch). A prompt's id
 * puts it on an island; its kernels come from there, and the answers to it stay there. A kernel from
 * before stage 3 is put on one by the digest of its source.
 *
 * Every `migrate` rounds the best kernel of each island is shown on the next one, too. Every `reset`
 * rounds the two islands whose best kernel is slowest lose their kernels, and each is founded again
 * by the best kernel of one of the others. Both follow from the pool alone. */
#ifndef STAGES_CRL_ISLAND_H
#define STAGES_CRL_ISLAND_H

#include "stages/data/pool.h"

enum { ISLANDS = 4 };

int island_of_prompt(const char *id);
/* Writes which of the n kernels are on the island: in[i] becomes 1 or 0. items are of one task. */
void island_members(const PoolItem *const *items, int n, int island, int migrate, int reset,
                    char *in);

#endif
