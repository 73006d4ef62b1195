/* The lineage of a best kernel: what its prompt showed, what the prompt of the best of these showed, and
 * so on to a kernel of a teacher, or to one whose prompt showed none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/report.h"

enum { MAX_SOURCE = 6000 }; /* bytes of a kernel that is shown */

char *lineage_origin(const PoolItem *p)
{
    if (p->round) return memory_printf("%s, round %lld", p->stage, (long long)p->round);
    return strcmp(p->stage, "collect") ? memory_printf("the report's %s samples", p->stage)
                                       : memory_strdup("collect");
}

static LineageKernel *add_kernel(Lineage *l, const PoolItem *p)
{
    for (int i = 0; i < l->n_kernels; i++)
        if (!strcmp(l->kernel[i].digest, p->source_digest)) return &l->kernel[i];
    l->kernel = memory_grow(l->kernel, (size_t)l->n_kernels + 1, sizeof *l->kernel);
    LineageKernel *k = &l->kernel[l->n_kernels++];
    *k = (LineageKernel){
        .score = p->score, .origin = lineage_origin(p), .source = memory_strdup(p->source)};
    snprintf(k->digest, sizeof k->digest, "%s", p->source_digest);
    return k;
}

static int index_of(const Lineage *l, const LineageKernel *k)
{
    return (int)(k - l->kernel);
}

/* Adds what the prompt of `p` showed. Returns the best of it that has parents of its own, or NULL. */
static const PoolItem *add_step(Lineage *l, const Pool *pool, const PoolItem *p)
{
    const PoolItem *next = NULL;
    LineageStep *s = &l->step[l->n_steps++];
    *s = (LineageStep){.child = index_of(l, add_kernel(l, p))};
    for (int i = 0; i < p->n_parents && s->n < LINEAGE_SHOWN; i++) {
        const PoolItem *one = pool_find(pool, p->task, p->parents[i]);
        if (!one) {
            s->parent[s->n++] = LINEAGE_BASELINE; /* a pool has no other kernel than its own */
            continue;
        }
        s->parent[s->n++] = index_of(l, add_kernel(l, one));
        if (one->n_parents > 0 && (!next || one->score > next->score)) next = one;
    }
    return next;
}

void lineage_of(const Pool *pool, const char *task, const char *source_digest, Lineage *out)
{
    const PoolItem *p = pool_find(pool, task, source_digest);
    *out = (Lineage){0};
    if (!p || p->n_parents < 0) return;
    out->known = 1;
    /* A parent is older than its child, so that the walk ends. */
    for (; p && p->n_parents > 0 && out->n_steps < LINEAGE_STEPS;) p = add_step(out, pool, p);
}

void lineage_release(Lineage *l)
{
    for (int i = 0; i < l->n_kernels; i++) {
        free(l->kernel[i].origin);
        free(l->kernel[i].source);
    }
    free(l->kernel);
    *l = (Lineage){0};
}

/* ---- in the page ---- */

/* "crl, round 2, 1.48×" or "teacher, 1.21×", a link where the page shows the kernel. */
static void put_kernel(const Lineage *l, const char *task, int at, int links, Buffer *b)
{
    if (at == LINEAGE_BASELINE) {
        buffer_puts(b, "the baseline");
        return;
    }
    if (links) buffer_printf(b, "<a class=\"link\" href=\"#%s-from-%d\">", task, at);
    int taught = !strcmp(l->kernel[at].origin, "collect");
    html_text(b, taught ? "teacher" : l->kernel[at].origin);
    buffer_printf(b, ", %.2f×%s", l->kernel[at].score, links ? "</a>" : "");
}

static void put_step(const Lineage *l, const char *task, int k, int links, Buffer *b)
{
    const LineageStep *s = &l->step[k];
    buffer_puts(b, "<li>");
    if (k) {
        put_kernel(l, task, s->child, links, b);
        buffer_puts(b, ", from ");
    } else {
        buffer_puts(b, "This one, from ");
    }
    for (int i = 0; i < s->n; i++) {
        if (i) buffer_puts(b, i + 1 == s->n ? " and " : ", ");
        put_kernel(l, task, s->parent[i], links, b);
    }
    buffer_puts(b, "</li>\n");
}

static void put_source(const Lineage *l, const char *task, int at, Buffer *b)
{
    size_t n = strlen(l->kernel[at].source);
    buffer_printf(b, "<div><h4 id=\"%s-from-%d\">", task, at);
    put_kernel(l, task, at, 0, b);
    buffer_puts(b, "</h4><pre>");
    html_escape(b, l->kernel[at].source, n < MAX_SOURCE ? n : MAX_SOURCE);
    buffer_puts(b, n < MAX_SOURCE ? "</pre></div>" : "\n…</pre></div>");
}

void lineage_write(const Lineage *l, const char *task, int links, Buffer *b)
{
    if (!l->known) return;
    if (!l->n_steps) {
        buffer_puts(b, "<p class=\"soft\">Its prompt showed no kernel.</p>\n");
        return;
    }
    buffer_puts(b, "<div class=\"soft from\">Lineage, by what prompts showed:<ol>\n");
    for (int k = 0; k < l->n_steps; k++) put_step(l, task, k, links, b);
    buffer_puts(b, "</ol></div>\n");
}

void lineage_sources(const Lineage *l, const char *task, Buffer *b)
{
    if (!l->n_steps) return;
    buffer_puts(b, "<details><summary>The kernels that it came from</summary><div class=\"pair\">");
    for (int i = 1; i < l->n_kernels; i++) put_source(l, task, i, b); /* 0 is the best one */
    buffer_puts(b, "</div></details>\n");
}
