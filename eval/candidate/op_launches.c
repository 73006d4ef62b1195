/* Turns the text that the operator library gives into launches: arguments become places in storages,
 * scratch becomes slots that live for one step, repeated launches are unrolled. */
#include "eval/candidate/op_launches.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/candidate/library_arguments.h"
#include "eval/candidate/plan_kernels.h"

enum { MAX_KERNEL_TEXT = 1 << 20 };

int walk_fail_here(Walk *k, const Error *why)
{
    char at[200];
    task_workload_text(k->task, k->w, at, sizeof at);
    return walk_fail(k, "%s (for the workload %s)", why->text, at);
}

int walk_storage(PlanOps *o, PlanHeld held, int index, size_t bytes, const char *label)
{
    o->storages = memory_grow(o->storages, (size_t)o->n_storages + 1, sizeof *o->storages);
    PlanStorage *s = &o->storages[o->n_storages];
    *s = (PlanStorage){held, index, bytes, -1, -1, -1, ""};
    snprintf(s->label, sizeof s->label, "tensor %s", label);
    return o->n_storages++;
}

void walk_use(Walk *k, int storage)
{
    PlanStorage *s = &k->o->storages[storage];
    if (s->first < 0) s->first = k->step;
    s->last = k->step;
}

static PlanOpLaunch *new_launch(Walk *k, const char *kernel)
{
    PlanOps *o = k->o;
    o->launches = memory_grow(o->launches, (size_t)o->n_launches + 1, sizeof *o->launches);
    PlanOpLaunch *l = &o->launches[o->n_launches++];
    memset(l, 0, sizeof *l);
    l->step = k->step;
    l->text = -1;
    l->first_arg = o->n_args;
    snprintf(l->kernel, sizeof l->kernel, "%s", kernel);
    return l;
}

static void add_arg(Walk *k, PlanOpArg arg)
{
    PlanOps *o = k->o;
    o->args = memory_grow(o->args, (size_t)o->n_args + 1, sizeof *o->args);
    o->args[o->n_args++] = arg;
    o->launches[o->n_launches - 1].n_args++;
}

/* Reads "x0", "y1" or "t2" at *p and moves *p behind it. Returns 0 with the memory, or -1. size: of
 * an element. */
static int named_memory(const Places *m, const char **p, PlanOpArg *out, size_t *size)
{
    char *end, kind = **p;
    long i = strtol(*p + 1, &end, 10), limit = kind == 'x'   ? OP_MAX_TENSORS
                                               : kind == 'y' ? OP_MAX_RESULTS
                                               : kind == 't' ? OP_MAX_SCRATCH
                                                             : 0;
    if (end == *p + 1 || i < 0 || i >= limit) return -1;
    *out = kind == 'x' ? m->x[i] : kind == 'y' ? m->y[i] : m->t[i];
    *size = kind == 'x' ? m->x_size[i] : kind == 'y' ? m->y_size[i] : 1;
    *p = end;
    return 0;
}

/* One launch of a plain kernel; round: the value of its argument "t". */
static int add_launch(Walk *k, const OpLaunch *l, const char *kernel, int64_t round,
                      const Places *m)
{
    PlanOpLaunch *to = new_launch(k, kernel);
    to->shared = (uint32_t)l->shared;
    for (int d = 0; d < 3; d++) {
        int64_t limit = d ? 65535 : INT32_MAX;
        if (l->grid[d] < 1 || l->grid[d] > limit)
            return walk_fail(k, "the operator's grid has %lld blocks; expected 1 to %lld",
                             (long long)l->grid[d], (long long)limit);
        to->grid[d] = (uint32_t)l->grid[d];
        to->block[d] = l->block[d] > 0 ? (uint32_t)l->block[d] : 1;
    }
    for (const char *p = l->arguments; *p; p += strspn(p, ", ")) {
        PlanOpArg arg = {-1, (uint64_t)round};
        size_t size;
        if (!strcmp(p, "t"))
            p++;
        else if (*p == '-' || isdigit((unsigned char)*p))
            arg.value = (uint64_t)strtoll(p, (char **)&p, 10);
        else if (named_memory(m, &p, &arg, &size))
            return walk_fail(k, "the operator's launch has the arguments '%s'", l->arguments);
        add_arg(k, arg);
    }
    return 0;
}

static int add_library(Walk *k, const OpLibraryCall *route, const Places *m);

/* The launches of kernel i of an operator: as many as its rounds. */
static int add_kernel(Walk *k, const OpPlain *plain, int i, int text, Places *m)
{
    char kernel[PLAN_KERNEL_NAME];
    int64_t rounds = plain->launch[i].repeat ? plain->launch[i].repeat : 1;
    plan_kernels_name(plain, plain->launch[i].kernel, kernel);
    if (rounds < 0 || rounds > PLAN_MAX_LAUNCHES)
        return walk_fail(k, "the operator repeats a launch %lld times", (long long)rounds);
    for (int64_t t = 0; t < rounds; t++) {
        if (add_launch(k, &plain->launch[i], kernel, t, m)) return -1;
        k->o->launches[k->o->n_launches - 1].text = text;
    }
    return 0;
}

