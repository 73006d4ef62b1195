/* Reference counts and promises of pages. Free pages are never fewer than promised ones. */
#include "model/cuda/decode/pagepool.h"

#include <stdlib.h>

#include "base/memory.h"

void pagepool_init(PagePool *p, int pages)
{
    *p = (PagePool){.pages = pages, .n_free = pages};
    p->free = memory_array((size_t)pages, sizeof *p->free);
    p->users = memory_array((size_t)pages, sizeof *p->users);
    for (int i = 0; i < pages; i++) p->free[i] = pages - 1 - i;
}

void pagepool_release(PagePool *p)
{
    free(p->free);
    free(p->users);
}

int pagepool_left(const PagePool *p)
{
    return p->n_free - p->promised;
}

int pagelist_begin(PageList *l, PagePool *p, int32_t *room, const int32_t *shared, int n_shared,
                   int max_pages)
{
    if (pagepool_left(p) < max_pages - n_shared) return 0;
    *l = (PageList){.page = room, .n = n_shared, .promised = max_pages - n_shared};
    p->promised += l->promised;
    for (int i = 0; i < n_shared; i++) p->users[room[i] = shared[i]]++;
    return 1;
}

int32_t pagelist_add(PageList *l, PagePool *p)
{
    int32_t page = p->free[--p->n_free];
    p->users[page] = 1;
    l->promised--;
    p->promised--;
    return l->page[l->n++] = page;
}

void pagelist_end(PageList *l, PagePool *p)
{
    for (int i = 0; i < l->n; i++)
        if (!--p->users[l->page[i]]) p->free[p->n_free++] = l->page[i];
    p->promised -= l->promised;
    *l = (PageList){0};
}
