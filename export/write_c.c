/* Writes a package as C: NAME.h and NAME.c, which need the CUDA driver API and nothing else. The plan's
 * expressions are C already; names of functions get the package's prefix, and literals are 64-bit,
 * since plans compute in 64 bits. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/embed.h"
#include "base/part.h"
#include "base/words.h"
#include "export/package.h"

EMBED(write_c_in, "export/write_c.c.in")

static const size_t text_max = (size_t)1 << 30;

/* Names that are taken in the functions that are written. A task's name that is one of them, or a
 * word of C, gets a _ at its end. */
static const char *const taken[] = {
    "auto",   "break",    "case",      "char",     "const",    "continue", "default",  "do",
    "double", "else",     "enum",      "extern",   "float",    "for",      "goto",     "if",
    "inline", "int",      "long",      "register", "restrict", "return",   "short",    "signed",
    "sizeof", "static",   "struct",    "switch",   "typedef",  "union",    "unsigned", "void",
    "while",  "volatile", "workspace", "stream",   "kernels",  "params",   "status",   "dynamic"};

static void put_name(Buffer *b, const char *name, size_t len)
{
    buffer_append(b, name, len);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (word_is(name, len, taken[i])) buffer_puts(b, "_");
}

static void put_expression(Buffer *b, const Package *p, PlanText t)
{
    for (size_t i = 0; i < t.len;) {
        int word = word_begins_name(t.p[i]);
        size_t n = word_step(t.p + i, t.p + t.len), after = i + n;
        while (after < t.len && isspace((unsigned char)t.p[after])) after++;
        if (word && after < t.len && t.p[after] == '(')
            buffer_printf(b, "%s_%.*s", p->name, (int)n, t.p + i);
        else if (word)
            put_name(b, t.p + i, n);
        else
            buffer_append(b, t.p + i, n);
        if (isdigit((unsigned char)t.p[i])) buffer_puts(b, "LL");
        i += n;
    }
}

static void put_axes(Buffer *b, const Package *p)
{
    for (int a = 0; a < p->task->n_axes; a++) {
        buffer_puts(b, a ? ", int64_t " : "int64_t ");
        put_name(b, p->task->axis_name[a], strlen(p->task->axis_name[a]));
    }
}

static void put_axis_names(Buffer *b, const Package *p)
{
    for (int a = 0; a < p->task->n_axes; a++) {
        if (a) buffer_puts(b, ", ");
        put_name(b, p->task->axis_name[a], strlen(p->task->axis_name[a]));
    }
}

static void put_tensors(Buffer *b, const TaskTensor *x, int n)
{
    for (int i = 0; i < n; i++) {
        buffer_puts(b, ", CUdeviceptr ");
        put_name(b, x[i].name, strlen(x[i].name));
    }
}

static void put_prototype(Buffer *b, const Package *p, const char *function)
{
    if (!strcmp(function, "launch")) {
        buffer_printf(b, "CUresult %s_launch(const %s_kernels *kernels, CUstream stream, ", p->name,
                      p->name);
        put_axes(b, p);
        put_tensors(b, p->task->inputs, p->task->n_inputs);
        put_tensors(b, p->task->outputs, p->task->n_outputs);
        buffer_puts(b, ", CUdeviceptr workspace)");
    } else {
        buffer_printf(b, "%s %s_%s(", strcmp(function, "workspace") ? "int" : "size_t", p->name,
                      function);
        put_axes(b, p);
        buffer_puts(b, ")");
    }
}

static void put_tensor_comments(Buffer *b, const TaskTensor *x, int n, const char *what)
{
    for (int i = 0; i < n; i++) {
        buffer_printf(b, " *   %-8s %s: %s[", what, x[i].name, dtype_name(x[i].dtype));
        for (int d = 0; d < x[i].rank; d++) buffer_printf(b, "%s%s", d ? ", " : "", x[i].shape[d]);
        buffer_puts(b, "]\n");
    }
}