/* The launches of kernels, with memory for their scratch, and library calls between them. */
static int add_plain(Walk *k, const Op *op, const OpPlain *plain, const OpRoute *route, Places *m)
{
    int calls = 0, text = plain->n ? plan_kernels_add(k->o, plain) : -1;
    for (int i = 0; i < plain->n_scratch; i++) {
        size_t bytes = (size_t)plain->scratch[i].elements * dtype_size(plain->scratch[i].dtype);
        m->t[i] = (PlanOpArg){walk_storage(k->o, HELD_SLOT, -1, bytes, op->name), 0};
        walk_use(k, m->t[i].storage);
    }
    for (int i = 0; i <= plain->n; i++) {
        for (; calls < route->n && route->call[calls].after <= i; calls++)
            if (add_library(k, &route->call[calls], m)) return -1;
        if (i < plain->n && add_kernel(k, plain, i, text, m)) return -1;
    }
    return 0;
}

int launches_of_copy(Walk *k, const Op *op, OpTensor x, int from, OpTensor y, int to)
{
    Buffer text;
    OpPlain plain = {.source = &text};
    Places m = {.x = {walk_place(from)}, .y = {walk_place(to)}};
    Error why;
    if (!op_elements(&x)) return 0;
    walk_use(k, from);
    walk_use(k, to);
    buffer_init(&text, MAX_KERNEL_TEXT);
    int rc = plan_kernels_copy(&x, &y, &plain, &why) ? walk_fail_here(k, &why)
                                                     : add_plain(k, op, &plain, &(OpRoute){0}, &m);
    buffer_release(&text);
    free(plain.launch);
    return rc;
}

/* An argument of a library call: memory with elements added, or a number. */
static int library_argument(Walk *k, const Places *m, const char *text, char kind, PlanOpArg *out)
{
    char *end;
    size_t size;
    *out = (PlanOpArg){-1, 0};
    if (kind == 'p') {
        const char *p = text;
        if (named_memory(m, &p, out, &size)) return -1;
        p += strspn(p, " ");
        if (!*p) return 0;
        if (*p++ != '+') return -1;
        out->value += (uint64_t)strtoll(p, &end, 10) * size;
        return end == p || *end ? -1 : 0;
    }
    if (kind == 'd') {
        double v = strtod(text, &end);
        memcpy(&out->value, &v, sizeof v);
    } else {
        out->value = (uint64_t)strtoll(text, &end, 10);
    }
    (void)k;
    return end == text || *end ? -1 : 0;
}

static int add_library(Walk *k, const OpLibraryCall *route, const Places *m)
{
    const LibrarySignature *call = library_signature(route->library);
    char text[sizeof route->arguments], *save = NULL, *p;
    int n = 0;
    if (!call) return walk_fail(k, "no library call is named '%s'", route->library);
    new_launch(k, call->name)->library = 1;
    snprintf(text, sizeof text, "%s", route->arguments);
    for (p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save), n++) {
        PlanOpArg arg;
        p += strspn(p, " ");
        if (!call->kinds[n] || library_argument(k, m, p, call->kinds[n], &arg)) break;
        add_arg(k, arg);
    }
    if (call->dtype && call->dtype < n)
        library_let_tf32(call, k->tf32, &k->o->args[k->o->n_args - n + call->dtype].value);
    return p || call->kinds[n]
               ? walk_fail(k, "%s has the arguments '%s'", call->name, route->arguments)
               : 0;
}

static int add_call(Walk *k, const OpCall *call, OpPlain *plain, Places *m)
{
    OpRoute route = {.kernels = plain};
    Error why;
    k->tf32 = op_tf32(call) & k->task->tf32;
    int taken = k->routes ? op_route(call, &route, &why) : 0;
    if (taken < 0) return walk_fail_here(k, &why);
    if (!taken) {
        route.n = 0;
        if (op_plain(call, plain, &why)) return walk_fail_here(k, &why);
    }
    return add_plain(k, call->op, plain, &route, m);
}

int launches_of_call(Walk *k, const OpCall *call, Places *m)
{
    Buffer text;
    OpPlain plain = {.source = &text};
    buffer_init(&text, MAX_KERNEL_TEXT);
    for (int i = 0; i < call->n_tensors; i++) m->x_size[i] = dtype_size(call->tensor[i].dtype);
    for (int i = 0; i < call->n_results; i++) m->y_size[i] = dtype_size(call->result[i].dtype);
    int rc = add_call(k, call, &plain, m);
    buffer_release(&text);
    free(plain.launch);
    return rc;
}
