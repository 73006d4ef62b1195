/* The tables are text in the program, and are read once. */
#include "eval/sim/library/library_table.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/embed.h"
#include "base/memory.h"

EMBED(library_times_h100, "eval/sim/library/h100.tsv")
EMBED(library_times_h200, "eval/sim/library/h200.tsv")

enum { H100, H200, TABLES };
static LibraryTable tables[TABLES] = {[H100] = {.device = "h100"}, [H200] = {.device = "h200"}};

/* The number of the name [*at, tab) in names; moves *at behind the tab. -1: none. */
static int word(const char **at, const char *const *names, int n)
{
    size_t len = strcspn(*at, "\t\n");
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == len && !strncmp(*at, names[i], len) && (*at)[len] == '\t') {
            *at += len + 1;
            return i;
        }
    return -1;
}

/* "gemm<tab>float32<tab>1x16x64x256x0<tab>5.73": returns -1 when the line is anything else. */
static int read_row(const char *at, LibraryRow *row)
{
    const char *ops[LIBRARY_OPS];
    for (int i = 0; i < LIBRARY_OPS; i++) ops[i] = library_op_name((LibraryOp)i);
    const char *const kinds[LIBRARY_KINDS] = {"float32", "float16", "bfloat16", "tf32"};
    int op = word(&at, ops, LIBRARY_OPS), kind = op < 0 ? -1 : word(&at, kinds, LIBRARY_KINDS);
    if (kind < 0) return -1;
    row->shape = (LibraryShape){.op = (LibraryOp)op,
                                .dtype = kind == LIBRARY_KIND_TF32 ? DTYPE_F32 : kind,
                                .tf32 = kind == LIBRARY_KIND_TF32};
    int n = library_op_sizes(row->shape.op);
    for (int i = 0; i < n; i++) {
        char *end;
        row->shape.size[i] = (double)strtol(at, &end, 10); /* strtod reads 0x1 as hexadecimal */
        if (end == at || *end != (i == n - 1 ? '\t' : 'x')) return -1;
        at = end + 1;
    }
    row->us = strtod(at, NULL);
    return row->us > 0 ? 0 : -1;
}

int library_kind(const LibraryShape *s)
{
    return s->tf32 ? LIBRARY_KIND_TF32 : s->dtype;
}

static int by_kind(const void *a, const void *b)
{
    const LibraryShape *x = &((const LibraryRow *)a)->shape, *y = &((const LibraryRow *)b)->shape;
    if (x->op != y->op) return x->op < y->op ? -1 : 1;
    if (library_kind(x) != library_kind(y)) return library_kind(x) - library_kind(y);
    return memcmp(x->size, y->size, sizeof x->size);
}

static void read_table(LibraryTable *t, const char *text)
{
    int cap = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (*line == '#') continue;
        memory_room(t->rows, t->n, cap, 1024);
        if (read_row(line, &t->rows[t->n])) {
            fprintf(stderr, "quern: the table of library times of %s has a bad line: %.*s\n",
                    t->device, (int)strcspn(line, "\n"), line);
            abort();
        }
        t->n++;
    }
    qsort(t->rows, (size_t)t->n, sizeof *t->rows, by_kind);
    for (int i = t->n - 1; i >= 0; i--) {
        const LibraryShape *s = &t->rows[i].shape;
        t->first[s->op][library_kind(s)] = i;
        t->count[s->op][library_kind(s)]++;
    }
}

static void read_tables(void)
{
    read_table(&tables[H100], library_times_h100);
    read_table(&tables[H200], library_times_h200);
}

const LibraryTable *library_table(const char *profile)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_tables);
    return &tables[!strcmp(profile, "h200") || !strcmp(profile, "h20") ? H200 : H100];
}
