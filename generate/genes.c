/* The table of genes, and the lines of a schedule. */
#include "generate/genes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"

static const char *const keep_words[] = {"none", "registers"};
static const char *const route_words[] = {"library", "tensor", "rows"};
static const char *const layer_words[] = {"library", "clusters", "teams"};
static const char *const row_words[] = {"thread", "warp", "block"};
static const char *const copy_words[] = {"load", "async", "tensor"};
static const char *const reduce_words[] = {"shuffle", "tree"};
static const char *const yes_words[] = {"no", "yes"};

// clang-format off
static const GeneRow rows[GENES] = {
    [GENE_STORE] = {"store", 2, {0, 1}, 0, yes_words, "the value lies in memory and is computed once"},
    [GENE_SPLIT] = {"split", 9, {1, 2, 4, 8, 16, 32, 64, 128, 512}, 1, NULL, "blocks that share a row"},
    [GENE_JOIN] = {"join", 2, {0, 1}, 0, yes_words, "a kernel that reads the same computes it, too"},
    [GENE_VEC] = {"vec", 4, {1, 2, 4, 8}, 0, NULL, "neighbouring elements of a thread"},
    [GENE_LANES] = {"lanes", 11, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}, 0, NULL, "threads of a row"},
    [GENE_KEEP] = {"keep", 2, {KEEP_NONE, KEEP_REGISTERS}, 0, keep_words, "where a row stays between passes"},
    [GENE_BLOCK] = {"block", 5, {64, 128, 256, 512, 1024}, 0, NULL, "threads of a block"},
    [GENE_ITEMS] = {"items", 4, {1, 2, 4, 8}, 1, NULL, "vectors of a thread, one after another"},
    [GENE_ROUTE] = {"route", 3, {ROUTE_LIBRARY, ROUTE_TENSOR, ROUTE_ROWS}, 0, route_words, "of a product"},
    [GENE_TILE] = {"tile", 8, {64, 80, 96, 112, 128, 160, 192, 256}, 0, NULL, "columns of a product's tile"},
    [GENE_STAGES] = {"stages", 7, {1, 2, 3, 4, 5, 6, 8}, 0, NULL, "tiles of factors that are fetched ahead"},
    [GENE_FUSE] = {"fuse", 2, {0, 1}, 0, yes_words, "attention is one kernel"},
    [GENE_GROUPS] = {"groups", 2, {1, 2}, 0, NULL, "tiles of queries of a block"},
    [GENE_LAYERS] = {"layers", 3, {0, 1, 2}, 0, layer_words, "of recurrent layers"},
    [GENE_ROW] = {"row", 3, {ROW_THREAD, ROW_WARP, ROW_BLOCK}, 0, row_words, "who folds a row"},
    [GENE_REDUCE] = {"reduce", 2, {REDUCE_BY_SHUFFLE, REDUCE_BY_TREE}, 0, reduce_words, "how a block folds"},
    [GENE_PASS] = {"pass", 2, {1, 2}, 0, NULL, "passes for the largest and the sum of exponentials"},
    [GENE_COPY] = {"copy", 3, {COPY_LOAD, COPY_ASYNC, COPY_TENSOR}, 0, copy_words, "how a tile is copied"},
    [GENE_OWN] = {"own", 2, {0, 1}, 0, yes_words, "a product is the kernel's own sum"},
    [GENE_LESS] = {"less", 2, {0, 1}, 0, yes_words, "what a rewrite makes needless is left out"},
    [GENE_SIDE] = {"side", 4, {1, 8, 16, 32}, 0, NULL, "side of a tile"},
};
// clang-format on

const GeneRow *gene_row(Gene g)
{
    return &rows[g];
}

/* ---- reading ---- */

static int same(const GenePoint *p, const char *of, Gene gene)
{
    return p->gene == gene && !strcmp(p->of, of);
}

void genes_give(Genes *g, const char *of, Gene gene, int value)
{
    int at = 0;
    while (at < g->n_given && !same(&g->given[at], of, gene)) at++;
    if (at == g->n_given) {
        g->given = memory_grow(g->given, (size_t)g->n_given + 1, sizeof *g->given);
        g->given[g->n_given++] = (GenePoint){.gene = gene};
        snprintf(g->given[at].of, GENES_NAME, "%s", of);
    }
    g->given[at].value = value;
}

void genes_give_all(Genes *to, const Genes *from)
{
    for (int i = 0; i < from->n_given; i++)
        genes_give(to, from->given[i].of, from->given[i].gene, from->given[i].value);
}

static int is_value(const GeneRow *r, int value)
{
    if (r->any) return value >= r->value[0] && value <= r->value[r->n - 1];
    for (int i = 0; i < r->n; i++)
        if (r->value[i] == value) return 1;
    return 0;
}

/* The value that a word is; -1: none. */
static int value_of(const GeneRow *r, const char *word)
{
    char *end;
    for (int i = 0; i < r->n && r->word; i++)
        if (!strcmp(r->word[i], word)) return r->value[i];
    if (r->word || !isdigit((unsigned char)*word)) return -1;
    long v = strtol(word, &end, 10);
    return !*end && v <= 1 << 20 && is_value(r, (int)v) ? (int)v : -1;
}

