/* Sentences from the genes of a drawn kernel. */
#include "generate/draw/drawn_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A sentence that is there already, or for which there is no room, is left out. */
__attribute__((format(printf, 2, 3))) static void say(char out[DRAW_WORDS], const char *format, ...)
{
    char text[DRAW_WORDS];
    const size_t at = strlen(out);
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || at + (size_t)n + 1 >= DRAW_WORDS || strstr(out, text)) return;
    snprintf(out + at, DRAW_WORDS - at, "%s%s", at ? " " : "", text);
}

/* The gene of what a kernel writes, or of a value; `none` where there was no choice. */
static int gene_of(const Drawn *d, const char *of, Gene gene, int none)
{
    const GenePoint *p = genes_find(&d->genes, of, gene);
    return p ? p->value : none;
}

/* 1: the i-th point is the first one of a kernel; its name is what the kernel writes. */
static int begins_kernel(const Drawn *d, int i)
{
    const GenePoint *p = &d->genes.point[i];
    for (int k = 0; k < i; k++)
        if (!strcmp(d->genes.point[k].of, p->of)) return 0;
    return genes_find(&d->genes, p->of, GENE_VEC) || genes_find(&d->genes, p->of, GENE_BLOCK) ||
           genes_find(&d->genes, p->of, GENE_ROW) || genes_find(&d->genes, p->of, GENE_SIDE);
}

static int has_tiles(const Drawn *d, const char *of)
{
    return gene_of(d, of, GENE_SIDE, 1) > 1;
}

/* ---- what bounds it ---- */

/* A fold of neighbouring elements is coalesced where several threads share a row; by default one thread
 * folds a row whose elements lie apart. */
static void say_reads(const GenePoint *row, char out[DRAW_WORDS])
{
    static const char *const who[] = {
        [ROW_THREAD] = "One thread", [ROW_WARP] = "One warp", [ROW_BLOCK] = "One block"};
    const char *how = row->value == ROW_THREAD ? ": reads are not coalesced" : ", coalesced";
    say(out, "%s per row%s.", who[row->value], row->by_default == ROW_THREAD ? "" : how);
}

static void analyse(const Drawn *d, const char *of, char out[DRAW_WORDS])
{
    const GenePoint *row = genes_find(&d->genes, of, GENE_ROW);
    const int product = genes_find(&d->genes, of, GENE_SIDE) != NULL;
    say(out, product ? "Compute bound." : "Memory bound.");
    if (has_tiles(d, of))
        say(out, "Tiles in shared memory let many outputs use a factor that is read once.");
    else if (product)
        say(out, "Without tiles each factor is read again for each output.");
    else
        say(out,
            row ? "Each row should be read few times." : "Each element is read and written once.");
    if (row && !has_tiles(d, of)) say_reads(row, out);
}

void draw_analysis(const Drawn *d, char out[DRAW_WORDS])
{
    *out = 0;
    for (int i = 0; i < d->genes.n; i++)
        if (begins_kernel(d, i)) analyse(d, d->genes.point[i].of, out);
}

/* ---- how it is written ---- */

static void say_launches(const Drawn *d, char out[DRAW_WORDS])
{
    static const char *const word[] = {"No launch", "One launch", "Two launches", "Three launches",
                                       "Four launches"};
    const char *ops = d->n_lines == 1 ? " and a library operator"
                      : d->n_lines    ? " and library operators"
                                      : "";
    if (d->n_kernels < (int)(sizeof word / sizeof *word))
        say(out, "%s%s.", word[d->n_kernels], ops);
    else
        say(out, "%d launches%s.", d->n_kernels, ops);
}

static void say_tiles(const Drawn *d, const char *of, const char *name, char out[DRAW_WORDS])
{
    const int side = gene_of(d, of, GENE_SIDE, 1), each = gene_of(d, of, GENE_ITEMS, 1);
    const char *copy =
        gene_of(d, of, GENE_COPY, COPY_LOAD) == COPY_ASYNC ? "copied asynchronously" : "loaded";
    say(out, "%sTiles of %d by %d outputs, %d terms at a time %s into shared memory.", name,
        side * each, side, side, copy);
    say(out, each == 1 ? "One output a thread." : "%d outputs a thread.", each);
}

static void say_rows(const Drawn *d, const char *of, const char *name, char out[DRAW_WORDS])
{
    const int block = gene_of(d, of, GENE_BLOCK, 256);
    if (gene_of(d, of, GENE_ROW, ROW_THREAD) == ROW_THREAD)
        say(out, "%sA thread folds a row, %d threads a block.", name, block);
    else if (gene_of(d, of, GENE_ROW, ROW_THREAD) == ROW_WARP)
        say(out, "%sA warp folds a row by shuffles, %d threads a block.", name, block);
    else
        say(out, "%s%d threads fold a row %s.", name, block,
            gene_of(d, of, GENE_REDUCE, REDUCE_BY_SHUFFLE) == REDUCE_BY_TREE
                ? "by a tree in shared memory"
                : "by shuffles");
    if (gene_of(d, of, GENE_PASS, 0) == 1) say(out, "Maximum and sum in one pass.");
    if (gene_of(d, of, GENE_PASS, 0) == 2) say(out, "Maximum, then sum: two passes.");
}

static void say_loads(const Drawn *d, const char *of, char out[DRAW_WORDS])
{
    const int vec = gene_of(d, of, GENE_VEC, 1);
    if (vec == 1)
        say(out, "Scalar loads.");
    else
        say(out, "Vectors of %d elements.", vec);
}

static void say_flat(const Drawn *d, const char *of, const char *name, char out[DRAW_WORDS])
{
    const int vec = gene_of(d, of, GENE_VEC, 1), items = gene_of(d, of, GENE_ITEMS, 1),
              block = gene_of(d, of, GENE_BLOCK, 256);
    char each[40];
    snprintf(each, sizeof each, vec == 1 ? "Scalar loads" : "Vectors of %d elements", vec);
    if (items == 1)
        say(out, "%s%s, %d threads a block.", name, each, block);
    else
        say(out, "%s%s, %d a thread, %d threads a block.", name, each, items, block);
}

void draw_design(const Drawn *d, char out[DRAW_WORDS])
{
    *out = 0;
    say_launches(d, out);
    for (int i = 0; i < d->genes.n; i++) {
        const char *of = d->genes.point[i].of;
        char name[GENES_NAME + 2] = "";
        if (!begins_kernel(d, i)) continue;
        if (d->n_kernels > 1) snprintf(name, sizeof name, "%s: ", of);
        if (has_tiles(d, of)) {
            say_tiles(d, of, name, out);
        } else if (genes_find(&d->genes, of, GENE_ROW)) {
            say_rows(d, of, name, out);
            say_loads(d, of, out);
        } else {
            say_flat(d, of, name, out);
        }
    }
}
