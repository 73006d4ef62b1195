/* One line of the baseline a node. A slot that is free takes the smallest need that it has room for, as
 * plan_ops_build shares slots, so that both give the same sum. */
#include "tasks/derive/slots.h"

#include <stdlib.h>

#include "base/memory.h"

enum { KERNEL_TEXT_MAX = 1 << 20 };

typedef struct {
    double bytes;
    int last; /* node until which it is taken */
} Slot;

typedef struct {
    Slot *items;
    int n;
} Slots;

static void take(Slots *s, int node, double bytes, int last)
{
    Slot *best = NULL;
    for (int i = 0; i < s->n; i++) {
        Slot *x = &s->items[i];
        if (x->last >= node) continue;
        int fits = x->bytes >= bytes, best_fits = best && best->bytes >= bytes;
        if (!best || (fits && (!best_fits || x->bytes < best->bytes)) ||
            (!fits && !best_fits && x->bytes > best->bytes))
            best = x;
    }
    if (!best) {
        s->items = memory_grow(s->items, (size_t)s->n + 1, sizeof *s->items);
        best = &s->items[s->n++];
        best->bytes = 0;
    }
    if (best->bytes < bytes) best->bytes = bytes;
    best->last = last;
}

/* An operator without a plain kernel has no scratch that is known here. */
static void take_scratch(Slots *s, const OpCall *call, int node)
{
    Buffer text;
    Error ignored;
    buffer_init(&text, KERNEL_TEXT_MAX);
    OpPlain plain = {.source = &text};
    if (!op_plain(call, &plain, &ignored))
        for (int i = 0; i < plain.n_scratch; i++)
            take(s, node,
                 (double)plain.scratch[i].elements * (double)dtype_size(plain.scratch[i].dtype),
                 node);
    free(plain.launch);
    buffer_release(&text);
}

double slots_bytes(const GraphBound *b)
{
    Slots s = {0};
    double total = 0;
    for (int node = 0; node < b->graph->n_nodes; node++) {
        if (!b->calls[node].live) continue;
        for (int i = 0; i < b->graph->n_values; i++) {
            const GraphValue *x = &b->values[i];
            if (x->node != node || x->base != i || x->last >= b->graph->n_nodes) continue;
            take(&s, node, (double)x->extent * (double)dtype_size(x->tensor.dtype), x->last);
        }
        if (!b->calls[node].view) take_scratch(&s, &b->calls[node].call, node);
    }
    for (int i = 0; i < s.n; i++) total += s.items[i].bytes;
    free(s.items);
    return total;
}
