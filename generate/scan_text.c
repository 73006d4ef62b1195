/* Scans as text. The threads of a row take neighbouring vectors of a tile; each scans its own, then threads
 * pass sums on, and the whole tile's sum is carried to the next one. */
#include "generate/scan_text.h"

#include <stdio.h>
#include <string.h>

static int is_scan(const Writer *w, int step)
{
    return node_of(w, step)->kind == NODE_SCAN && w->k->step[step].arg[0] >= 0;
}

static const char *join_of(const Writer *w, int step)
{
    return node_of(w, step)->fold == FOLD_PROD ? "a * b" : "a + b";
}

static const char *start_of(const Writer *w, int step)
{
    return node_of(w, step)->fold == FOLD_PROD ? "1" : "0";
}

/* Sets set[i] for each step that the scans, or the results behind them, need, and are not there yet. */
static void find_steps(const Writer *w, int behind, unsigned char *set)
{
    memset(set, 0, KERNEL_STEPS);
    for (int i = 0; i < w->k->n && !behind; i++)
        if (is_scan(w, i)) writer_close(w, w->k->step[i].arg[0], set);
    for (int r = 0; r < w->k->n_roots && behind; r++) writer_close(w, w->k->root[r].step, set);
}

/* Begins a loop over a vector's elements in the order of the scan. v: their order in memory. */
static void put_vector_head(Writer *w, const char *indent)
{
    const char *name = w->k->axes.name[w->k->scan], *type = w->wide ? "long long" : "int";
    buffer_printf(
        &w->body,
        "#pragma unroll\n%sfor (int o = 0; o < V; o++) {\n%s    const int v = %s;\n%s    const "
        "%s %s = from_%s + v;\n%s    (void)%s;\n",
        indent, indent, w->k->backward ? "V - 1 - o" : "o", indent, type, name, name, indent, name);
}

/* Where a thread's vector begins in memory. */
static void put_begin(Writer *w, const char *cols, const char *indent)
{
    const char *name = w->k->axes.name[w->k->scan], *type = w->wide ? "long long" : "int";
    buffer_printf(&w->body, "%sconst %s from_%s = ", indent, type, name);
    if (w->k->backward)
        buffer_printf(&w->body, "%s - V - c;\n", cols);
    else
        buffer_puts(&w->body, "c;\n");
}

/* Each element that the steps need; packs hold elements in the order of memory. */
static void put_steps(Writer *w, const unsigned char *set, const char *indent)
{
    for (int i = 0; i < w->k->n; i++)
        if (set[i] && in_columns(w, i) && !is_scan(w, i)) {
            writer_step(w, i, indent);
        } else if (set[i] && is_scan(w, i)) {
            const char *join = join_of(w, i);
            buffer_printf(&w->body, "%sconst %s t%d = from%d %c z%d[o];\n", indent,
                          writer_type(w, i), i, i, join[2], i);
        }
}

static void put_packs(Writer *w, const unsigned char *set, const char *indent)
{
    for (int i = 0; i < w->k->n; i++)
        if (set[i] && writer_is_packed(w, i))
            buffer_printf(&w->body, "%sconst Pack<%s, V> p%d = q%d[u];\n", indent,
                          writer_ctype(w, i), i, i);
}

/* Loads of the tiles of a round. `at` is where a thread's vector begins in memory. */
static void put_loads(Writer *w, const char *cols)
{
    unsigned char set[KERNEL_STEPS], behind[KERNEL_STEPS];
    const char *type = w->wide ? "long long" : "int", *name = w->k->axes.name[w->k->scan];
    char to[16];
    find_steps(w, 0, set);
    find_steps(w, 1, behind);
    for (int i = 0; i < w->k->n; i++)
        if ((set[i] || behind[i]) && writer_is_packed(w, i)) {
            writer_help(w, HELP_PACK);
            buffer_printf(&w->body, "        Pack<%s, V> q%d[%d];\n", writer_ctype(w, i), i,
                          w->items);
        }
    buffer_printf(
        &w->body,
        "#pragma unroll\n        for (int u = 0; u < %d; u++) {\n"
        "            const %s c = first + (u * %d + lane) * V;\n            if (c < %s) {\n",
        w->items, type, w->lanes, cols);
    put_begin(w, cols, "                ");
    buffer_printf(&w->body, "                const %s %s = from_%s;\n                (void)%s;\n",
                  type, name, name, name);
    for (int i = 0; i < w->k->n; i++)
        if ((set[i] || behind[i]) && writer_is_packed(w, i)) {
            snprintf(to, sizeof to, "q%d[u]", i);
            writer_fetch(w, i, to, "                ");
        }
    buffer_puts(&w->body, "            }\n        }\n");
}