static void put_header(Buffer *b, const Package *p)
{
    char verdict[PACKAGE_VERDICT_TEXT];
    package_verdict_text(p, verdict);
    buffer_printf(
        b,
        "/* %s: a kernel for the task %s. Verdict of %s: %s; seed %llu, harness %s.\n"
        " * verdict.json has all of it. Tensors are dense, in C order, aligned to 16 bytes:\n",
        p->name, p->task->name, p->date, verdict, (unsigned long long)p->judged.verdict.seed,
        VERDICT_HARNESS);
    buffer_puts(b, " * It takes ");
    package_accepts(p, b);
    buffer_puts(b, ".\n");
    put_tensor_comments(b, p->task->inputs, p->task->n_inputs, "input");
    put_tensor_comments(b, p->task->outputs, p->task->n_outputs, "output");
    char *function[3];
    static const char *const names[] = {"verified", "workspace", "launch"};
    for (int i = 0; i < 3; i++) {
        Buffer prototype;
        buffer_init(&prototype, text_max);
        put_prototype(&prototype, p, names[i]);
        function[i] = buffer_detach(&prototype);
    }
    part_fill(b, write_c_in, "header", "name=%s;kernels=%d;verified=%s;workspace=%s;launch=%s",
              p->name, p->judged.candidate.plan.n_kernels, function[0], function[1], function[2]);
    for (int i = 0; i < 3; i++) free(function[i]);
}

static void put_binaries(Buffer *b, const Package *p)
{
    for (int c = 0; c < p->n_code; c++) {
        const unsigned char *data = p->code[c].cubin;
        buffer_printf(b, "static const _Alignas(16) unsigned char cubin_%s[] = {", p->code[c].arch);
        for (size_t i = 0; i < p->code[c].len; i++)
            buffer_printf(b, "%s%u", i % 24 ? "," : i ? ",\n" : "\n", data[i]);
        buffer_puts(b, "};\n\n");
    }
    buffer_puts(b, "static const struct {\n    int major, minor;\n    const void *cubin;\n} "
                   "binaries[] = {\n");
    for (int c = 0; c < p->n_code; c++)
        buffer_printf(b, "    {%d, %d, cubin_%s},\n", p->code[c].major, p->code[c].minor,
                      p->code[c].arch);
    buffer_puts(b, "};\n\nstatic const char *const names[] = {\n");
    for (int k = 0; k < p->judged.candidate.plan.n_kernels; k++)
        buffer_printf(b, "    \"%s\",\n", p->judged.loaded.kernels[k].lowered);
    buffer_puts(b, "};\n\n");
}

static void put_verified(Buffer *b, const Package *p)
{
    put_prototype(b, p, "verified");
    buffer_puts(b, "\n{\n    return ");
    for (int a = 0; a < p->task->n_axes; a++) {
        int64_t low, high;
        package_axis_bounds(p, a, &low, &high);
        buffer_puts(b, a ? " && " : "");
        put_name(b, p->task->axis_name[a], strlen(p->task->axis_name[a]));
        buffer_printf(b, " >= %lld && ", (long long)low);
        put_name(b, p->task->axis_name[a], strlen(p->task->axis_name[a]));
        buffer_printf(b, " <= %lldLL", (long long)high);
    }
    for (int i = 0; i < p->task->n_constraints; i++) {
        const char *c = p->task->constraints[i];
        buffer_puts(b, " &&\n           (");
        put_expression(b, p, (PlanText){c, strlen(c)});
        buffer_puts(b, ")");
    }
    const TaskTensor *groups[] = {p->task->inputs, p->task->outputs};
    int counts[] = {p->task->n_inputs, p->task->n_outputs};
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < counts[g]; i++) {
            const TaskTensor *x = &groups[g][i];
            if (!x->rank) continue;
            buffer_puts(b, " &&\n           ");
            for (int d = 0; d < x->rank; d++) {
                buffer_puts(b, d ? " * (" : "(");
                put_expression(b, p, (PlanText){x->shape[d], strlen(x->shape[d])});
                buffer_puts(b, ")");
            }
            buffer_printf(b, " <= %zuLL", package_max_elements(p, x));
        }
    buffer_puts(b, ";\n}\n\n");
}

