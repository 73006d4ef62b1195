/* Text of plain kernels. Index expressions merge dimensions that lie one behind the other, so that a
 * contiguous tensor is indexed by `i` alone. Sizes are constants of the text. */
#include "ops/op_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"
#include "base/part.h"

EMBED(op_text_cu, "ops/op_text.cu")

enum { EACH_THREADS = 128, MAX_OPERAND = 40 };

const char *text_type(Dtype d)
{
    return d == DTYPE_F64 ? "double" : dtype_kind(d) == KIND_INTEGER ? "long long" : "float";
}

/* Its C++ type converts from and to float. */
static int is_narrow(Dtype d)
{
    return dtype_is_float(d) && dtype_size(d) < sizeof(float);
}

const char *text_cast(Dtype from, Dtype to)
{
    return from != to && (is_narrow(from) || is_narrow(to)) ? "(float)" : "";
}

void text_number(Buffer *b, double v)
{
    if (isnan(v))
        buffer_puts(b, "__longlong_as_double(0x7ff8000000000000LL)");
    else if (isinf(v))
        buffer_printf(b, "%s__longlong_as_double(0x7ff0000000000000LL)", v < 0 ? "-" : "");
    else
        buffer_printf(b, "%.17g", v);
}

int text_scratch(OpPlain *out, Dtype dtype, int64_t elements, Error *err)
{
    if (out->n_scratch == OP_MAX_SCRATCH)
        return error_set(err, ERROR_LIMIT, "more than %d scratch buffers", OP_MAX_SCRATCH);
    out->scratch[out->n_scratch].dtype = dtype;
    out->scratch[out->n_scratch].elements = elements > 0 ? elements : 1;
    return out->n_scratch++;
}

char *text_library(OpRoute *out, const char *library, size_t *size, Error *err)
{
    if (out->n == OP_MAX_CALLS) {
        error_set(err, ERROR_LIMIT, "more than %d library calls", OP_MAX_CALLS);
        return NULL;
    }
    OpLibraryCall *call = &out->call[out->n++];
    call->library = library;
    call->after = out->kernels->n;
    *size = sizeof call->arguments;
    return call->arguments;
}

void text_operand_named(TextOperands *o, const char *name)
{
    size_t n = strlen(name), len = strlen(o->text);
    for (const char *at = o->text; n && *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == n && !memcmp(at, name, n)) return;
        at += word;
    }
    if (n && len + n + 2 <= sizeof o->text)
        snprintf(o->text + len, sizeof o->text - len, "%s%s", len ? " " : "", name);
}

void text_operand(TextOperands *o, char kind, int index)
{
    char name[16];
    snprintf(name, sizeof name, "%c%d", kind, index);
    text_operand_named(o, name);
}

/* A size as an operand: 8 bytes in the argument, whatever the text makes of it. */
static int number_operand(OpPlain *out, OpLaunch *l, const char *name, Error *err)
{
    size_t len = strlen(l->arguments), n = strcspn(name, "=:");
    if (len + strlen(name + n) + 2 > sizeof l->arguments)
        return error_set(err, ERROR_LIMIT, "a launch has too many arguments");
    snprintf(l->arguments + len, sizeof l->arguments - len, "%s%s", len ? ", " : "", name + n + 1);
    buffer_printf(out->source, "%sconst long long %.*s%s", len ? ", " : "", (int)n, name,
                  name[n] == '=' ? "_" : "");
    return 0;
}

