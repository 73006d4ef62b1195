/* The owners of pages of keys and values, in host memory only. A row is promised all pages that it
 * may come to need when it begins, so that no row in flight waits for another. */
#ifndef MODEL_CUDA_DECODE_PAGEPOOL_H
#define MODEL_CUDA_DECODE_PAGEPOOL_H

#include <stdint.h>

typedef struct {
    int32_t *free; /* [pages]; the first n_free are free */
    int *users;    /* [pages] */
    int pages, n_free, promised;
} PagePool;

/* Pages of one sequence, in order. */
typedef struct {
    int32_t *page;
    int n, promised; /* n: held; promised: still to come */
} PageList;

void pagepool_init(PagePool *p, int pages);
void pagepool_release(PagePool *p);
int pagepool_left(const PagePool *p); /* neither held nor promised */

/* Begin a list of up to `max_pages` pages. Its first pages are those of `shared`, which both lists use;
 * the rest is promised. Returns 0, and changes nothing, if too few pages are left. */
int pagelist_begin(PageList *l, PagePool *p, int32_t *room, const int32_t *shared, int n_shared,
                   int max_pages);
int32_t pagelist_add(PageList *l, PagePool *p); /* takes a promised page */
void pagelist_end(PageList *l, PagePool *p);

#endif
