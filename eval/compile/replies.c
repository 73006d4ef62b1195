/* A list, the oldest first. */
#include "eval/compile/replies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/memory.h"

typedef struct {
    char key[DIGEST_HEX];
    char *data;
    size_t len;
} Reply;

struct Replies {
    Reply *list;
    int n, max;
    size_t bytes, max_bytes;
};

Replies *replies_open(int max, size_t max_bytes)
{
    Replies *r = memory_alloc(sizeof *r);
    r->list = memory_array((size_t)max + 1, sizeof *r->list);
    r->max = max;
    r->max_bytes = max_bytes;
    return r;
}

static int find(const Replies *r, const char *key)
{
    for (int i = r->n - 1; i >= 0; i--)
        if (!strcmp(r->list[i].key, key)) return i;
    return -1;
}

static void drop(Replies *r, int i)
{
    r->bytes -= r->list[i].len;
    free(r->list[i].data);
    r->n--;
    memmove(&r->list[i], &r->list[i + 1], (size_t)(r->n - i) * sizeof *r->list);
}

void replies_close(Replies *r)
{
    if (!r) return;
    while (r->n) drop(r, r->n - 1);
    free(r->list);
    free(r);
}

void replies_put(Replies *r, const char *key, const void *reply, size_t len)
{
    int old = find(r, key);
    if (old >= 0) drop(r, old);
    if (len > r->max_bytes) return;
    while (r->n == r->max || r->bytes + len > r->max_bytes) drop(r, 0);
    Reply *x = &r->list[r->n++];
    snprintf(x->key, sizeof x->key, "%s", key);
    x->data = memory_strndup(reply, len);
    x->len = len;
    r->bytes += len;
}

int replies_find(const Replies *r, const char *key, Buffer *out)
{
    int i = find(r, key);
    if (i < 0) return 0;
    buffer_clear(out);
    return !buffer_append(out, r->list[i].data, r->list[i].len);
}
