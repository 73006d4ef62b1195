/* The arena: buffers keep the distance of a guard and lie inside the mapped memory, and every byte
 * outside of buffers is in exactly one zone. A changed byte is blamed on the nearest buffer. Kept memory
 * comes back for the next extent of its size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "eval/cuda/memory/arena.h"
#include "eval/cuda/memory/space.h"

enum { MIB = 1 << 20 };

static Arena arena;

static uint64_t place(uint64_t bytes, const char *label)
{
    uint64_t at = 0, more = 0;
    Error err;
    int rc = arena_place(&arena, bytes, label, &at, &more, &err);
    if (rc == 1) {
        assert_int_equal(more % ARENA_PAGE, 0);
        assert_int_equal(arena_grown(&arena, more, &err), 0);
        rc = arena_place(&arena, bytes, label, &at, &more, &err);
    }
    if (rc) fail_msg("%s", rc < 0 ? err.text : "asked to grow twice");
    return at;
}

static void check(void)
{
    ArenaZone zones[ARENA_MAX_BUFFERS + 1];
    uint64_t covered = 0, before = 0;
    int n = arena_zones(&arena, zones);
    for (int i = 0; i < arena.n; i++) {
        const ArenaBuffer *b = &arena.buffers[i];
        assert_true(b->at % ARENA_ALIGN == 0 && b->at >= before + ARENA_GUARD);
        assert_true(b->bytes < ARENA_PAGE / 2 || b->at % ARENA_PAGE == 0);
        before = b->at + b->bytes;
        covered += b->bytes;
    }
    assert_true(!arena.n || before + ARENA_GUARD <= arena.mapped);
    assert_true(arena.mapped <= arena.limit);
    for (int i = 0; i < n; i++) {
        covered += zones[i].bytes;
        assert_int_equal((zones[i].at + zones[i].bytes) % 16, 0);
        assert_true(i == 0 || zones[i].at >= zones[i - 1].at + zones[i - 1].bytes);
    }
    assert_int_equal(covered, arena.mapped);
}

static void test_many_buffers(void **state)
{
    (void)state;
    Random r;
    uint64_t at[40] = {0};
    arena_init(&arena, (uint64_t)8 << 30);
    random_init(&r, 1, 2);
    for (int i = 0; i < 4000; i++) {
        uint64_t *slot = &at[random_below(&r, 40)];
        if (*slot) {
            arena_remove(&arena, *slot);
            assert_null(arena_at(&arena, *slot));
            *slot = 0;
        } else {
            *slot = place(
                random_below(&r, 8) ? random_below(&r, 300000) : random_below(&r, 40 * MIB), "x");
            assert_non_null(arena_at(&arena, *slot));
        }
        check();
    }
    for (int i = 0; i < 40; i++)
        if (at[i]) arena_remove(&arena, at[i]);
    assert_int_equal(arena.n, 0);
    int spare = arena_spare(&arena, arena.extents[0].bytes);
    assert_int_equal(spare, arena.n_extents - 1);
    arena_shrunk(&arena, spare);
    assert_int_equal(arena.mapped, arena.extents[0].bytes);
    check();
}

static void test_reuse(void **state)
{
    (void)state;
    Error err;
    uint64_t at, more;
    arena_init(&arena, 16 * MIB);
    uint64_t a = place(MIB, "a"), b = place(28, "b");
    uint64_t mapped = arena.mapped;
    arena_remove(&arena, a);
    assert_int_equal(place(MIB, "c"), a); /* first fit */
    assert_int_equal(arena.mapped, mapped);
    assert_int_equal(place(0, "empty") % ARENA_ALIGN, 0);
    assert_true(arena_holds(&arena, b, 28) && arena_holds(&arena, b + 27, 1) &&
                arena_holds(&arena, b + 28, 0));
    assert_false(arena_holds(&arena, b, 29) || arena_holds(&arena, b + 28, 1) ||
                 arena_holds(&arena, b - 1, 1));
    assert_false(arena_holds(&arena, b + 1, UINT64_MAX));
    assert_int_equal(arena_spare(&arena, 0), 0); /* its extent is in use */
    assert_int_equal(arena_place(&arena, 20 * MIB, "huge", &at, &more, &err), -1);
    assert_int_equal(arena_place(&arena, UINT64_MAX - 4096, "wraps", &at, &more, &err), -1);
    assert_int_equal(arena_place(&arena, 15 * MIB, "no room", &at, &more, &err), -1);
    assert_int_equal(arena_grown(&arena, 3, &err), -1);
    check();
    arena_init(&arena, (uint64_t)2048 * MIB);
    assert_int_equal(arena_grown(&arena, (uint64_t)1024 * MIB, &err), 0);
    for (int i = 0; i < ARENA_MAX_BUFFERS; i++) place(1, "small");
    assert_int_equal(arena_place(&arena, 1, "one more", &at, &more, &err), -1);
    check();
}