/* The scans of a thread's own elements, and then of the sums of threads before it. */
static void put_scans(Writer *w, const char *cols)
{
    unsigned char set[KERNEL_STEPS];
    find_steps(w, 0, set);
    for (int i = 0; i < w->k->n; i++)
        if (is_scan(w, i))
            buffer_printf(
                &w->body,
                "            %s z%d[V];\n#pragma unroll\n            for (int v = 0; v < V; v++) "
                "z%d[v] = %s;\n",
                writer_type(w, i), i, i, start_of(w, i));
    buffer_printf(&w->body, "            if (c < %s) {\n", cols);
    put_begin(w, cols, "                ");
    put_packs(w, set, "                ");
    put_vector_head(w, "                ");
    put_steps(w, set, "                    ");
    for (int i = 0; i < w->k->n; i++) {
        if (!is_scan(w, i)) continue;
        buffer_printf(&w->body, "                    z%d[o] = ", i);
        writer_value(w, w->k->step[i].arg[0], writer_type(w, i));
        buffer_printf(&w->body, ";\n                    if (o) z%d[o] = z%d[o - 1] %c z%d[o];\n", i,
                      i, join_of(w, i)[2], i);
    }
    buffer_puts(&w->body, "                }\n            }\n");
    writer_help(w, HELP_SCAN);
    for (int i = 0; i < w->k->n; i++) {
        if (!is_scan(w, i)) continue;
        const char *type = writer_type(w, i);
        buffer_printf(
            &w->body,
            "            %s all%d;\n            const %s from%d = carry%d %c scan<%d>(z%d[V - 1], "
            "(%s)%s, [](%s a, %s b) { return %s; }, (%s *)shared, all%d);\n"
            "            carry%d = carry%d %c all%d;\n",
            type, i, type, i, i, join_of(w, i)[2], w->lanes, i, type, start_of(w, i), type, type,
            join_of(w, i), type, i, i, i, join_of(w, i)[2], i);
    }
}

static void put_stores(Writer *w, const char *cols)
{
    unsigned char set[KERNEL_STEPS];
    find_steps(w, 1, set);
    const char *name = w->k->axes.name[w->k->scan];
    buffer_printf(&w->body, "            if (c < %s && inside) {\n", cols);
    put_begin(w, cols, "                ");
    buffer_printf(&w->body, "                const %s %s = from_%s;\n                (void)%s;\n",
                  w->wide ? "long long" : "int", name, name, name);
    put_packs(w, set, "                ");
    for (int r = 0; r < w->k->n_roots; r++)
        if (writer_root_is_vector(w, r))
            buffer_printf(&w->body, "                Pack<%s, V> y%d;\n",
                          dtype_ctype(w->k->nodes->node[w->k->root[r].node].dtype), r);
    put_vector_head(w, "                ");
    put_steps(w, set, "                    ");
    writer_stores(w, "                    ");
    buffer_puts(&w->body, "                }\n");
    writer_vector_stores(w, "                ");
    buffer_puts(&w->body, "            }\n");
}

void scan_put(Writer *w)
{
    writer_help(w, HELP_PACK);
    const char *type = w->wide ? "long long" : "int";
    char cols[64];
    snprintf(cols, sizeof cols, "%s", writer_size(w, w->k->axes.size[w->k->scan]));
    for (int i = 0; i < w->k->n; i++)
        if (is_scan(w, i))
            buffer_printf(&w->body, "    %s carry%d = %s;\n", writer_type(w, i), i, start_of(w, i));
    buffer_printf(&w->body, "    for (%s first = 0; first < %s; first += %d * V) {\n", type, cols,
                  w->lanes * w->items);
    put_loads(w, cols);
    buffer_printf(&w->body,
                  "#pragma unroll\n        for (int u = 0; u < %d; u++) {\n"
                  "            const %s c = first + (u * %d + lane) * V;\n",
                  w->items, type, w->lanes);
    put_scans(w, cols);
    put_stores(w, cols);
    buffer_puts(&w->body, "        }\n    }\n");
}