/* Appends one operand to the kernel's head and the launch's arguments. */
static int operand(OpPlain *out, OpLaunch *l, const char *name, Error *err)
{
    const OpCall *c = out->call;
    size_t len = strlen(l->arguments);
    int k = -1;
    char kind = 0;
    if (strpbrk(name, "=:")) return number_operand(out, l, name, err);
    if (len + 8 > sizeof l->arguments)
        return error_set(err, ERROR_LIMIT, "a launch has too many arguments");
    if (!strcmp(name, "t")) {
        snprintf(l->arguments + len, sizeof l->arguments - len, "%st", len ? ", " : "");
        buffer_printf(out->source, "%sint t", len ? ", " : "");
        return 0;
    }
    if (sscanf(name, "%c%d", &kind, &k) != 2 || k < 0 ||
        k >= (kind == 'x'   ? c->n_tensors
              : kind == 'y' ? c->n_results
              : kind == 't' ? out->n_scratch
                            : 0))
        return error_set(err, ERROR_INVALID, "a kernel has no operand \"%.20s\"", name);
    Dtype d = kind == 'x'   ? c->tensor[k].dtype
              : kind == 'y' ? c->result[k].dtype
                            : out->scratch[k].dtype;
    snprintf(l->arguments + len, sizeof l->arguments - len, "%s%c%d", len ? ", " : "", kind, k);
    buffer_printf(out->source, "%s%s%s *%c%d", len ? ", " : "", kind == 'x' ? "const " : "",
                  dtype_ctype(d), kind, k);
    return 0;
}

OpLaunch *text_begin(OpPlain *out, const TextHead *h, Error *err)
{
    const OpCall *c = out->call;
    const char *operands = h->operands;
    char name[MAX_OPERAND];
    int rc = 0;
    if (out->n >= OP_MAX_LAUNCHES || h->blocks > INT32_MAX) {
        error_set(err, ERROR_LIMIT, "more than %d launches, or %d blocks", OP_MAX_LAUNCHES,
                  INT32_MAX);
        return NULL;
    }
    out->launch = memory_grow(out->launch, (size_t)out->n + 1, sizeof *out->launch);
    OpLaunch *l = &out->launch[out->n];
    memset(l, 0, sizeof *l);
    *l = (OpLaunch){.grid = {h->blocks > 0 ? h->blocks : 1, 1, 1}, .block = {h->threads, 1, 1}};
    snprintf(l->kernel, sizeof l->kernel, "%.32s_%d", h->stem, out->n);
    buffer_printf(out->source, "extern \"C\" __global__ void %s(", l->kernel);
    for (int i = 0; !operands && i < c->n_tensors + c->n_results && !rc; i++) {
        int result = i >= c->n_tensors;
        snprintf(name, sizeof name, "%c%d", result ? 'y' : 'x', result ? i - c->n_tensors : i);
        rc = operand(out, l, name, err);
    }
    for (const char *at = operands; at && *at && !rc; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        rc = operand(out, l, name, err);
        at += n;
    }
    buffer_puts(out->source, ")\n{\n");
    for (const char *at = operands; at && (at = strchr(at, '=')); at++) {
        const char *from = at;
        while (from > operands && from[-1] != ' ') from--;
        buffer_printf(out->source, "    const int %.*s = (int)%.*s_;\n", (int)(at - from), from,
                      (int)(at - from), from);
    }
    return rc ? NULL : l;
}

int text_end(OpPlain *out, Error *err)
{
    buffer_puts(out->source, "}\n");
    if (out->source->full) return error_set(err, ERROR_LIMIT, "the kernels' text is too long");
    out->n++;
    return 0;
}

/* h without blocks and threads: of n elements, `each` of them a thread. */
static OpLaunch *elements(OpPlain *out, TextHead h, int64_t n, int each, Error *err)
{
    const int64_t block = EACH_THREADS * each;
    h.blocks = (n + block - 1) / block, h.threads = EACH_THREADS;
    OpLaunch *l = text_begin(out, &h, err);
    const char *type = n < 1 << 30 ? "int" : "long long";
    buffer_printf(out->source,
                  "  for (int k = 0; k < %d; k++) {\n"
                  "    const %s i = (%s)blockIdx.x * %d + k * %d + threadIdx.x;\n"
                  "    if (i >= %lld) return;\n",
                  each, type, type, EACH_THREADS * each, EACH_THREADS, (long long)n);
    return l;
}

