/* Names and joins the kernels of op lines. A kernel's name ends with a digest of its text. Each text
 * stands in a namespace, so that helpers of two texts cannot collide; what it defines for the
 * preprocessor ends with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/memory.h"
#include "base/words.h"
#include "eval/candidate/plan_kernels.h"
#include "ops/op_text.h"

enum { DIGITS = 12, MAX_TEXT = 1 << 20 };

static void text_digest(const OpPlain *plain, char out[DIGITS + 1])
{
    Digest digest;
    char hex[DIGEST_HEX];
    digest_of(plain->source->data, plain->source->len, &digest);
    digest_hex(&digest, hex);
    snprintf(out, DIGITS + 1, "%s", hex);
}

void plan_kernels_name(const OpPlain *plain, const char *own, char out[PLAN_KERNEL_NAME])
{
    char digits[DIGITS + 1];
    text_digest(plain, digits);
    snprintf(out, PLAN_KERNEL_NAME, "%s_%s", own, digits);
}

/* Copies text with `_digits` behind each of the plain kernels' names. */
static void rename_kernels(const OpPlain *plain, const char *digits, const char *text, size_t len,
                           Buffer *out)
{
    const char *end = text + len;
    for (size_t n; text < end; text += n) {
        int k = 0;
        n = word_step(text, end);
        while (k < plain->n && !word_is(text, n, plain->launch[k].kernel)) k++;
        buffer_append(out, text, n);
        if (k < plain->n) buffer_printf(out, "_%s", digits);
    }
}

/* Splits the text into its #include lines and the rest, which ends with an #undef of each name that
 * it defines. */
static void split_lines(const OpPlain *plain, const char *digits, PlanKernelText *t)
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
                for (q += 8; *q == ' ';) q++;
                buffer_printf(&defined, "#undef %.*s\n", (int)word_length(q, next), q);
            }
            rename_kernels(plain, digits, p, (size_t)(next - p), &rest);
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

int plan_kernels_add(PlanOps *o, const OpPlain *plain)
{
    PlanKernelText t = {0};
    char digits[DIGITS + 1];
    text_digest(plain, digits);
    snprintf(t.name, sizeof t.name, "op_%s", digits);
    for (int i = 0; i < o->n_texts; i++)
        if (!strcmp(o->texts[i].name, t.name)) return i;
    t.kernels = memory_array((size_t)plain->n + 1, sizeof *t.kernels);
    for (int k = 0; k < plain->n; k++) {
        int seen = 0; /* a kernel that is launched twice */
        while (strcmp(plain->launch[seen].kernel, plain->launch[k].kernel)) seen++;
        if (seen == k) plan_kernels_name(plain, plain->launch[k].kernel, t.kernels[t.n_kernels++]);
    }
    split_lines(plain, digits, &t);
    o->texts = memory_grow(o->texts, (size_t)o->n_texts + 1, sizeof t);
    o->texts[o->n_texts] = t;
    return o->n_texts++;
}

int plan_kernels_copy(const OpTensor *x, const OpTensor *y, OpPlain *out, Error *err)
{
    static const char *const types[] = {[1] = "unsigned char",
                                        [2] = "unsigned short",
                                        [4] = "unsigned",
                                        [8] = "unsigned long long"};
    const char *type = types[dtype_size(x->dtype)];
    long long n = op_elements(x);
    out->launch = memory_grow(out->launch, (size_t)out->n + 1, sizeof *out->launch);
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
    text_index(out->source, y, y->rank, y->size, "i");
    buffer_puts(out->source, "] = x[");
    text_index(out->source, x, x->rank, x->size, "i");
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

int plan_ops_texts(const PlanOps *const *ops, int n, const PlanKernelText ***out)
{
    int all = 0, kept = 0;
    for (int o = 0; o < n; o++) all += ops[o]->n_texts;
    *out = memory_array((size_t)all + 1, sizeof **out);
    for (int o = 0; o < n; o++)
        for (int i = 0; i < ops[o]->n_texts; i++) {
            const PlanKernelText *t = &ops[o]->texts[i];
            int known = 0;
            while (known < kept && strcmp((*out)[known]->name, t->name)) known++;
            if (known == kept) (*out)[kept++] = t;
        }
    return kept;
}

static void add_includes(const PlanKernelText *const *texts, int n, Buffer *out)
{
    Buffer all;
    buffer_init(&all, MAX_TEXT);
    for (int i = 0; i < n; i++) {
        if (strstr(texts[i]->text, "__half")) add_lines(&all, "#include <cuda_fp16.h>");
        if (strstr(texts[i]->text, "__nv_bfloat16")) add_lines(&all, "#include <cuda_bf16.h>");
        if (strstr(texts[i]->text, "__nv_fp8")) add_lines(&all, "#include <cuda_fp8.h>");
        add_lines(&all, texts[i]->includes);
    }
    buffer_append(out, all.data, all.len);
    buffer_release(&all);
}

int plan_ops_source(const PlanKernelText *const *texts, int n, Buffer *out, char ***names,
                    int *n_names)
{
    add_includes(texts, n, out);
    for (int i = 0; i < n; i++) {
        const PlanKernelText *t = texts[i];
        buffer_printf(out, "namespace %s {\n", t->name);
        buffer_append(out, t->text, strlen(t->text));
        buffer_puts(out, "}\n");
        for (int k = 0; k < t->n_kernels; k++) {
            *names = memory_grow(*names, (size_t)*n_names + 1, sizeof **names);
            (*names)[(*n_names)++] = memory_printf("%s::%s", t->name, t->kernels[k]);
        }
    }
    return out->full ? -1 : 0;
}
