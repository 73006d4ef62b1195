/* The table is text in the program, a line a shape, and is read once. */
#include "eval/sim/library/library_table.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/embed.h"
#include "base/memory.h"

EMBED(library_times, "eval/sim/library/times.tsv")

enum { H100, H200, TABLES };
static LibraryTable tables[TABLES] = {[H100] = {.device = "h100"}, [H200] = {.device = "h200"}};

/* The operation of the name [*at, tab); moves *at behind the tab. -1: none. */
static int read_op(const char **at)
{
    size_t len = strcspn(*at, "\t\n");
    for (int i = 0; i < LIBRARY_OPS; i++) {
        const char *name = library_op_name((LibraryOp)i);
        if (strlen(name) == len && !strncmp(*at, name, len) && (*at)[len] == '\t') {
            *at += len + 1;
            return i;
        }
    }
    return -1;
}

static int read_shape(const char **at, LibraryShape *s)
{
    int op = read_op(at);
    if (op < 0) return -1;
    *s = (LibraryShape){.op = (LibraryOp)op};
    int n = library_op_sizes(s->op);
    for (int i = 0; i < n; i++) {
        char *end;
        s->size[i] = (double)strtol(*at, &end, 10); /* strtod reads 0x1 as hexadecimal */
        if (end == *at || *end != (i == n - 1 ? '\t' : 'x')) return -1;
        *at = end + 1;
    }
    return 0;
}

static void add_row(LibraryTable *t, const LibraryShape *s, int kind, double us)
{
    LibraryRow *row;
    memory_room(t->rows, t->n, t->cap, 1024);
    row = &t->rows[t->n++];
    *row = (LibraryRow){.shape = *s, .us = us};
    row->shape.tf32 = kind == LIBRARY_KIND_TF32;
    row->shape.dtype = row->shape.tf32 ? DTYPE_F32 : kind;
}

/* "gemm<tab>1x16x64x256x0", then behind tabs the times of each table's kinds, or "-". Returns -1 when the
 * line is anything else. */
static int read_line(const char *at)
{
    LibraryShape s;
    if (read_shape(&at, &s)) return -1;
    for (int i = 0; i < TABLES * LIBRARY_KINDS; i++) {
        char *end = (char *)at + 1;
        double us = *at == '-' ? 0 : strtod(at, &end);
        if (*at != '-' && us <= 0) return -1;
        if (*end != (i == TABLES * LIBRARY_KINDS - 1 ? '\n' : '\t')) return -1;
        if (us > 0) add_row(&tables[i / LIBRARY_KINDS], &s, i % LIBRARY_KINDS, us);
        at = end + 1;
    }
    return 0;
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

static void sort_table(LibraryTable *t)
{
    qsort(t->rows, (size_t)t->n, sizeof *t->rows, by_kind);
    for (int i = t->n - 1; i >= 0; i--) {
        const LibraryShape *s = &t->rows[i].shape;
        t->first[s->op][library_kind(s)] = i;
        t->count[s->op][library_kind(s)]++;
    }
}

static void read_tables(void)
{
    for (const char *line = library_times; *line;
         line += strcspn(line, "\n"), line += *line == '\n')
        if (*line != '#' && read_line(line)) {
            fprintf(stderr, "quern: the table of library times has a bad line: %.*s\n",
                    (int)strcspn(line, "\n"), line);
            abort();
        }
    for (int i = 0; i < TABLES; i++) sort_table(&tables[i]);
}

const LibraryTable *library_table(const char *profile)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_tables);
    return &tables[!strcmp(profile, "h200") || !strcmp(profile, "h20") ? H200 : H100];
}