static void put_workspace(Buffer *b, const Package *p)
{
    const Plan *plan = &p->judged.candidate.plan;
    put_prototype(b, p, "workspace");
    buffer_puts(b, "\n{\n");
    for (int a = 0; a < p->task->n_axes; a++) {
        buffer_puts(b, "    (void)");
        put_name(b, p->task->axis_name[a], strlen(p->task->axis_name[a]));
        buffer_puts(b, ";\n");
    }
    buffer_puts(b, "    return 0");
    for (int i = 0; i < plan->n_buffers; i++) {
        buffer_printf(b, " + %s_room((", p->name);
        put_expression(b, p, plan->buffers[i].count);
        buffer_printf(b, ") * %zu)", plan->buffers[i].type_size);
    }
    buffer_puts(b, ";\n}\n\n");
}

static const char *integer_type(unsigned bytes)
{
    return bytes == 1 ? "int8_t" : bytes == 2 ? "int16_t" : bytes == 4 ? "int32_t" : "int64_t";
}

static void put_entries(Buffer *b, const Package *p, const PlanText *entries, int n)
{
    buffer_puts(b, "(const int64_t[]){");
    for (int i = 0; i < n; i++) {
        buffer_puts(b, i ? ", " : "");
        put_expression(b, p, entries[i]);
    }
    buffer_puts(b, "}");
}

/* A map is made at each launch, which takes less than the launch itself. */
static void put_map(Buffer *b, const Package *p, const PackageArgument *a, int i)
{
    const PlanMap *m = a->map;
    PlanText size[TENSOR_MAP_RANK];
    for (int d = 0; d < m->rank; d++)
        size[d] = m->size[0].len ? m->size[d]
                  : a->shape     ? (PlanText){a->shape[d], strlen(a->shape[d])}
                                 : a->count;
    buffer_printf(b, "        CUtensorMap a%d;\n        CUdeviceptr at%d = ", i, i);
    put_name(b, a->name.p, a->name.len);
    if (a->text.len) {
        buffer_puts(b, " + (CUdeviceptr)(");
        put_expression(b, p, a->text);
        buffer_printf(b, ") * %zu", a->element);
    }
    buffer_printf(
        b, ";\n        if (!status)\n            status = %s_map(&a%d, at%d, %d, %zu, %d, %d, ",
        p->name, i, i, (int)a->map_type, a->element, m->rank, m->swizzle);
    put_entries(b, p, size, m->rank);
    buffer_puts(b, ", ");
    if (m->stride[0].len)
        put_entries(b, p, m->stride, m->rank);
    else
        buffer_puts(b, "NULL");
    buffer_puts(b, ", ");
    put_entries(b, p, m->box, m->rank);
    buffer_puts(b, ");\n");
}

static void put_argument(Buffer *b, const Package *p, const PlanStep *s, int i)
{
    PackageArgument a;
    package_argument(p, s, i, &a);
    if (a.kind == ARGUMENT_MAP) {
        put_map(b, p, &a, i);
        return;
    }
    if (a.kind == ARGUMENT_POINTER) {
        buffer_printf(b, "        CUdeviceptr a%d = ", i);
        put_name(b, a.name.p, a.name.len);
        if (a.text.len) {
            buffer_puts(b, " + (CUdeviceptr)(");
            put_expression(b, p, a.text);
            buffer_printf(b, ") * %zu", a.element);
        }
        buffer_puts(b, ";\n");
        return;
    }
    const char *type =
        a.kind == ARGUMENT_FLOAT ? a.bytes == 8 ? "double" : "float" : integer_type(a.bytes);
    buffer_printf(b, "        %s a%d = (%s)", type, i, type);
    if (a.text.len) {
        buffer_puts(b, "(");
        put_expression(b, p, a.text);
        buffer_puts(b, ");\n");
    } else if (isnan(a.value)) {
        buffer_puts(b, "__builtin_nan(\"\");\n");
    } else if (isinf(a.value)) {
        buffer_printf(b, "%s__builtin_inf();\n", a.value < 0 ? "-" : "");
    } else {
        buffer_printf(b, "%.17g;\n", a.value);
    }
}

static void put_dimensions(Buffer *b, const Package *p, const PlanText *dims, int n)
{
    for (int i = 0; i < 3; i++) {
        buffer_puts(b, i ? ", (unsigned)(" : "(unsigned)(");
        if (i < n)
            put_expression(b, p, dims[i]);
        else
            buffer_puts(b, "1");
        buffer_puts(b, ")");
    }
}

