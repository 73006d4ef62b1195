/* Which pages of keys and values belong to whom: host memory alone. A row is promised, when it
 * begins, all the pages that it may come to need, so that none in work ever waits for another. */
#ifndef MODEL_CUDA_DECODE_PAGEPOOL_H
#define MODEL_CUDA_DECODE_PAGEPOOL_H

#include <stdint.h>

typedef struct {
    int32_t *free; /* [pages], the first n_free */
    int *users;    /* [pages] */
    int pages, n_free, promised;
} PagePool;

/* Pages of one sequence, in order. */
typedef struct {
    int32_t *page;
    int n, promised; /* had; still to come */
} PageList;

void pagepool_init(PagePool *p, int pages);
void pagepool_release(PagePool *p);
int pagepool_left(const PagePool *p); /* neither taken nor promised */

/* Room for `most` pages, of which the first are those of `shared`, used by both; the rest is
 * promised. 0: too few are left, and nothing changed. */
int pagelist_begin(PageList *l, PagePool *p, int32_t *room, const int32_t *shared, int n_shared,
                   int most);
int32_t pagelist_add(PageList *l, PagePool *p); /* one of those promised */
void pagelist_end(PageList *l, PagePool *p);

#endif
