/* Batches in a journal: a committed batch survives a kill and another one does not, and the
 * artifact has the bytes of an uninterrupted run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "stages/data/batchlog.h"
#include "tests/unit/stages/children.h"

enum { BATCHES = 4, PER_BATCH = 3 };

typedef struct {
    const char *target;
    int seed;
    int kill_in; /* the process is killed in the middle of this batch; -1: never */
} Job;

typedef struct {
    long n, last;
} Seen;

static int see(void *ctx, const void *record, size_t len, Error *err)
{
    Seen *s = ctx;
    msgpack_zone zone;
    View v;
    int64_t step = -1;
    msgpack_zone_init(&zone, 1024);
    int rc = view_decode(record, len, "test", &zone, &v, err) || view_int(&v, "step", &step, err);
    msgpack_zone_destroy(&zone);
    if (!rc && step != s->n)
        rc = error_set(err, ERROR_INVALID, "record %ld holds step %ld", s->n, (long)step);
    s->n++;
    s->last = (long)step;
    return rc ? -1 : 0;
}

/* Works as a stage does: from the first batch that is not in the journal. */
static int work(void *ctx)
{
    const Job *job = ctx;
    ArtifactSpec spec;
    BatchLog b;
    Error err;
    Seen seen = {0, -1};
    artifact_spec_init(&spec, "metrics", "test_batchlog");
    artifact_spec_config(&spec, "seed", "%d", job->seed);
    if (batchlog_open(&b, job->target, &spec, see, &seen, &err)) return 4;
    if (seen.n != b.n_batches * PER_BATCH || seen.n != b.n_records) return 5;
    for (long i = b.n_batches; i < BATCHES; i++) {
        for (int k = 0; k < PER_BATCH; k++) {
            Record *r = record_new();
            record_int(r, "step", i * PER_BATCH + k);
            record_text(r, "name", "x");
            record_float(r, "value", job->seed + 0.5 * k);
            if (batchlog_add(&b, r, &err)) return 6;
            record_free(r);
            if (i == job->kill_in && k == 1) raise(SIGKILL);
        }
        if (batchlog_commit(&b, &err)) return 7;
    }
    int rc = batchlog_finish(&b, &err) ? 8 : 0;
    artifact_spec_release(&spec);
    return rc;
}

static void straight(void)
{
    Job job = {"straight.qa", 1, -1};
    if (!file_exists("straight.qa")) assert_int_equal(child(work, &job, 0, 0), 0);
}

static void killed_at_every_batch(void **state)
{
    (void)state;
    straight();
    Job job = {"killed.qa", 1, 0};
    for (; job.kill_in < BATCHES; job.kill_in++) {
        int status = child(work, &job, 0, 0);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_false(file_exists("killed.qa"));
        assert_true(file_exists("killed.qa.journal"));
    }
    job.kill_in = -1;
    assert_int_equal(child(work, &job, 0, 0), 0);
    assert_false(file_exists("killed.qa.journal"));
    assert_equal_files("killed.qa", "straight.qa");
}

static void torn_tail(void **state)
{
    (void)state;
    straight();
    Job job = {"torn.qa", 1, 2};
    child(work, &job, 0, 0);
    FILE *f = fopen("torn.qa.journal", "ab"); /* half a record, as after a power failure */
    assert_int_equal(fwrite("\xff\x01\x00\x00half", 1, 8, f), 8);
    fclose(f);
    job.kill_in = -1;
    assert_int_equal(child(work, &job, 0, 0), 0);
    assert_equal_files("torn.qa", "straight.qa");
}

static void another_configuration(void **state)
{
    (void)state;
    straight();
    Job job = {"other.qa", 2, 2};
    child(work, &job, 0, 0);
    job = (Job){"other.qa", 1, -1}; /* the artifact of seed 1 must not have batches of seed 2 */
    assert_int_equal(child(work, &job, 0, 0), 0);
    assert_equal_files("other.qa", "straight.qa");
}

static int work_on_full_disk(void *ctx)
{
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){300, 300});
    return work(ctx);
}

static void full_disk(void **state)
{
    (void)state;
    straight();
    Job job = {"full.qa", 1, -1};
    int status = child(work_on_full_disk, &job, 0, 0);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 7 || WEXITSTATUS(status) == 8));
    assert_false(file_exists("full.qa"));
    assert_int_equal(child(work, &job, 0, 0), 0); /* with room again the same command continues */
    assert_equal_files("full.qa", "straight.qa");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_every_batch), cmocka_unit_test(torn_tail),
        cmocka_unit_test(another_configuration), cmocka_unit_test(full_disk)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("batchlog", tests, NULL, NULL);
}
