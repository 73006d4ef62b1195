/* The heap of a compilation: blocks do not overlap, keep their contents and alignment, and lie at the same
 * addresses in each child that asks for the same, whatever its parent did before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "eval/compile/heap.h"

enum { SLOTS = 200, STEPS = 20000 };

typedef struct {
    unsigned char *p, mark;
    size_t bytes;
} Slot;

static int holds(const Slot *s)
{
    for (size_t i = 0; i < s->bytes; i++)
        if (s->p[i] != s->mark) return 0;
    return 1;
}

static size_t draw_bytes(Random *r)
{
    size_t most = (size_t)1 << random_below(r, 18);
    return (size_t)random_below(r, most + 1);
}

/* A random sequence. Returns a hash of the addresses; 0: a block lost its contents. */
static uint64_t use(uint64_t seed)
{
    static Slot slots[SLOTS];
    Random r;
    uint64_t hash = 1;
    random_init(&r, seed, 1);
    memset(slots, 0, sizeof slots);
    for (int i = 0; i < STEPS; i++) {
        Slot *s = &slots[random_below(&r, SLOTS)];
        int kind = (int)random_below(&r, 4);
        size_t bytes = draw_bytes(&r), alignment = (size_t)16 << random_below(&r, 9);
        if (s->p && !holds(s)) return 0;
        if (s->p && kind == 0) {
            size_t kept = bytes < s->bytes ? bytes : s->bytes;
            s->p = heap_realloc(s->p, bytes + 1);
            for (size_t k = 0; k < kept; k++)
                if (s->p[k] != s->mark) return 0;
            s->bytes = bytes;
        } else {
            heap_free(s->p);
            s->p = kind == 1   ? heap_calloc(bytes, 1)
                   : kind == 2 ? heap_aligned(alignment, bytes)
                               : heap_malloc(bytes);
            s->bytes = bytes;
            if (!s->p || (uintptr_t)s->p % (kind == 2 ? alignment : HEAP_ALIGN)) return 0;
            for (size_t k = 0; k < bytes && kind == 1; k++)
                if (s->p[k]) return 0;
        }
        s->mark = (unsigned char)i;
        memset(s->p, s->mark, s->bytes);
        hash = (hash ^ (uint64_t)(uintptr_t)s->p) * 0x100000001b3u;
    }
    for (int i = 0; i < SLOTS; i++) heap_free(slots[i].p);
    return hash;
}

static uint64_t use_in_child(uint64_t seed)
{
    int fds[2];
    uint64_t hash = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (!pid) {
        heap_begin();
        hash = use(seed);
        _exit(write(fds[1], &hash, sizeof hash) != sizeof hash);
    }
    assert_true(pid > 0);
    assert_int_equal(read(fds[0], &hash, sizeof hash), sizeof hash);
    waitpid(pid, NULL, 0);
    close(fds[0]);
    close(fds[1]);
    return hash;
}

static void test_blocks(void **state)
{
    (void)state;
    assert_int_not_equal(use(3), 0); /* the C library's */
    for (uint64_t seed = 1; seed < 6; seed++) assert_int_not_equal(use_in_child(seed), 0);
}

static void test_addresses(void **state)
{
    (void)state;
    void *kept[500];
    uint64_t first = use_in_child(9);
    for (size_t i = 0; i < 500; i++) kept[i] = heap_malloc(i * 977);
    assert_true(use_in_child(9) == first);
    for (size_t i = 0; i < 500; i += 2) heap_free(kept[i]);
    assert_true(use_in_child(9) == first);
    for (size_t i = 1; i < 500; i += 2) heap_free(kept[i]);
    assert_true(use_in_child(10) != first);
}

/* What was allocated before is freed and resized after, and what the range has no room for is found
 * elsewhere. */
static void test_both_heaps(void **state)
{
    (void)state;
    enum { LARGE = 6, SMALL = 1000, EMPTY = 100000 };
    static char *large[LARGE], *small[SMALL], *empty[EMPTY];
    char *before = heap_malloc(100);
    strcpy(before, "kept");
    pid_t pid = fork();
    if (!pid) {
        heap_begin();
        char *more = heap_realloc(before, 100000);
        int wrong = strcmp(more, "kept");
        heap_free(more);
        for (int i = 0; i < LARGE; i++) {
            large[i] = heap_malloc((size_t)100 << 20);
            wrong |= !large[i];
            if (large[i]) large[i][(100 << 20) - 1] = 1;
        }
        for (int i = 0; i < SMALL; i++) wrong |= !(small[i] = heap_malloc(1 << 17));
        for (int i = 0; i < EMPTY; i++)
            wrong |= !(empty[i] = heap_malloc(0)); /* to the last byte */
        for (int i = 0; i < EMPTY; i++) heap_free(empty[i]);
        for (int i = 0; i < SMALL; i++) heap_free(small[i]);
        for (int i = 0; i < LARGE; i++) heap_free(large[i]);
#ifndef __SANITIZE_ADDRESS__ /* which ends the process */
        wrong |= heap_malloc(SIZE_MAX - 8) != NULL || heap_calloc(SIZE_MAX / 2, 3) != NULL;
#endif
        _exit(wrong);
    }
    int status = -1;
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    heap_free(before);
    heap_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks),
                                       cmocka_unit_test(test_addresses),
                                       cmocka_unit_test(test_both_heaps)};
    heap_map();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
