/* Names and joins the kernels of op lines. A kernel is named after its operator and a digest of its
 * text. Each text stands in a namespace, so that helpers of two texts cannot collide; what it
 * defines for the preprocessor ends with it. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/memory.h"
#include "eval/candidate/plan_kernels.h"

enum { DIGITS = 12, MAX_TEXT = 1 << 20 };

static int is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* "conv2d" of "aten.conv2d.default". */
static void short_name(const Op *op, char *out, size_t size)
{
    const char *p = strncmp(op->name, "aten.", 5) ? op->name : op->name + 5;
    size_t n = 0;
    while (n + 1 < size && n < 40 && is_word(p[n])) n++;
    snprintf(out, size, "%.*s", (int)n, p);
}

/* Copies text with each of the plain kernels' names replaced by that of the PlanKernelText. */
static void rename_kernels(const OpPlain *plain, const PlanKernelText *t, const char *text,
                           size_t len, Buffer *out)
{
    for (size_t i = 0; i < len;) {
        size_t n = 0;
        int k = 0;
        while (i + n < len && is_word(text[i + n])) n++;
        while (n && k < plain->n &&
               (strlen(plain->launch[k].kernel) != n || memcmp(plain->launch[k].kernel, text + i, n)))
            k++;
        if (n && k < plain->n)
            buffer_puts(out, t->kernels[k]);
        else
            buffer_append(out, text + i, n ? n : 1);
        i += n ? n : 1;
    }
}

/* Splits the text into its #include lines and the rest, which ends with an #undef of each name that
 * it defines. */
static void split_lines(const OpPlain *plain, PlanKernelText *t)
{
    Buffer rest, includes, defined;
    const char *p = plain->source->data, *end = p + plain->source->len;
    buffer_init(&rest, 2 * MAX_TEXT);
    buffer_init(&includes, MAX_TEXT);
    buffer_init(&defined, MAX_TEXT);
    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p)), *next = eol ? eol + 1 : end, *q = p;
        while (q < next && (*q == ' ' || *q == '\t')) q++;
        if (next - q > 8 && !memcmp(q, "#include", 8)) {
            buffer_append(&includes, q, (size_t)(next - q));
        } else {
            if (next - q > 8 && !memcmp(q, "#define ", 8)) {
                int n = 0;
                for (q += 8; *q == ' ';) q++;
                while (is_word(q[n])) n++;
                buffer_printf(&defined, "#undef %.*s\n", n, q);
            }
            rename_kernels(plain, t, p, (size_t)(next - p), &rest);
        }
        p = next;
    }
    buffer_append(&rest, defined.data, defined.len);
    t->text = buffer_detach(&rest);
    t->includes = buffer_detach(&includes);
    buffer_release(&rest);
    buffer_release(&includes);
    buffer_release(&defined);
}

int plan_kernels_add(PlanOps *o, const Op *op, const OpPlain *plain)
{
    PlanKernelText t = {.n_kernels = plain->n};
    Digest digest;
    char hex[DIGEST_HEX], name[48];
    digest_of(plain->source->data, plain->source->len, &digest);
    digest_hex(&digest, hex);
    short_name(op, name, sizeof name);
    snprintf(t.name, sizeof t.name, "op_%.*s", DIGITS, hex);
    for (int i = 0; i < o->n_texts; i++)
        if (!strcmp(o->texts[i].name, t.name)) return i;
    for (int k = 0; k < plain->n; k++) {
        int same = 0; /* a kernel that is launched twice has one name */
        while (strcmp(plain->launch[same].kernel, plain->launch[k].kernel)) same++;
        if (same)
            snprintf(t.kernels[k], sizeof t.kernels[k], "%s_%.*s_%d", name, DIGITS, hex, same);
        else
            snprintf(t.kernels[k], sizeof t.kernels[k], "%s_%.*s", name, DIGITS, hex);
    }
    split_lines(plain, &t);
    o->texts = memory_grow(o->texts, (size_t)o->n_texts + 1, sizeof t);
    o->texts[o->n_texts] = t;
    return o->n_texts++;
}

