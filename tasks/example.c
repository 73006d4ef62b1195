/* Writes inputs and reference results as .npy files. */
#include "tasks/example.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"

enum { NPY_ALIGN = 64, NPY_FIXED = 10 };

/* The head of a .npy file, version 1.0: magic, length, and a dictionary padded to 64 bytes. */
static void npy_head(Buffer *b, int rank, const int64_t *shape)
{
    Buffer d;
    buffer_init(&d, 1024);
    buffer_puts(&d, "{'descr': '<f8', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < rank; i++) buffer_printf(&d, "%lld,", (long long)shape[i]);
    buffer_puts(&d, ")}");
    while ((NPY_FIXED + d.len + 1) % NPY_ALIGN) buffer_puts(&d, " ");
    buffer_puts(&d, "\n");
    unsigned char head[NPY_FIXED] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)d.len, (unsigned char)(d.len >> 8)};
    buffer_append(b, head, sizeof head);
    buffer_append(b, d.data, d.len);
    buffer_release(&d);
}

static int write_array(const Task *t, const Workload *w, const TaskTensor *x, const double *values,
                       const char *dir, Error *err)
{
    int64_t shape[TASK_MAX_RANK];
    size_t n;
    if (task_shape(t, w, x, shape, err) || task_elements(t, w, x, &n, err)) return -1;
    Buffer b;
    buffer_init(&b, n * sizeof *values + 4096);
    npy_head(&b, x->rank, shape);
    buffer_append(&b, values, n * sizeof *values);
    char *path = memory_printf("%s/%s.npy", dir, x->name);
    int rc = file_write_atomic(path, b.data, b.len, err);
    free(path);
    buffer_release(&b);
    return rc;
}

/* The values of an input, which the caller frees. */
static double *draw(const Task *t, const Workload *w, int i, uint64_t seed, Error *err)
{
    const TaskTensor *x = &t->inputs[i];
    size_t n;
    if (task_elements(t, w, x, &n, err)) return NULL;
    if (n > EXAMPLE_MAX_ELEMENTS) {
        error_set(err, ERROR_LIMIT, "%s has %zu elements, at most %d expected", x->name, n,
                  EXAMPLE_MAX_ELEMENTS);
        return NULL;
    }
    void *raw = memory_array(n, dtype_size(x->dtype));
    double *values = memory_array(n, sizeof *values);
    int rc = task_draw(&(TaskCase){t, w, VARIANT_DRAWN, seed, 1.0}, i, raw, err);
    if (!rc) dtype_to_double(x->dtype, raw, values, n);
    free(raw);
    if (!rc) return values;
    free(values);
    return NULL;
}

/* Fills in[] and out[]. */
static int compute(Task *t, const Workload *w, uint64_t seed, double **in, double **out, Error *err)
{
    for (int i = 0; i < t->n_inputs; i++)
        if (!(in[i] = draw(t, w, i, seed, err))) return -1;
    for (int i = 0; i < t->n_outputs; i++) {
        size_t n;
        if (task_elements(t, w, &t->outputs[i], &n, err)) return -1;
        out[i] = memory_array(n, sizeof **out);
    }
    return task_reference(t, w, (const double *const *)in, out, err);
}

static int write_arrays(const Task *t, const Workload *w, double **in, double **out,
                        const char *dir, Error *err)
{
    if (file_mkdirs(dir, err)) return -1;
    for (int i = 0; i < t->n_inputs; i++)
        if (write_array(t, w, &t->inputs[i], in[i], dir, err)) return -1;
    for (int i = 0; i < t->n_outputs; i++)
        if (write_array(t, w, &t->outputs[i], out[i], dir, err)) return -1;
    return 0;
}

static int write_workload(Task *t, const Workload *w, uint64_t seed, const char *dir, Error *err)
{
    double **in = memory_array((size_t)t->n_inputs + 1, sizeof *in),
           **out = memory_array((size_t)t->n_outputs + 1, sizeof *out);
    int rc = compute(t, w, seed, in, out, err) || write_arrays(t, w, in, out, dir, err) ? -1 : 0;
    for (int i = 0; i < t->n_inputs; i++) free(in[i]);
    for (int i = 0; i < t->n_outputs; i++) free(out[i]);
    free(in);
    free(out);
    return rc;
}

int example_write(Task *t, uint64_t seed, const char *dir, Error *err)
{
    int n = 0, rc = 0;
    for (int i = 0; i < t->n_workloads && !rc; i++) {
        if (t->workloads[i].role != ROLE_CHECK) continue;
        char *folder = memory_printf("%s/%d", dir, n++);
        rc = write_workload(t, &t->workloads[i], seed, folder, err);
        free(folder);
    }
    return rc ? error_prefix(err, "task %s", t->name) : 0;
}