static void test_blame(void **state)
{
    (void)state;
    ArenaBlame who;
    arena_init(&arena, 64 * MIB);
    arena_blame(&arena, 5, 9, &who);
    assert_string_equal(who.label, "");
    uint64_t x = place(1000, "input x"), y = place(2000, "output y");
    arena_blame(&arena, x + 1000, x + 1003, &who);
    assert_string_equal(who.label, "input x");
    assert_true(!who.before && who.distance == 1);
    arena_blame(&arena, y - 4, y - 1, &who);
    assert_string_equal(who.label, "output y");
    assert_true(who.before && who.distance == 1);
    arena_blame(&arena, y + 2000 + 400, y + 2000 + 90000, &who);
    assert_string_equal(who.label, "output y");
    assert_true(!who.before && who.distance == 401);
    arena_blame(&arena, x - 64, x - 8, &who);
    assert_string_equal(who.label, "input x");
    assert_true(who.before && who.distance == 8);
}

/* Buffers that fill an extent made for them begin at its start and need no other. */
static void test_room(void **state)
{
    (void)state;
    Error err;
    static const size_t bytes[] = {3 * MIB, 28, 2 * MIB, 0, MIB - 1, 5000, MIB};
    enum { N = sizeof bytes / sizeof *bytes };
    arena_init(&arena, 256 * MIB);
    arena_remove(&arena, place(MIB, "before"));
    uint64_t room = arena_room(bytes, N), floor = arena.mapped;
    assert_int_equal(room % ARENA_PAGE, 0);
    assert_int_equal(arena_grown(&arena, room, &err), 0);
    arena.floor = floor;
    for (int i = 0; i < N; i++) assert_true(place(bytes[i], "x") > floor);
    assert_int_equal(arena.mapped, floor + room);
    assert_int_equal(arena.n_extents, 2);
    check();
}

/* ---- a driver whose memory is counted ---- */

static int live, most_live = 100;
static CuMemHandle last;

static CuResult make_memory(CuMemHandle *out, size_t bytes, const CuMemProp *p,
                            unsigned long long flags)
{
    (void)bytes, (void)p, (void)flags;
    if (live >= most_live) return 2;
    live++;
    *out = ++last;
    return CU_OK;
}

static CuResult free_memory(CuMemHandle handle)
{
    (void)handle;
    live--;
    return CU_OK;
}

static CuResult map_memory(CuPtr p, size_t bytes, size_t from, CuMemHandle handle,
                           unsigned long long flags)
{
    (void)p, (void)bytes, (void)from, (void)handle, (void)flags;
    return CU_OK;
}

static CuResult unmap_memory(CuPtr p, size_t bytes)
{
    (void)p, (void)bytes;
    return CU_OK;
}

static CuResult allow(CuPtr p, size_t bytes, const CuMemAccess *access, size_t n)
{
    (void)p, (void)bytes, (void)access, (void)n;
    return CU_OK;
}

/* Kept memory comes back for an extent of its size. It gives way to an extent of another size when both
 * exceed the range, or when the device has no other memory. */
static void test_spare_memory(void **state)
{
    (void)state;
    Error err;
    CudaDriver cu = {.vm_create = make_memory,
                     .vm_release = free_memory,
                     .vm_map = map_memory,
                     .vm_unmap = unmap_memory,
                     .vm_access = allow,
                     .vm_unreserve = unmap_memory};
    Space s = {.cu = &cu, .base = ARENA_PAGE, .reserved = 100 * MIB};
    assert_int_equal(space_map(&s, 0, 4 * MIB, &err), 0);
    assert_int_equal(space_map(&s, 4 * MIB, 40 * MIB, &err), 0);
    CuMemHandle kept = s.handles[1];
    space_unmap(&s, 4 * MIB, 40 * MIB, 1);
    assert_int_equal(live, 2);
    assert_int_equal(space_map(&s, 4 * MIB, 2 * MIB, &err), 0);
    assert_int_equal(live, 3);
    assert_int_equal(space_map(&s, 6 * MIB, 40 * MIB, &err), 0);
    assert_true(s.handles[2] == kept && live == 3);
    space_unmap(&s, 6 * MIB, 40 * MIB, 1);
    assert_int_equal(space_map(&s, 6 * MIB, 60 * MIB, &err), 0); /* 106 MiB of 100 */
    assert_int_equal(live, 3);
    space_unmap(&s, 6 * MIB, 60 * MIB, 1);
    most_live = live;
    assert_int_equal(space_map(&s, 6 * MIB, 8 * MIB, &err), 0);
    assert_int_equal(live, 3);
    most_live = 2;
    space_unmap(&s, 6 * MIB, 8 * MIB, 0);
    assert_int_equal(space_map(&s, 6 * MIB, 8 * MIB, &err), -1);
    most_live = 100;
    assert_int_equal(space_map(&s, 6 * MIB, 8 * MIB, &err), 0);
    space_unmap(&s, 6 * MIB, 8 * MIB, 1);
    space_unmap(&s, 4 * MIB, 2 * MIB, 0);
    space_unmap(&s, 0, 4 * MIB, 0);
    assert_int_equal(live, 1);
    space_close(&s);
    assert_int_equal(live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_buffers),
                                       cmocka_unit_test(test_reuse), cmocka_unit_test(test_blame),
                                       cmocka_unit_test(test_room),
                                       cmocka_unit_test(test_spare_memory)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