/* The expression of element i's place in a tensor. */
static void print_place(Buffer *b, const OpTensor *t)
{
    int64_t inner = 1;
    buffer_puts(b, "0");
    for (int d = t->rank - 1; d >= 0; inner *= t->size[d--])
        if (t->size[d] > 1)
            buffer_printf(b, " + i / %lldLL %% %lldLL * %lldLL", (long long)inner,
                          (long long)t->size[d], (long long)t->stride[d]);
}

int plan_kernels_copy(const OpTensor *x, const OpTensor *y, OpPlain *out, Error *err)
{
    static const char *const types[] = {[1] = "unsigned char",
                                        [2] = "unsigned short",
                                        [4] = "unsigned",
                                        [8] = "unsigned long long"};
    const char *type = types[op_dtype_size(x->dtype)];
    long long n = op_elements(x);
    OpLaunch *l = &out->launch[out->n++];
    *l = (OpLaunch){.grid = {(n + 511) / 512, 1, 1}, .block = {128, 1, 1}};
    snprintf(l->kernel, sizeof l->kernel, "copy");
    snprintf(l->arguments, sizeof l->arguments, "x0, y0");
    buffer_printf(out->source,
                  "extern \"C\" __global__ void copy(const %s *x, %s *y)\n{\n"
                  "  for (int k = 0; k < 4; k++) {\n"
                  "    const long long i = blockIdx.x * 512LL + k * 128 + threadIdx.x;\n"
                  "    if (i >= %lldLL) return;\n    y[",
                  type, type, n);
    print_place(out->source, y);
    buffer_puts(out->source, "] = x[");
    print_place(out->source, x);
    buffer_puts(out->source, "];\n  }\n}\n");
    return out->source->full ? error_set(err, ERROR_LIMIT, "the copy's text is too long") : 0;
}

/* ---- the module's text ---- */

/* Adds the lines of `text` that *all does not have. */
static void add_lines(Buffer *all, const char *text)
{
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        char *line = memory_strndup(p, n);
        if (!strstr(all->data, line)) buffer_printf(all, "%s\n", line);
        free(line);
        p += n + (p[n] == '\n');
    }
}

static int is_first(const PlanOps *const *ops, int o, int t)
{
    for (int i = 0; i < o; i++)
        for (int k = 0; k < ops[i]->n_texts; k++)
            if (!strcmp(ops[i]->texts[k].name, ops[o]->texts[t].name)) return 0;
    return 1;
}

static void add_includes(const PlanOps *const *ops, int n, Buffer *out)
{
    Buffer all;
    buffer_init(&all, MAX_TEXT);
    for (int o = 0; o < n; o++)
        for (int i = 0; i < ops[o]->n_texts; i++) {
            const PlanKernelText *t = &ops[o]->texts[i];
            if (strstr(t->text, "__half")) add_lines(&all, "#include <cuda_fp16.h>");
            if (strstr(t->text, "__nv_bfloat16")) add_lines(&all, "#include <cuda_bf16.h>");
            add_lines(&all, t->includes);
        }
    buffer_append(out, all.data, all.len);
    buffer_release(&all);
}

int plan_ops_source(const PlanOps *const *ops, int n, Buffer *out, char ***names, int *n_names)
{
    add_includes(ops, n, out);
    for (int o = 0; o < n; o++)
        for (int i = 0; i < ops[o]->n_texts; i++) {
            const PlanKernelText *t = &ops[o]->texts[i];
            if (!is_first(ops, o, i)) continue;
            buffer_printf(out, "namespace %s {\n", t->name);
            buffer_append(out, t->text, strlen(t->text));
            buffer_puts(out, "}\n");
            for (int k = 0; k < t->n_kernels; k++) {
                int seen = 0;
                for (int j = 0; j < k; j++) seen |= !strcmp(t->kernels[j], t->kernels[k]);
                if (seen) continue;
                *names = memory_grow(*names, (size_t)*n_names + 1, sizeof **names);
                (*names)[(*n_names)++] = memory_printf("%s::%s", t->name, t->kernels[k]);
            }
        }
    return out->full ? -1 : 0;
}
