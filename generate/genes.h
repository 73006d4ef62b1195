/* Genes: what a schedule decides for a kernel, such as the elements of a vector. Where the generator has a
 * choice it asks genes_choose, which answers by the schedule's lines and keeps each choice as a point: from
 * its points a schedule is written, and the search finds its moves. A line of a source, which the judge
 * skips:
 *
 *   //@ schedule y vec=8 lanes=256 keep=registers
 *
 * names what a kernel writes, or a value that may be stored or split. A gene that a line leaves out has its
 * default. */
#ifndef GENERATE_GENES_H
#define GENERATE_GENES_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/* A row of the table in genes.c each. */
typedef enum {
    GENE_STORE, /* the value lies in memory, and is computed once */
    GENE_SPLIT, /* so many blocks fold a part of a row each */
    GENE_JOIN,  /* a kernel that reads the same computes it, too */
    GENE_VEC,
    GENE_LANES,
    GENE_KEEP,
    GENE_BLOCK,
    GENE_ITEMS,
    GENE_ROUTE, /* of a product */
    GENE_TILE,
    GENE_FUSE, /* attention is one kernel */
    GENE_GROUPS,
    GENE_STAGES,
    GENE_LAYERS, /* of recurrent layers: kernels of clusters, or of teams, compute them */
    GENE_ROW,    /* this one and those after it: of plain kernels (plain.h) */
    GENE_REDUCE,
    GENE_PASS,
    GENE_LESS,
    GENE_SIDE,
    GENE_COPY,
    GENE_OWN,
    GENES
} Gene;

enum { GENES_NAME = 64, GENES_VALUES = 12, GENES_POINTS = 4096 };
enum { KEEP_NONE, KEEP_REGISTERS };               /* values of GENE_KEEP */
enum { ROUTE_LIBRARY, ROUTE_TENSOR, ROUTE_ROWS }; /* of GENE_ROUTE */
enum { ROW_THREAD, ROW_WARP, ROW_BLOCK };         /* of GENE_ROW: who folds a row */
enum { REDUCE_BY_SHUFFLE, REDUCE_BY_TREE };       /* of GENE_REDUCE */
enum { COPY_LOAD, COPY_ASYNC, COPY_TENSOR };      /* of GENE_COPY */

/* A choice. of: the name of what the kernel writes, or of the value. */
typedef struct {
    char of[GENES_NAME];
    Gene gene;
    int value, by_default;
    int least, most; /* values of the table that are allowed here */
    int step;        /* above 0: and these are its multiples */
    int used;        /* of a given one: the generator has asked for it */
} GenePoint;

typedef struct {
    int n_given, n;
    GenePoint *given; /* of the lines */
    GenePoint *point; /* in the order of the first questions */
} Genes;

typedef struct {
    const char *name;
    int n, value[GENES_VALUES]; /* those that the search tries, in rising order */
    int any;                    /* a line may have any number between the first and the last */
    const char *const *word;    /* of each value; NULL: they are numbers */
    const char *help;
} GeneRow;
const GeneRow *gene_row(Gene g);
void gene_text(const GenePoint *p,
               char out[GENES_NAME]); /* "route=tensor", as a schedule line has it */

/* Reads the schedule lines of a text, and skips all others. A `;` ends a line, too. INVALID says what is no
 * gene or no value, and where. */
int genes_read(Genes *g, const char *text, size_t len, Error *err);
/* Gives a gene of `of` a value in place of one that is there. */
void genes_give(Genes *g, const char *of, Gene gene, int value);
void genes_give_all(Genes *to, const Genes *from); /* what another one was given */
/* A value between least and most, a multiple of step; by_default is one of them. */
int genes_allow(const GenePoint *p, int value);
int genes_choose(Genes *g, const char *of, const GenePoint *choice);
/* A given gene that nothing has asked for, or whose value is not allowed there; NULL: there is none. */
const GenePoint *genes_unused(const Genes *g);
const GenePoint *genes_find(const Genes *g, const char *of, Gene gene); /* a point; NULL: none */
/* Appends a line for each name that has points. */
void genes_write(const Genes *g, Buffer *out);
void genes_free(Genes *g);

#endif