OpLaunch *text_each(OpPlain *out, const char *stem, const char *operands, int64_t n, Error *err)
{
    return elements(out, (TextHead){.stem = stem, .operands = operands}, n, 4, err);
}

OpLaunch *text_walk(OpPlain *out, const char *stem, const char *operands, int64_t n, Error *err)
{
    const OpCall *c = out->call;
    int each = c->n_results && dtype_size(c->result[0].dtype) < 4 ? 4 : 2;
    return elements(out, (TextHead){.stem = stem, .operands = operands}, n, each, err);
}

int text_each_end(OpPlain *out, Error *err)
{
    buffer_puts(out->source, "  }\n");
    return text_end(out, err);
}

void op_steps(const OpTensor *t, int rank, int64_t *step)
{
    for (int d = 0; d < rank; d++) {
        int own = d - (rank - t->rank);
        step[d] = own < 0 || t->size[own] == 1 ? 0 : t->stride[own];
    }
}

int op_merge(int rank, const int64_t *size, const int64_t *step, int64_t *n, int64_t *s)
{
    int r = 0;
    for (int d = 0; d < rank; d++) {
        if (size[d] == 1) continue;
        if (r && s[r - 1] == step[d] * size[d]) {
            n[r - 1] *= size[d];
            s[r - 1] = step[d];
        } else {
            n[r] = size[d];
            s[r++] = step[d];
        }
    }
    return r;
}

int text_is_wide(const OpTensor *t)
{
    int64_t last = t->offset;
    for (int d = 0; d < t->rank; d++) last += (t->size[d] - 1) * llabs(t->stride[d]);
    return last >= INT32_MAX;
}

void text_strided(Buffer *b, const Strided *of, const char *i)
{
    int64_t n[OP_MAX_RANK], s[OP_MAX_RANK], inner = 1, offset = of->offset;
    int64_t last = offset < 0 ? -offset : offset;
    int r = op_merge(of->rank, of->size, of->step, n, s), terms = 0;
    for (int d = 0; d < r; d++) last += (n[d] - 1) * (s[d] < 0 ? -s[d] : s[d]);
    const char *wide = last >= INT32_MAX ? "LL" : "";
    for (int d = r - 1; d >= 0; inner *= n[d--]) {
        if (!s[d]) continue;
        buffer_puts(b, terms++ ? " + " : "");
        buffer_puts(b, i);
        if (inner != 1) buffer_printf(b, " / %lld", (long long)inner);
        if (d) buffer_printf(b, " %% %lld", (long long)n[d]);
        if (s[d] != 1 || *wide) buffer_printf(b, " * %lld%s", (long long)s[d], wide);
    }
    if (offset || !terms) buffer_printf(b, "%s%lld", terms ? " + " : "", (long long)offset);
}

void text_index(Buffer *b, const OpTensor *t, int rank, const int64_t *size, const char *i)
{
    int64_t step[OP_MAX_RANK];
    op_steps(t, rank, step);
    text_strided(b, &(Strided){t->offset, rank, size, step}, i);
}

void text_block_reduce(OpPlain *out)
{
    part_put(out->source, op_text_cu, "block_reduce");
}

int text_dense(OpPlain *out, const char *name, const OpTensor *t, char *place, size_t size,
               Error *err)
{
    char names[24];
    if (op_is_contiguous(t)) {
        snprintf(place, size, t->offset ? "%s + %lld" : "%s", name, (long long)t->offset);
        return 0;
    }
    int to = text_scratch(out, t->dtype, op_elements(t), err);
    if (to < 0) return -1;
    snprintf(place, size, "t%d", to);
    snprintf(names, sizeof names, "%s t%d", name, to);
    if (!text_walk(out, "copy", names, op_elements(t), err)) return -1;
    buffer_printf(out->source, "    t%d[i] = %s[", to, name);
    text_index(out->source, t, t->rank, t->size, "i");
    buffer_puts(out->source, "];\n");
    return text_each_end(out, err);
}
