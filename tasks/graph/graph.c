/* Reads a graph's lines: each parses, and each name is given once. That names are defined before
 * they are used shows when the graph is bound. */
#include "tasks/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"

static int add_value(Graph *g, const char *name, size_t len)
{
    g->name = memory_grow(g->name, (size_t)g->n_values + 1, sizeof *g->name);
    snprintf(g->name[g->n_values], sizeof *g->name, "%.*s", (int)len, name);
    return g->n_values++;
}

static int read_inputs(Graph *g, const GraphSource *s, Error *err)
{
    if (s->n_inputs < 0 || s->n_inputs > GRAPH_MAX_INPUTS)
        return error_set(err, ERROR_LIMIT, "graph: expected at most %d inputs, found %d",
                         GRAPH_MAX_INPUTS, s->n_inputs);
    for (int i = 0; i < s->n_inputs; i++) {
        if (!word_is_name(s->inputs[i], GRAPH_NAME))
            return error_set(err, ERROR_CORRUPT, "graph: the input \"%.80s\" is not a name",
                             s->inputs[i]);
        add_value(g, s->inputs[i], strlen(s->inputs[i]));
    }
    g->n_inputs = s->n_inputs;
    return 0;
}

static int read_line(Graph *g, const GraphSource *s, int node, Error *err)
{
    size_t len = strnlen(s->lines[node], OP_LINE_MAX + 1);
    g->text[node] = memory_strndup(s->lines[node], len);
    g->n_nodes = node + 1;
    OpLine *l = &g->line[node];
    if (op_line_parse(g->text[node], len, l, err)) return error_prefix(err, "graph[%d]", node);
    g->first[node] = g->n_values;
    for (int i = 0; i < l->n_results; i++) {
        OpText r = l->result[i];
        if (r.len >= GRAPH_NAME)
            return error_set(err, ERROR_LIMIT, "graph[%d]: a result's name has more than %d bytes",
                             node, GRAPH_NAME - 1);
        int v = add_value(g, r.p, r.len);
        if (s->taken && s->taken(s->ctx, g->name[v]))
            return error_set(err, ERROR_CORRUPT, "graph[%d]: the name \"%s\" is an axis too", node,
                             g->name[v]);
    }
    return 0;
}

typedef struct {
    const char *name;
    int value;
} Named;

static int by_name(const void *a, const void *b)
{
    const Named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->value > y->value) - (x->value < y->value);
}

static int node_of(const Graph *g, int value)
{
    int node = -1;
    while (node + 1 < g->n_nodes && g->first[node + 1] <= value) node++;
    return node;
}

/* Sorts the values by name, and refuses a name that two of them have. */
static int sort_names(Graph *g, Error *err)
{
    size_t n = (size_t)g->n_values;
    Named *list = memory_array(n + 1, sizeof *list);
    int rc = 0;
    for (size_t i = 0; i < n; i++) list[i] = (Named){g->name[i], (int)i};
    qsort(list, n, sizeof *list, by_name);
    g->by_name = memory_array(n + 1, sizeof *g->by_name);
    for (size_t i = 0; i < n && !rc; i++) {
        g->by_name[i] = list[i].value;
        if (i && !strcmp(list[i].name, list[i - 1].name) && strcmp(list[i].name, "_"))
            rc = error_set(err, ERROR_CORRUPT, "graph[%d]: the name \"%s\" is given a second time",
                           node_of(g, list[i].value), list[i].name);
    }
    free(list);
    return rc;
}

int graph_find(const Graph *g, const char *name, size_t len)
{
    int low = 0, high = g->n_values - 1;
    while (low <= high) {
        int mid = low + (high - low) / 2;
        const char *have = g->name[g->by_name[mid]];
        int order = strncmp(have, name, len);
        if (!order && have[len]) order = 1;
        if (!order) return len == 1 && *name == '_' ? -1 : g->by_name[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid - 1;
    }
    return -1;
}

static int find_outputs(Graph *g, const GraphSource *s, Error *err)
{
    if (s->n_outputs < 1 || s->n_outputs > GRAPH_MAX_OUTPUTS)
        return error_set(err, ERROR_LIMIT, "graph: expected 1 to %d outputs, found %d",
                         GRAPH_MAX_OUTPUTS, s->n_outputs);
    for (int i = 0; i < s->n_outputs; i++) {
        int v = graph_find(g, s->outputs[i], strlen(s->outputs[i]));
        if (v < g->n_inputs)
            return error_set(err, ERROR_CORRUPT, "graph: the output \"%.80s\" is %s", s->outputs[i],
                             v < 0 ? "no line's result" : "an input");
        g->output[g->n_outputs++] = v;
    }
    return 0;
}

int graph_read(const GraphSource *s, Graph **out, Error *err)
{
    if (s->n_lines < 1 || s->n_lines > GRAPH_MAX_NODES)
        return error_set(err, ERROR_LIMIT, "graph: expected 1 to %d lines, found %d",
                         GRAPH_MAX_NODES, s->n_lines);
    Graph *g = memory_alloc(sizeof *g);
    size_t n = (size_t)s->n_lines;
    g->text = memory_array(n, sizeof *g->text);
    g->line = memory_array(n, sizeof *g->line);
    g->first = memory_array(n, sizeof *g->first);
    int rc = read_inputs(g, s, err);
    for (int i = 0; i < s->n_lines && !rc; i++) rc = read_line(g, s, i, err);
    if (rc || sort_names(g, err) || find_outputs(g, s, err)) {
        graph_free(g);
        return -1;
    }
    *out = g;
    return 0;
}

void graph_free(Graph *g)
{
    if (!g) return;
    for (int i = 0; i < g->n_nodes; i++) free(g->text[i]);
    free(g->text);
    free(g->line);
    free(g->first);
    free(g->name);
    free(g->by_name);
    free(g);
}