static int bad_value(const GeneRow *r, const char *word, Error *err)
{
    char all[200] = "";
    for (int i = 0; i < r->n; i++) {
        size_t at = strlen(all);
        if (r->word)
            snprintf(all + at, sizeof all - at, " %s", r->word[i]);
        else
            snprintf(all + at, sizeof all - at, " %d", r->value[i]);
    }
    return error_set(err, ERROR_INVALID, "schedule: %s is one of%s, found \"%.40s\"", r->name, all,
                     word);
}

static int read_gene(Genes *g, const char *of, char *word, Error *err)
{
    char *equals = strchr(word, '=');
    if (!equals)
        return error_set(err, ERROR_INVALID, "schedule of %s: expected gene=value, found \"%.60s\"",
                         of, word);
    *equals = 0;
    for (int i = 0; i < GENES; i++) {
        if (strcmp(rows[i].name, word)) continue;
        int value = value_of(&rows[i], equals + 1);
        if (value < 0) return bad_value(&rows[i], equals + 1, err);
        genes_give(g, of, (Gene)i, value);
        return 0;
    }
    return error_set(err, ERROR_INVALID, "schedule of %s: no gene is named \"%.60s\"", of, word);
}

/* line: behind `//@ schedule`; it is changed. */
static int read_line(Genes *g, char *line, Error *err)
{
    char *rest = NULL, *of = strtok_r(line, " \t\r", &rest), *word;
    if (!of || strchr(of, '=') || strlen(of) >= GENES_NAME)
        return error_set(err, ERROR_INVALID,
                         "expected //@ schedule NAME gene=value, found \"%.60s\"", of ? of : "");
    while ((word = strtok_r(NULL, " \t\r", &rest)))
        if (read_gene(g, of, word, err)) return -1;
    return 0;
}

int genes_read(Genes *g, const char *text, size_t len, Error *err)
{
    static const char mark[] = "//@";
    char *copy = memory_strndup(text, len), *rest = NULL;
    int rc = 0;
    for (char *line = strtok_r(copy, "\n;", &rest); line && !rc;
         line = strtok_r(NULL, "\n;", &rest)) {
        while (isspace((unsigned char)*line)) line++;
        if (strncmp(line, mark, sizeof mark - 1)) continue;
        line += sizeof mark - 1;
        while (*line == ' ' || *line == '\t') line++;
        size_t n = word_name_length(line, line + strlen(line));
        if (word_is(line, n, "schedule")) rc = read_line(g, line + n, err);
    }
    free(copy);
    return rc;
}

/* ---- choices ---- */

int genes_allow(const GenePoint *p, int value)
{
    return value >= p->least && value <= p->most && (!p->step || value % p->step == 0);
}

static int given(Genes *g, const char *of, const GenePoint *choice)
{
    for (int i = 0; i < g->n_given; i++) {
        GenePoint *p = &g->given[i];
        if (!same(p, of, choice->gene) || !genes_allow(choice, p->value)) continue;
        p->used = 1;
        return p->value;
    }
    return choice->by_default;
}

int genes_choose(Genes *g, const char *of, const GenePoint *choice)
{
    GenePoint p = *choice;
    if (!g) return choice->by_default;
    snprintf(p.of, sizeof p.of, "%s", of);
    p.value = given(g, of, choice);
    for (int i = 0; i < g->n; i++) {
        if (!same(&g->point[i], of, p.gene)) continue;
        g->point[i] = p;
        return p.value;
    }
    if (g->n == GENES_POINTS) return p.by_default;
    g->point = memory_grow(g->point, (size_t)g->n + 1, sizeof p);
    g->point[g->n++] = p;
    return p.value;
}

const GenePoint *genes_unused(const Genes *g)
{
    for (int i = 0; i < g->n_given; i++)
        if (!g->given[i].used) return &g->given[i];
    return NULL;
}

const GenePoint *genes_find(const Genes *g, const char *of, Gene gene)
{
    for (int i = 0; i < g->n; i++)
        if (same(&g->point[i], of, gene)) return &g->point[i];
    return NULL;
}

/* ---- writing ---- */

void gene_text(const GenePoint *p, char out[GENES_NAME])
{
    const GeneRow *r = &rows[p->gene];
    snprintf(out, GENES_NAME, "%s=%d", r->name, p->value);
    for (int i = 0; i < r->n && r->word; i++)
        if (r->value[i] == p->value) snprintf(out, GENES_NAME, "%s=%s", r->name, r->word[i]);
}

void genes_write(const Genes *g, Buffer *out)
{
    char text[GENES_NAME];
    for (int i = 0; i < g->n; i++) {
        int begun = 0;
        for (int k = 0; k < i && !begun; k++) begun = !strcmp(g->point[k].of, g->point[i].of);
        if (begun) continue;
        buffer_printf(out, "//@ schedule %s", g->point[i].of);
        for (int k = i; k < g->n; k++)
            if (!strcmp(g->point[k].of, g->point[i].of)) {
                gene_text(&g->point[k], text);
                buffer_printf(out, " %s", text);
            }
        buffer_puts(out, "\n");
    }
}

void genes_free(Genes *g)
{
    free(g->given);
    free(g->point);
    *g = (Genes){0};
}
