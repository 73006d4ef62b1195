/* Shapes are read where the words are, and become sizes where the axes are known. */
#include "tasks/derive/shapes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/words.h"

static int refuse(const char *word, Error *err)
{
    return error_set(err, ERROR_INVALID,
                     "expected shapes such as rows=1 or rows=64,cols=512:3, found \"%.*s\"",
                     (int)strcspn(word, " \t"), word);
}

/* One word; *p moves behind it. */
static int read_shape(const char **p, DraftShape *s, Error *err)
{
    const char *word = *p, *at = word;
    char *end;
    s->weight = 1;
    for (;;) {
        DraftSize *size = &s->sizes[s->n];
        size->name = at;
        size->len = word_name_length(at, at + strcspn(at, " \t"));
        if (!size->len || at[size->len] != '=' || s->n == TASK_MAX_AXES) return refuse(word, err);
        at += size->len + 1;
        if (!isdigit((unsigned char)*at)) return refuse(word, err);
        size->size = strtoll(at, &end, 10);
        if (size->size < 1 || size->size >= INT32_MAX) return refuse(word, err);
        s->n++;
        at = end;
        if (*at != ',') break;
        at++;
    }
    if (*at == ':') {
        s->weight = strtod(at + 1, &end);
        if (end == at + 1 || !(s->weight > 0 && s->weight <= 1e6)) return refuse(word, err);
        at = end;
    }
    *p = at;
    return *at && !isspace((unsigned char)*at) ? refuse(word, err) : 0;
}

int shapes_read(const char *text, DraftShape **out, int *n, Error *err)
{
    *out = memory_array(TASK_MAX_TIMED, sizeof **out);
    *n = 0;
    for (;;) {
        while (isspace((unsigned char)*text)) text++;
        if (!*text) return 0;
        if (*n == TASK_MAX_TIMED)
            return error_set(err, ERROR_LIMIT, "more than %d shapes", TASK_MAX_TIMED);
        if (read_shape(&text, &(*out)[(*n)++], err)) return -1;
    }
}

/* -1: there is none. */
static int axis_of(const Derivation *v, const DraftSize *size)
{
    for (int i = 0; i < v->draft.n_axes; i++)
        if (word_is(size->name, size->len, v->axes[i].name)) return i;
    return -1;
}

void shapes_allow_one(Derivation *v)
{
    enum { LEAST_FREE = 2 };
    for (int i = 0; i < v->draft.n_shapes; i++)
        for (int k = 0; k < v->draft.shapes[i].n; k++) {
            const DraftSize *size = &v->draft.shapes[i].sizes[k];
            int axis = axis_of(v, size);
            if (axis >= 0 && size->size == 1 && v->axes[axis].low == LEAST_FREE)
                v->axes[axis].low = 1, v->axes[axis].one = 0;
        }
}

static int unknown_axis(const Derivation *v, const DraftSize *size, Error *err)
{
    Buffer b;
    buffer_init(&b, 1024);
    for (int i = 0; i < v->draft.n_axes; i++)
        buffer_printf(&b, "%s%s=%lld", i ? ", " : "", v->axes[i].name, (long long)v->axes[i].size);
    error_set(err, ERROR_INVALID, "no axis is named %.*s; the module's are %s", (int)size->len,
              size->name, b.len ? b.data : "none");
    buffer_release(&b);
    return -1;
}

int shapes_sizes(const Derivation *v, int i, Sizes *out, Error *err)
{
    const DraftShape *s = &v->draft.shapes[i];
    GraphBound *b;
    *out = derivation_own(v);
    for (int k = 0; k < s->n; k++) {
        int axis = axis_of(v, &s->sizes[k]);
        if (axis < 0) return unknown_axis(v, &s->sizes[k], err);
        out->at[axis] = s->sizes[k].size;
    }
    if (derivation_bind(v, out, &b, err))
        return error_prefix(err, "shape %d, %.*s", i + 1, (int)strcspn(s->sizes[0].name, " \t"),
                            s->sizes[0].name);
    graph_bound_free(b);
    return 0;
}
