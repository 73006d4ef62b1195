/* Rows of few columns, whose number is known: each thread folds several neighbouring rows by itself. What
 * windows of these rows share is loaded once. */
#include "generate/alone_text.h"

#include <stdio.h>
#include <string.h>

#include "generate/fold_text.h"

/* The rows that a thread takes lie along the strip axis. */
static const char *axis_name(const Writer *w)
{
    return w->k->axes.name[w->along];
}

static void put_head(Writer *w)
{
    const char *type = w->wide ? "long long" : "int", *name = axis_name(w);
    char n[32];
    snprintf(n, sizeof n, "%s", writer_size(w, w->k->axes.size[w->along]));
    const unsigned others = w->k->rows & ~(1u << w->along);
    char rows[32];
    snprintf(rows, sizeof rows, "%s", writer_size(w, writer_product(w, others)));
    buffer_printf(
        &w->body,
        "    double *shared = nullptr;\n    const int lane = 0;\n    (void)shared;\n"
        "    const long long groups = (%s + %d) / %d, own = blockIdx.x * %dLL + threadIdx.x;\n"
        "    if (own >= groups * %s) return;\n"
        "    const unsigned above = own < 0xffffffffLL ? (unsigned)own / (unsigned)groups : own / "
        "groups;\n"
        "    const %s first_%s = (%s)(own - above * groups) * %d;\n",
        n, w->each - 1, w->each, w->block, rows, type, name, type, w->each);
    writer_axes(w, others, "above", "long long", "    ");
}

static void put_result(Writer *w, int r, int whole)
{
    const Node *x = &w->k->nodes->node[w->k->root[r].node];
    if (whole) {
        buffer_printf(&w->body, "    y%d.v[r] = ", r);
    } else {
        buffer_printf(&w->body, "    %s[", kernel_tensor(w->k, w->k->root[r].node, 1));
        writer_index(w, &w->k->root[r].at);
        buffer_puts(&w->body, "] = ");
    }
    buffer_printf(&w->body, "(%s)t%d;\n", dtype_ctype(x->dtype), w->k->root[r].step);
}

/* The rows one by one: of a whole group, whose results become a vector, or of those before the end. */
static void put_body(Writer *w, int whole)
{
    const char *type = w->wide ? "long long" : "int", *name = axis_name(w);
    const char *n = writer_size(w, w->k->axes.size[w->along]);
    unsigned char defined[KERNEL_STEPS], kept[KERNEL_STEPS];
    memcpy(defined, w->defined, sizeof defined);
    memcpy(kept, w->kept, sizeof kept);
    buffer_printf(
        &w->body,
        "#pragma unroll\n    for (int r = 0; r < %d; r++) {\n    const %s %s = first_%s + r;\n",
        w->each, type, name, name);
    if (!whole) buffer_printf(&w->body, "    if (%s >= %s) break;\n", name, n);
    writer_kept(w);
    writer_row_steps(w, 0);
    for (int level = 1; level <= writer_passes(w); level++) {
        fold_put_level(w, level);
        writer_row_steps(w, level);
    }
    for (int r = 0; r < w->k->n_roots; r++) put_result(w, r, whole);
    buffer_puts(&w->body, "    }\n");
    memcpy(w->defined, defined, sizeof defined);
    memcpy(w->kept, kept, sizeof kept);
}

/* A group's results: a vector where rows are whole numbers of groups. */
static void put_vectors(Writer *w)
{
    char n[32];
    snprintf(n, sizeof n, "%s", writer_size(w, w->k->axes.size[w->along]));
    for (int r = 0; r < w->k->n_roots; r++) {
        const Node *x = &w->k->nodes->node[w->k->root[r].node];
        const char *type = dtype_ctype(x->dtype);
        Index at = w->k->root[r].at;
        at.by[w->along] = size_number(0);
        buffer_printf(&w->body, "    %s *to%d = %s + ", type, r,
                      kernel_tensor(w->k, w->k->root[r].node, 1));
        writer_index(w, &at);
        buffer_printf(&w->body,
                      " + first_%s;\n    if (%s %% %d == 0)\n        *(Pack<%s, %d> *)to%d = y%d;\n"
                      "    else\n        for (int r = 0; r < %d; r++) to%d[r] = y%d.v[r];\n",
                      axis_name(w), n, w->each, type, w->each, r, r, w->each, r, r);
    }
}

void alone_put(Writer *w)
{
    char n[32];
    put_head(w);
    snprintf(n, sizeof n, "%s", writer_size(w, w->k->axes.size[w->along]));
    writer_help(w, HELP_PACK);
    buffer_printf(&w->body, "    if (first_%s + %d <= %s) {\n", axis_name(w), w->each, n);
    for (int r = 0; r < w->k->n_roots; r++)
        buffer_printf(&w->body, "    Pack<%s, %d> y%d;\n",
                      dtype_ctype(w->k->nodes->node[w->k->root[r].node].dtype), w->each, r);
    put_body(w, 1);
    put_vectors(w);
    buffer_puts(&w->body, "    return;\n    }\n");
    if (w->each > 1) put_body(w, 0);
}

int alone_fits(const Writer *w)
{
    for (int r = 0; r < w->k->n_roots; r++) {
        const Index *at = &w->k->root[r].at;
        if (in_columns(w, w->k->root[r].step) || *at->text || !size_is(at->by[w->along], 1))
            return 0;
        for (int i = 0; i < w->k->axes.n; i++)
            if (i != w->along && !size_is(at->by[i], 0) &&
                !size_divides(w->k->axes.size[w->along], at->by[i]))
                return 0;
    }
    return 1;
}

int alone_launch(const Writer *w, Buffer *plan, Error *err)
{
    SizeTable *sizes = w->k->nodes->sizes;
    char rows[SIZE_TEXT], n[SIZE_TEXT];
    if (size_text(sizes, writer_product(w, w->k->rows & ~(1u << w->along)), rows, err) ||
        size_text(sizes, w->k->axes.size[w->along], n, err))
        return -1;
    buffer_printf(plan, "ceil_div(ceil_div(%s, %d) * (%s), %d), %d", n, w->each, rows, w->block,
                  w->block);
    return 0;
}
