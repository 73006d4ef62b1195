/* Lines of a graph: copies, and new ones between them. */
#include "generate/rewrite/graph_lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void add(Lines *l, char *text)
{
    memory_room(l->line, l->n, l->room, 64);
    l->line[l->n++] = text;
}

const char *lines_name(const Lines *l, int value)
{
    return l->graph->name[value];
}

static int is_taken(const Lines *l, const char *name)
{
    for (int i = 0; i < l->task->n_axes; i++)
        if (!strcmp(name, l->task->axis_name[i])) return 1;
    return graph_find(l->graph, name, strlen(name)) >= 0;
}

void lines_make(Lines *l, char out[GRAPH_NAME], const char *fmt, ...)
{
    const char *own = lines_name(l, l->graph->first[l->at]);
    va_list ap;
    do snprintf(out, GRAPH_NAME, "%.44s_of_%d", own, ++l->names);
    while (is_taken(l, out));
    va_start(ap, fmt);
    char *text = memory_vprintf(fmt, ap);
    va_end(ap);
    add(l, memory_printf("%s = %s", out, text));
    free(text);
}

void lines_end(Lines *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = memory_vprintf(fmt, ap);
    va_end(ap);
    add(l, memory_printf("%s = %s", lines_name(l, l->graph->first[l->at]), text));
    free(text);
}

void lines_copy(Lines *l, int line)
{
    add(l, memory_strdup(l->graph->text[line]));
}

void lines_free(Lines *l)
{
    for (int i = 0; i < l->n; i++) free(l->line[i]);
    free(l->line);
    l->line = NULL;
    l->n = l->room = 0;
}

void lines_size(Lines *l, int value, int dim, char out[SIZE_TEXT])
{
    Size s;
    for (int k = 0; k < SIZE_BINDINGS; k++)
        s.at[k] = l->sizes->bound[k]->values[value].tensor.size[dim];
    if (size_text(l->sizes, s, out, l->err)) l->failed = 1, out[0] = 0;
}

void lines_argument(const Lines *l, int line, int arg, char out[GRAPH_NAME])
{
    const OpLine *o = &l->graph->line[line];
    out[0] = 0;
    for (int i = 0; i < o->n_args; i++)
        if (!o->keyword[i].len && i == arg)
            snprintf(out, GRAPH_NAME, "%.*s", (int)o->value[i].len, o->value[i].p);
}

int lines_is(const Lines *l, int line, const char *name)
{
    const char *own = l->graph->line[line].op->name + strlen("aten.");
    size_t n = strlen(name);
    return !strncmp(own, name, n) && own[n] == '.';
}

int lines_numbers(const Lines *l, int line, const char *argument, int n, int64_t *out)
{
    const int arg = op_argument(l->graph->line[line].op, argument);
    if (arg < 0) return -1;
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        const OpValue *v = &l->sizes->bound[k]->calls[line].call.arg[arg];
        if (v->n < 1 && v->kind == OP_INTS) return -1;
        for (int i = 0; i < n; i++) {
            int64_t own = v->integer[v->kind == OP_INTS && i < v->n ? i : 0];
            if (k && own != out[i]) return -1;
            out[i] = own;
        }
    }
    return 0;
}
