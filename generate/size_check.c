/* The expressions of sizes at the task's other workloads. A size of min(32, cols), or one whose axes could
 * not be told apart, has another number there. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/size.h"

/* The sizes of values, each once, with what their expressions are at the workload that is looked at. */
typedef struct {
    int n, room;
    struct {
        Size size;
        int64_t at; /* -1: it has no expression */
        char text[SIZE_TEXT];
    } * of;
} Seen;

static int add_seen(Seen *seen, SizeTable *t, Size s)
{
    Error unused;
    for (int i = 0; i < seen->n; i++)
        if (size_same(seen->of[i].size, s)) return i;
    if (seen->n == seen->room) {
        seen->room = seen->room ? 2 * seen->room : 32;
        seen->of = memory_grow(seen->of, (size_t)seen->room, sizeof *seen->of);
    }
    seen->of[seen->n].size = s;
    if (size_text(t, s, seen->of[seen->n].text, &unused)) seen->of[seen->n].text[0] = 0;
    return seen->n++;
}

static void evaluate(Seen *seen, const SizeTable *t, const Sizes *s)
{
    for (int i = 0; i < seen->n; i++)
        if (!seen->of[i].text[0] ||
            derivation_value(&t->derived, s, seen->of[i].text, &seen->of[i].at, NULL))
            seen->of[i].at = -1;
}

static Size size_of(const SizeTable *t, int value, int dim)
{
    Size s;
    for (int k = 0; k < SIZE_BINDINGS; k++) s.at[k] = t->bound[k]->values[value].tensor.size[dim];
    return s;
}

static void compare(SizeTable *t, Seen *seen, const GraphBound *b)
{
    for (int v = 0; v < b->graph->n_values; v++) {
        const OpTensor *own = &b->values[v].tensor;
        int rank = t->bound[0]->values[v].tensor.rank;
        if (!b->values[v].live) continue;
        if (own->rank != rank) t->odd[v] = 1;
        for (int d = 0; d < rank && !t->odd[v]; d++)
            t->odd[v] = seen->of[add_seen(seen, t, size_of(t, v, d))].at != own->size[d];
    }
}

static void look_at(SizeTable *t, Seen *seen, const Sizes *s)
{
    GraphBound *b;
    Error unused;
    if (derivation_bind(&t->derived, s, &b, &unused)) return;
    evaluate(seen, t, s);
    compare(t, seen, b);
    graph_bound_free(b);
}

/* Small sizes of each axis, where a slice may have no more elements than there are. One of 1 would be another
 * graph, as it broadcasts. */
static void look_at_small(SizeTable *t, Seen *seen, const Sizes *s)
{
    static const int small[] = {5, 16};
    for (int a = 0; a < t->task->n_axes; a++)
        for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
            Sizes other = *s;
            other.at[a] = small[i];
            look_at(t, seen, &other);
        }
}

void size_find_odd(SizeTable *t)
{
    const GraphBound *b = t->bound[0];
    int checks = 0;
    Seen seen = {0};
    t->odd = memory_array((size_t)b->graph->n_values + 1, 1);
    for (int v = 0; v < b->graph->n_values; v++)
        for (int d = 0; d < b->values[v].tensor.rank && b->values[v].live; d++)
            add_seen(&seen, t, size_of(t, v, d));
    for (int i = 0; i < t->task->n_workloads; i++) {
        Sizes s = derivation_own(&t->derived);
        for (int a = 0; a < t->task->n_axes; a++) s.at[a] = t->task->workloads[i].axis[a];
        look_at(t, &seen, &s);
        if (t->task->workloads[i].role == ROLE_CHECK && !checks++) look_at_small(t, &seen, &s);
    }
    for (int v = 0; v < b->graph->n_values; v++) t->odd[v] |= t->odd[b->values[v].base];
    free(seen.of);
}
