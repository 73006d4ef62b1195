/* Support of tests of devices that keep contents: the simulator or another, and contents in host memory. */
#ifndef TESTS_KEPT_CONTENTS_H
#define TESTS_KEPT_CONTENTS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/sim/sim.h"

struct DeviceGolden {
    size_t bytes;
    char data[];
};
static int kept, refuses;
static const DeviceOps *kept_beside = &sim_device_ops;

static int keep(Device *d, const void *src, size_t bytes, DeviceGolden **out, Error *err)
{
    (void)d;
    if (refuses) return error_set(err, ERROR_MEMORY, "no room");
    *out = memory_alloc(sizeof **out + bytes);
    (*out)->bytes = bytes;
    memcpy((*out)->data, src, bytes);
    kept++;
    return 0;
}

static int keep_of(Device *d, DevicePtr p, size_t bytes, DeviceGolden **out, Error *err)
{
    char *data = memory_alloc(bytes);
    int rc = kept_beside->read(d, p, data, bytes, err) || keep(d, data, bytes, out, err);
    free(data);
    return rc ? -1 : 0;
}

static void forget(Device *d, DeviceGolden *g)
{
    (void)d;
    free(g);
    kept--;
}

/* What a buffer is expected to hold, in units of its contents; the caller frees it. *bytes: of the buffer. */
static char *spread(const DeviceExpected *x, size_t unit, size_t *bytes)
{
    size_t have = x->golden->bytes / unit, n = x->n ? x->n : have,
           period = x->period ? x->period : n;
    char *all = memory_alloc(n * unit);
    assert_true(period <= have && x->from < period);
    for (size_t i = 0; i < n; i++)
        memcpy(all + i * unit, x->golden->data + (x->from + i) % period * unit, unit);
    *bytes = n * unit;
    return all;
}

static int fill(Device *d, const DeviceExpected *x, Error *err)
{
    size_t bytes;
    char *all = spread(x, 1, &bytes);
    int rc = kept_beside->write(d, x->p, all, bytes, err);
    free(all);
    return rc;
}

static int same(Device *d, const DeviceExpected *x, size_t *first, Error *err)
{
    size_t bytes;
    char *all = spread(x, 1, &bytes), *now = memory_alloc(bytes);
    int rc = kept_beside->read(d, x->p, now, bytes, err);
    for (*first = 0; !rc && *first < bytes && now[*first] == all[*first];) ++*first;
    rc = rc ? -1 : *first < bytes;
    free(all);
    free(now);
    return rc;
}

static int is_near(double got, double want, const DeviceExpected *x)
{
    return got == want || (isnan(got) && isnan(want)) ||
           fabs(got - want) <= x->atol + x->rtol * fabs(want);
}

static int compare(Device *d, const DeviceExpected *x, DeviceDifference *out, Error *err)
{
    size_t bytes, size = dtype_size((Dtype)x->dtype);
    char *all = spread(x, sizeof(double), &bytes), *raw = memory_alloc(x->n * size);
    const double *want = (const void *)all;
    double *got = memory_array(x->n, sizeof *got);
    *out = (DeviceDifference){0};
    int rc = kept_beside->read(d, x->p, raw, x->n * size, err);
    dtype_to_double((Dtype)x->dtype, raw, got, x->n);
    for (size_t i = x->n; i-- > 0 && !rc;)
        if (!is_near(got[i], want[i], x)) {
            out->wrong++;
            out->first = out->worst = i;
            out->first_got = out->worst_got = got[i];
            out->first_want = out->worst_want = want[i];
        }
    free(all);
    free(raw);
    free(got);
    return rc ? -1 : out->wrong > 0;
}

static int digest_kept(Device *d, DevicePtr p, size_t bytes, uint64_t words[2], Error *err)
{
    char *now = memory_alloc(bytes);
    int rc = kept_beside->read(d, p, now, bytes, err);
    words[0] = words[1] = random_hash(now, bytes);
    free(now);
    return rc;
}

static int expect_kept(Device *d, const DeviceExpected *list, int n, int guards, Error *err)
{
    int rc = 0;
    Fault f;
    for (int i = 0; i < n && !rc; i++) {
        DeviceDifference unused;
        size_t at;
        rc = list[i].dtype < 0 ? same(d, &list[i], &at, err) : compare(d, &list[i], &unused, err);
    }
    return rc || !guards ? rc : kept_beside->check_guards(d, &f);
}

static const DeviceGoldenOps kept_contents = {.keep = keep,
                                              .keep_of = keep_of,
                                              .free = forget,
                                              .fill = fill,
                                              .same = same,
                                              .compare = compare,
                                              .digest = digest_kept,
                                              .expect = expect_kept};

#endif
