/* Where the paths from a block meet again. */
#ifndef EVAL_SIM_PTX_POSTDOMINATE_H
#define EVAL_SIM_PTX_POSTDOMINATE_H

/* Returns the immediate post-dominator of each of n blocks, which the caller frees. The exit is n. The
 * successors of block b are edges[first[b]] to edges[first[b + 1] - 1]. -1: no path leads to the exit. */
int *postdominate(int n, const int *first, const int *edges);

#endif
