/* The lines of a graph that is being rewritten. */
#ifndef GENERATE_REWRITE_GRAPH_LINES_H
#define GENERATE_REWRITE_GRAPH_LINES_H

#include "generate/index/size.h"

typedef struct {
    const Task *task;
    SizeTable *sizes; /* of the task's own graph */
    const Graph *graph;
    const GraphBound *bound; /* at the timed sizes */
    int n, room, names;
    char **line;
    int at; /* the line of the graph that is replaced */
    int failed;
    Error *err;
} Lines;

/* A value of its own: out gets its name; the text has the operator and its arguments. */
void lines_make(Lines *l, char out[GRAPH_NAME], const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The first result of the replaced line. */
void lines_end(Lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void lines_copy(Lines *l, int line); /* a line of the graph as it is */
void lines_free(Lines *l);

/* The expression of a dimension of a value; "" with l->failed: there is none. */
void lines_size(Lines *l, int value, int dim, char out[SIZE_TEXT]);
/* The text of a call's argument; "": it has its default. */
void lines_argument(const Lines *l, int line, int arg, char out[GRAPH_NAME]);
const char *lines_name(const Lines *l, int value);

/* 1: the operator of a line has the name, whatever its overload: "mul" of aten.mul.Tensor. */
int lines_is(const Lines *l, int line, const char *name);
/* The numbers of an argument, the last one for all that are missing: equal at all bindings, or -1. */
int lines_numbers(const Lines *l, int line, const char *argument, int n, int64_t *out);

#endif