static void put_step(Buffer *b, const Package *p, const PlanStep *s)
{
    if (s->branch >= 0) {
        const char *when = p->judged.candidate.plan.branches[s->branch].taken;
        buffer_puts(b, "    if (");
        put_expression(b, p, (PlanText){when, strlen(when)});
        buffer_puts(b, ")\n");
    }
    if (s->loops) {
        buffer_puts(b, "    for (int64_t ");
        put_name(b, s->var, strlen(s->var));
        buffer_puts(b, " = ");
        put_expression(b, p, s->from);
        buffer_puts(b, "; !status && ");
        put_name(b, s->var, strlen(s->var));
        buffer_puts(b, " < ");
        put_expression(b, p, s->to);
        buffer_puts(b, "; ");
        put_name(b, s->var, strlen(s->var));
        buffer_puts(b, "++) {\n");
    } else {
        buffer_puts(b, "    if (!status) {\n");
    }
    for (int i = 0; i < s->n_args; i++) put_argument(b, p, s, i);
    buffer_puts(b, "        void *params[] = {");
    for (int i = 0; i < s->n_args; i++) buffer_printf(b, "%s&a%d", i ? ", " : "", i);
    const char *call = s->cooperative ? "cuLaunchCooperativeKernel" : "cuLaunchKernel";
    buffer_printf(b, "%s};\n        if (!status) status = %s(kernels->function[%d], ",
                  s->n_args ? "" : "NULL", call, s->kernel);
    put_dimensions(b, p, s->grid, s->n_grid);
    buffer_puts(b, ",\n                                ");
    put_dimensions(b, p, s->block, s->n_block);
    buffer_puts(b, ",\n                                (unsigned)(");
    if (s->shared.len)
        put_expression(b, p, s->shared);
    else
        buffer_puts(b, "0");
    buffer_printf(b, "), stream, params%s);\n    }\n", s->cooperative ? "" : ", NULL");
}

static void put_launch(Buffer *b, const Package *p)
{
    const Plan *plan = &p->judged.candidate.plan;
    put_prototype(b, p, "launch");
    buffer_printf(b, "\n{\n    CUresult status = %s_verified(", p->name);
    put_axis_names(b, p);
    buffer_puts(b, ") ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;\n    (void)workspace;\n");
    for (int i = 0; i < plan->n_buffers; i++) {
        buffer_puts(b, "    const CUdeviceptr ");
        put_name(b, plan->buffers[i].name, strlen(plan->buffers[i].name));
        buffer_puts(b, " = workspace;\n");
        buffer_printf(b, "    workspace += %s_room((", p->name);
        put_expression(b, p, plan->buffers[i].count);
        buffer_printf(b, ") * %zu);\n", plan->buffers[i].type_size);
    }
    for (int s = 0; s < plan->n_steps; s++) put_step(b, p, &plan->steps[s]);
    buffer_puts(b, "    return status;\n}\n");
}

static void put_source(Buffer *b, const Package *p)
{
    buffer_printf(b, "/* %s: binaries and launches of %s.h. */\n#include \"%s.h\"\n\n", p->name,
                  p->name, p->name);
    put_binaries(b, p);
    part_fill(b, write_c_in, "functions", "name=%s", p->name);
    if (p->judged.candidate.plan.n_maps) part_fill(b, write_c_in, "map", "name=%s", p->name);
    part_fill(b, write_c_in, "load", "name=%s;kernels=%d", p->name,
              p->judged.candidate.plan.n_kernels);
    put_verified(b, p);
    put_workspace(b, p);
    put_launch(b, p);
}

int package_write_c(const Package *p, const char *dir, Error *err)
{
    Buffer header, source;
    char name[PACKAGE_MAX_NAME + 4];
    if (package_refuse_ops(p, "c", err)) return -1;
    buffer_init(&header, text_max);
    buffer_init(&source, text_max);
    put_header(&header, p);
    put_source(&source, p);
    int rc =
        header.full || source.full
            ? error_set(err, ERROR_LIMIT, "the package's source has more than %zu bytes", text_max)
            : 0;
    snprintf(name, sizeof name, "%s.h", p->name);
    if (!rc) rc = package_file(dir, name, header.data, header.len, err);
    snprintf(name, sizeof name, "%s.c", p->name);
    if (!rc) rc = package_file(dir, name, source.data, source.len, err);
    buffer_release(&header);
    buffer_release(&source);
    return rc;
}
