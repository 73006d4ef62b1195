/* The mistakes of plain kernels, and what their text shares with that of other kernels. */
#include "generate/plain.h"

#include <math.h>
#include <string.h>

#include "generate/writer.h"

/* ---- mistakes ---- */

const char *slip_name(Slip s)
{
    static const char *const names[SLIPS] = {"none",           "missing_guard",  "missing_barrier",
                                             "missing_wait",   "swapped_axes",   "wrong_identity",
                                             "stale_partial",  "wrong_constant", "off_by_one",
                                             "too_few_blocks", "undeclared_name"};
    return s < SLIPS ? names[s] : NULL;
}

int plain_slips(Plain *p, Slip s)
{
    return p && p->places[s]++ == p->at && p->slip == s;
}

int plain_slips_at(Plain *p, double number)
{
    static const double least = 0.05; /* which matters where it is wrong */
    return fabs(number) >= least && !isinf(number) && plain_slips(p, SLIP_CONSTANT);
}

/* ---- text ---- */

int plain_is_one(const Node *x, const char *word, size_t len)
{
    return len == 2 && *word == 'p' && word[1] >= '0' && word[1] <= '9' &&
           x->p[word[1] - '0'] == 1 && !strncmp(word + len, " * ", 3);
}

size_t plain_nothing(const Node *x, const char *at)
{
    if (at[0] != ' ' || !at[1] || !strchr("*/+-", at[1]) || at[2] != ' ' || at[3] != 'p' ||
        at[4] < '0' || at[4] > '9' || (at[5] && !strchr(" ),", at[5])))
        return 0;
    const double v = x->p[at[4] - '0'];
    if (strchr("*/", at[1])) return v == 1 ? 5 : 0;
    return v == 0 && !(at[5] == ' ' && strchr("*/", at[6])) ? 5 : 0;
}

/* ---- parameters ---- */

/* The place of a size among the task's axes; other sizes come behind them. */
static int axis_place(const Kernel *k, int size)
{
    const Task *t = k->nodes->sizes->task;
    int at = 0;
    while (at < t->n_axes && strcmp(t->axis_name[at], k->size[size].name) != 0) at++;
    return at;
}

static int is_before(const Kernel *k, int a, int b)
{
    if (k->tensor[a].written != k->tensor[b].written) return k->tensor[b].written;
    return k->tensor[a].node < k->tensor[b].node;
}

void plain_order(Kernel *k)
{
    for (int i = 1; i < k->n_tensors; i++)
        for (int j = i; j > 0 && is_before(k, j, j - 1); j--) {
            const KernelTensor own = k->tensor[j];
            k->tensor[j] = k->tensor[j - 1];
            k->tensor[j - 1] = own;
        }
    for (int i = 1; i < k->n_sizes; i++)
        for (int j = i; j > 0 && axis_place(k, j) < axis_place(k, j - 1); j--) {
            const KernelSize own = k->size[j];
            k->size[j] = k->size[j - 1];
            k->size[j - 1] = own;
        }
}

int writer_origin(const Writer *w, int step)
{
    const Node *x = node_of(w, step);
    const int of = w->k->step[step].arg[0];
    if (!w->k->nodes->plain || x->kind != NODE_POINT || of < 0 || strcmp(x->text, "a") ||
        w->k->step[step].place || strcmp(writer_type(w, of), writer_type(w, step)))
        return step;
    return writer_origin(w, of);
}

/* Exchanges the coefficients of the first two axes of an index. */
static void swap_axes(Index *at)
{
    int first = -1;
    for (int i = 0; i < INDEX_AXES; i++) {
        if (size_is(at->by[i], 0)) continue;
        if (first >= 0) {
            const Size by = at->by[i];
            at->by[i] = at->by[first];
            at->by[first] = by;
            return;
        }
        first = i;
    }
}

static int count_terms(const Index *at)
{
    int n = 0;
    for (int i = 0; i < INDEX_AXES; i++) n += !size_is(at->by[i], 0);
    return n;
}

Index plain_index(Plain *p, const Index *at)
{
    Index own = *at;
    if (count_terms(at) > 1 && plain_slips(p, SLIP_AXES)) swap_axes(&own);
    return own;
}

void plain_source(const Writer *w, Buffer *to, const PlainParts *p)
{
    const char *head =
        *p->guard ? "template <int V>\n__device__ void body_@" : "__global__ void kernel_@";
    buffer_printf(to, "%s(%s)\n{\n", head, p->types);
    if (!*p->guard && w->vec > 1) buffer_printf(to, "    const int V = %d;\n", w->vec);
    buffer_printf(to, "%s}\n\n", w->body.data);
    if (*p->guard)
        buffer_printf(to,
                      "__global__ void kernel_@(%s)\n{\n    if ((%s) %% %d == 0) body_@<%d>(%s);\n"
                      "    else body_@<1>(%s);\n}\n\n",
                      p->types, p->guard, w->vec, w->vec, p->names, p->names);
}

void plain_headers(const char *source, int is_plain, Buffer *to)
{
    if (!is_plain || strstr(source, "__nv_bfloat16")) buffer_puts(to, "#include <cuda_bf16.h>\n");
    if (!is_plain || strstr(source, "half")) buffer_puts(to, "#include <cuda_fp16.h>\n");
    if (strstr(source, "CUtensorMap")) buffer_puts(to, "#include <cuda.h>\n");
    if (strstr(source, "__nv_fp8")) buffer_puts(to, "#include <cuda_fp8.h>\n");
    if (is_plain && strstr(source, "__pipeline_")) buffer_puts(to, "#include <cuda_pipeline.h>\n");
}
