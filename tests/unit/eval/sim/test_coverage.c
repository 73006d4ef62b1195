/* What all blocks of a launch write, by the slice of its stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "eval/device/tensor_map.h"
#include "eval/sim/coverage/coverage.h"
#include "eval/sim/coverage/reaching.h"
#include "eval/sim/coverage/visits.h"

enum { BYTES = 1 << 20 };

static const char head[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                           ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
                           ".reg .pred %p<9>;\n.reg .b32 %r<30>;\n.reg .b64 %rd<9>;\n"
                           "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\n"
                           "cvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r2, %ctaid.x;\n"
                           "mov.u32 %r3, %tid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %nctaid.x;\n";
static const char tail[] = "ret;\n}\n";
static const char put[] = "mul.wide.s32 %rd3, %r6, 4;\nadd.s64 %rd4, %rd2, %rd3;\n"
                          "st.global.u32 [%rd4], %r3;\n";

typedef struct {
    uint64_t holes, first, ran;
    int known;
} Found;

/* A launch of a kernel with this body, on one buffer of BYTES. */
typedef struct {
    DevMem mem;
    PtxModule m;
    uint64_t y;
    uint8_t wanted[1];
    DeviceLaunch l;
    CoverageOf of;
} Launched;

static void launch(Launched *x, const char *body, uint32_t grid, uint32_t block, uint32_t n)
{
    Error err;
    char text[4096];
    snprintf(text, sizeof text, "%s%s%s", head, body, tail);
    if (ptx_parse(text, strlen(text), &x->m, &err)) fail_msg("%s", err.text);
    assert_int_equal(devmem_open(&x->mem, 16 << 20, &err), 0);
    assert_int_equal(devmem_new(&x->mem, BYTES, "y", &x->y, &err), 0);
    x->wanted[0] = 1;
    x->l = (DeviceLaunch){.kernel = "k", .grid = {grid, 1, 1}, .block = {block, 1, 1}};
    memcpy(x->l.params, &x->y, sizeof x->y);
    memcpy(x->l.params + 8, &n, sizeof n);
    x->of = (CoverageOf){&x->mem, &x->m, &x->m.functions[0], &x->l, x->wanted, 4, SLICE_STORES, 0};
}

static void launched_close(Launched *x)
{
    devmem_close(&x->mem);
    ptx_release(&x->m);
}

/* What a kernel with this body writes or reads of BYTES, with n elements. */
static Found find_kind(SliceKind kind, const char *body, uint32_t grid, uint32_t block, uint32_t n)
{
    static Launched x;
    int64_t budget = 100000000;
    Coverage c;
    Found f;
    launch(&x, body, grid, block, n);
    x.of.kind = kind;
    coverage_find(&x.of, &budget, &c);
    f.holes = written_holes(&c.of[0], &f.first);
    f.ran = c.ran;
    f.known = !c.why[0];
    coverage_release(&c);
    launched_close(&x);
    return f;
}

static Found find(const char *body, uint32_t grid, uint32_t block, uint32_t n)
{
    return find_kind(SLICE_STORES, body, grid, block, n);
}

static Found find_with_put(const char *before, uint32_t grid, uint32_t n)
{
    char body[2048];
    snprintf(body, sizeof body, "%s%sdone:\n", before, put);
    return find(body, grid, 256, n);
}

/* Can a kernel with this body store to its buffer? */
static int is_steady(const char *body)
{
    static Launched x;
    launch(&x, body, 4, 256, 0);
    steady_find(&x.mem, &x.l, &x.m, &x.m.functions[0]);
    int steady = x.mem.allocs[0].steady;
    steady_forget(&x.mem);
    assert_false(x.mem.allocs[0].steady);
    launched_close(&x);
    return steady;
}

static void test_what_a_launch_stores_nothing_to(void **state)
{
    char body[1024];
    (void)state;
    assert_true(is_steady("ld.global.u32 %r6, [%rd2];\n"));
    assert_false(is_steady("red.global.add.u32 [%rd2], %r3;\n"));
    assert_false(is_steady("ld.global.u64 %rd3, [%rd2];\nst.global.u32 [%rd3], %r3;\n"));
    assert_false(is_steady(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [%r3], 16;\n"));
    snprintf(body, sizeof body, "mov.u32 %%r6, 0;\n%s", put);
    assert_false(is_steady(body));
}

static void test_one_block_stands_for_all(void **state)
{
    (void)state;
    Found f = find_with_put(
        "mad.lo.s32 %r6, %r2, %r4, %r3;\nsetp.ge.s32 %p1, %r6, %r1;\n@%p1 bra done;\n",
        BYTES / 1024, BYTES / 4);
    assert_true(f.known);
    assert_int_equal(f.holes, 0);
    assert_int_equal(f.ran, 1);
}

/* The left budget, and what is not written, of a launch that is asked about. */
static Found ask(Launched *x, int64_t *budget)
{
    Coverage c;
    Found f;
    coverage_find(&x->of, budget, &c);
    f.holes = written_holes(&c.of[0], &f.first);
    f.ran = c.ran;
    f.known = !c.why[0];
    coverage_release(&c);
    return f;
}

/* Both launches are asked about, one of which keeps what blocks have told. */
static void assert_same_answer(Launched *kept, Launched *fresh, int64_t budget)
{
    int64_t left = budget, left_fresh = budget;
    const Found f = ask(kept, &left), g = ask(fresh, &left_fresh);
    assert_int_equal(f.holes, g.holes);
    assert_int_equal(f.first, g.first);
    assert_int_equal(f.ran, g.ran);
    assert_int_equal(f.known, g.known);
    assert_int_equal(left, left_fresh);
}

static void test_a_block_tells_once(void **state)
{
    (void)state;
    static Launched kept, fresh;
    char body[2048];
    const int64_t enough = 100000000;
    uint32_t n = BYTES / 4 - 100;
    snprintf(body, sizeof body,
             "xor.b32 %%r2, %%r2, 5;\nmad.lo.s32 %%r6, %%r2, %%r4, %%r3;\n"
             "setp.ge.s32 %%p1, %%r6, %%r1;\n@%%p1 bra done;\n%sdone:\n",
             put);
    launch(&kept, body, BYTES / 1024, 256, n);
    launch(&fresh, body, BYTES / 1024, 256, n);
    kept.mem.visits = visits_new();
    int64_t left = enough;
    assert_true(ask(&fresh, &left).ran > 8);
    for (int i = 0; i < 2; i++) assert_same_answer(&kept, &fresh, enough);
    assert_same_answer(&kept, &fresh, (enough - left) / 2);
    n /= 2;
    memcpy(kept.l.params + 8, &n, sizeof n);
    memcpy(fresh.l.params + 8, &n, sizeof n);
    assert_same_answer(&kept, &fresh, enough);
    visits_free(kept.mem.visits);
    launched_close(&kept);
    launched_close(&fresh);
}

static void test_the_tail_is_another_block(void **state)
{
    (void)state;
    Found f = find_with_put(
        "mad.lo.s32 %r6, %r2, %r4, %r3;\nsetp.ge.s32 %p1, %r6, %r1;\n@%p1 bra done;\n",
        4 * BYTES / 1024, BYTES / 4 - 100);
    assert_true(f.known);
    assert_int_equal(f.holes, 100);
    assert_int_equal(f.first, BYTES - 400);
    assert_int_equal(f.ran, 3);
}

static void test_small_grids_and_repeated_blocks(void **state)
{
    (void)state;
    assert_int_equal(find_with_put("mad.lo.s32 %r6, %r2, %r4, %r3;\n", 1000, 0).holes, 6144);
    Found f = find_with_put("and.b32 %r7, %r2, 511;\nmad.lo.s32 %r6, %r7, %r4, %r3;\n", 1024, 0);
    assert_int_equal(f.holes, BYTES / 8);
    assert_int_equal(f.first, BYTES / 2);
    assert_int_equal(f.ran, 1);
}

/* Rows and columns by a quotient and a remainder, and every 16th block at a place that is not linear. */
static void test_quotients(void **state)
{
    (void)state;
    Found f = find_with_put("mad.lo.s32 %r6, %r2, %r4, %r3;\ndiv.u32 %r7, %r6, %r1;\n"
                            "rem.u32 %r8, %r6, %r1;\nmad.lo.s32 %r6, %r7, %r1, %r8;\n",
                            1024, 512);
    assert_true(f.known);
    assert_int_equal(f.holes, 0);
    f = find_with_put("mul.lo.s32 %r7, %r2, -1640531535;\nshr.u32 %r7, %r7, 28;\n"
                      "setp.eq.s32 %p1, %r7, 5;\n@%p1 bra done;\nmad.lo.s32 %r6, %r2, %r4, %r3;\n",
                      1024, 0);
    assert_true(f.known);
    assert_in_range(f.holes, 256 * 32, 256 * 96);
}

/* A field that is put into a number; the high half of a product of 64 bits, by which quotients are found. */
static void test_fields_and_high_halves(void **state)
{
    (void)state;
    Found f = find_with_put("bfi.b32 %r6, %r2, %r3, 8, 24;\n", 1024, 0);
    assert_true(f.known);
    assert_int_equal(f.holes, 0);
    assert_true(f.ran <= 4);
    f = find_with_put("mad.lo.s32 %r6, %r2, %r4, %r3;\ncvt.s64.s32 %rd5, %r6;\n"
                      "mul.hi.s64 %rd6, %rd5, 6148914691236517206;\n" /* a third */
                      "mul.lo.s64 %rd7, %rd6, 3;\nsub.s64 %rd8, %rd5, %rd7;\n"
                      "add.s64 %rd7, %rd7, %rd8;\ncvt.u32.u64 %r6, %rd7;\n",
                      1024, 0);
    assert_true(f.known);
    assert_int_equal(f.holes, 0);
    f = find_with_put("mad.lo.s32 %r6, %r2, %r4, %r3;\ncvt.s64.s32 %rd5, %r6;\n"
                      "mul.hi.u64 %rd6, %rd5, -1;\nadd.s64 %rd6, %rd6, 1;\n"
                      "cvt.u32.u64 %r6, %rd6;\n",
                      1024, 0);
    assert_true(f.known);
    assert_int_equal(f.first, 0);
    assert_int_equal(f.holes, 1); /* 1 is the place of 0, too */
}

/* for (i = block; i < all; i += grid) */
static void test_loops(void **state)
{
    (void)state;
    Found f =
        find("mad.lo.s32 %r6, %r2, %r4, %r3;\nmul.lo.s32 %r7, %r4, %r5;\n"
             "again:\nsetp.ge.s32 %p1, %r6, %r1;\n@%p1 bra done;\n"
             "mul.wide.s32 %rd3, %r6, 4;\nadd.s64 %rd4, %rd2, %rd3;\nst.global.u32 [%rd4], %r3;\n"
             "add.s32 %r6, %r6, %r7;\nbra again;\ndone:\n",
             132, 256, BYTES / 4);
    assert_true(f.known);
    assert_int_equal(f.holes, 0);
    assert_in_range(f.ran, 1, 4);
}

static void test_what_is_loaded_is_not_known(void **state)
{
    (void)state;
    Found f = find_with_put("ld.global.u32 %r6, [%rd2];\nsetp.eq.s32 %p1, %r6, 5;\n@%p1 bra done;\n"
                            "mad.lo.s32 %r6, %r2, %r4, %r3;\n",
                            1024, 0);
    assert_false(f.known);
    f = find_with_put("ld.global.u32 %r9, [%rd2];\nmad.lo.s32 %r6, %r2, %r4, %r3;\n", 1024, 0);
    assert_true(f.known);
    assert_int_equal(f.holes, 0);
}

/* cp.async reads as many bytes as its last operand says, and fills the others with zeros. */
static void test_copies_that_fill(void **state)
{
    (void)state;
    static const char copy[] = ".shared .align 16 .b8 s[4096];\nmad.lo.s32 %r6, %r2, %r4, %r3;\n"
                               "mul.wide.s32 %rd3, %r6, 16;\nadd.s64 %rd4, %rd2, %rd3;\n"
                               "mov.u32 %r7, s;\nsetp.lt.u32 %p1, %r3, 192;\n"
                               "selp.b32 %r8, 16, 0, %p1;\n"
                               "cp.async.cg.shared.global [%r7], [%rd4], 16, %r8;\n";
    Found f = find_kind(SLICE_LOADS, copy, BYTES / 16 / 256, 256, 0);
    assert_true(f.known);
    assert_int_equal(f.holes, BYTES / 4 / 4);
    assert_int_equal(f.first, 192 * 16);
}

/* Boxes of 1 by 8 by 64 of a tensor of 5 by 60 by 250 floats in rows of 1024 bytes, the first column of boxes
 * three elements outside: what the sides cut off is not written. */
static const char boxes[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .align 64 .b8 "
    "p[128])\n{\n"
    ".reg .pred %p<9>;\n.reg .b32 %r<30>;\n.reg .b64 %rd<9>;\nmov.b64 %rd1, p;\n"
    "cvta.param.u64 %rd2, %rd1;\nmov.u32 %r3, %tid.x;\nsetp.ne.s32 %p1, %r3, 0;\n@%p1 bra done;\n"
    "mov.u32 %r4, %ctaid.x;\nshl.b32 %r5, %r4, 6;\nadd.s32 %r6, %r5, -3;\nmov.u32 %r7, %ctaid.y;\n"
    "shl.b32 %r8, %r7, 3;\nmov.u32 %r9, %ctaid.z;\n"
    "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%rd2, {%r6, %r8, %r9}], [%r10];\n"
    "done: ret;\n}\n";

static void test_boxes_of_tensors(void **state)
{
    (void)state;
    static Launched x;
    Error err;
    Coverage c;
    int64_t budget = 100000000;
    uint64_t first;
    launch(&x, "", 4, 32, 0);
    x.l.grid[1] = 8;
    x.l.grid[2] = 5;
    ptx_release(&x.m);
    if (ptx_parse(boxes, strlen(boxes), &x.m, &err)) fail_msg("%s", err.text);
    x.of.kernel = &x.m.functions[0];
    TensorMap map = {.base = x.y,
                     .size = {250, 60, 5},
                     .stride = {1024, 60 * 1024},
                     .box = {64, 8, 1},
                     .type = TENSOR_MAP_F32,
                     .rank = 3};
    memcpy(x.l.params, &map, sizeof map);
    x.l.n_maps = 1;
    coverage_find(&x.of, &budget, &c);
    assert_string_equal(c.why, "");
    assert_true(c.ran <= 6); /* of 160 */
    assert_int_equal(written_units(&c.of[0], &first), 5 * 60 * 250);
    assert_int_equal(first, 0);
    for (uint64_t row = 0; row < 300; row++) {
        assert_true(written_has(&c.of[0], row * 1024, row * 1024 + 1000));
        assert_false(written_has(&c.of[0], row * 1024 + 1000, row * 1024 + 1004));
    }
    coverage_release(&c);
    x.l.n_maps = 0; /* no map of the launch: it is not known */
    coverage_find(&x.of, &budget, &c);
    assert_string_not_equal(c.why, "");
    coverage_release(&c);
    launched_close(&x);
}

/* The blocks that store one element, by a budget. */
static int reaching(const char *body, uint32_t element, int64_t budget, BlockSet *to)
{
    static Launched x;
    char text[2048];
    Coverage c;
    Ranges bytes = {0};
    snprintf(text, sizeof text, "%s%s", body, put);
    launch(&x, text, 1024, 256, 7);
    x.of.kind = SLICE_CHANGES;
    ranges_add(&bytes, x.y + 4 * element, x.y + 4 * element + 4);
    ranges_join(&bytes);
    *to = (BlockSet){.blocks = 1024};
    int rc = coverage_reaching(&x.of, &bytes, 1024, &budget, to, &c);
    ranges_release(&bytes);
    launched_close(&x);
    return rc;
}

/* Every block is unlike the others, since bits of its number are flipped, and no budget is enough for all
 * threads of all. Few threads of each tell which blocks lie near an element. */
static void test_few_threads_find_the_block(void **state)
{
    static const char rows[] = "xor.b32 %r7, %r2, 5;\nxor.b32 %r7, %r7, 5;\n"
                               "mad.lo.s32 %r6, %r7, %r4, %r3;\ndiv.u32 %r7, %r6, %r1;\n"
                               "mul.lo.s32 %r8, %r7, %r1;\nsub.s32 %r9, %r6, %r8;\n"
                               "mad.lo.s32 %r6, %r7, %r1, %r9;\n";
    BlockSet all, some, none;
    (void)state;
    assert_int_equal(reaching(rows, 100000, 100000000, &all), 0);
    assert_int_equal(reaching(rows, 100000, 2000000, &some), 0);
    assert_int_equal(all.n, 1);
    assert_int_equal(some.n, 1);
    assert_int_equal(all.id[0], 100000 / 256);
    assert_int_equal(some.id[0], 100000 / 256);
    assert_int_equal(reaching(rows, 100000, 100000, &none), -1);
    block_set_release(&all), block_set_release(&some), block_set_release(&none);
}

/* A block's number is an image, a row of it and a part of the row, and threads of a block are in several
 * rows: few blocks stand for all. Quotients are of 64 bits where a number does not fit in 32. */
static void test_coordinates_of_a_number(void **state)
{
    static const char image[] = "rem.u32 %r7, %r2, 50;\ndiv.u32 %r8, %r2, 50;\n"
                                "mad.lo.s32 %r7, %r7, %r4, %r3;\ndiv.u32 %r9, %r7, 160;\n"
                                "rem.u32 %r10, %r7, 160;\nmad.lo.s32 %r9, %r9, 160, %r10;\n"
                                "mad.lo.s32 %r6, %r8, 12800, %r9;\n";
    static const char high[] = "cvt.u64.u32 %rd5, %r2;\ncvt.u64.u32 %rd6, %r4;\n"
                               "or.b64 %rd7, %rd5, %rd6;\nand.b64 %rd8, %rd7, -4294967296;\n"
                               "setp.ne.s64 %p1, %rd8, 0;\n@%p1 bra done;\n"
                               "mad.lo.s32 %r6, %r2, %r4, %r3;\n";
    static const char eighths[] = "cvt.s64.s32 %rd5, %r2;\nshr.s64 %rd6, %rd5, 63;\n"
                                  "add.s64 %rd6, %rd5, %rd6;\nand.b64 %rd6, %rd6, 4294967288;\n"
                                  "cvt.u32.u64 %r7, %rd6;\nand.b32 %r8, %r2, 7;\n"
                                  "add.s32 %r7, %r7, %r8;\nmad.lo.s32 %r6, %r7, %r4, %r3;\n";
    (void)state;
    Found f = find_with_put(image, 1000, 0);
    assert_true(f.known && f.ran < 50);
    assert_int_equal(f.holes, BYTES / 4 - 1000 * 256);
    f = find_with_put(high, 1024, 0);
    assert_true(f.known && f.holes == 0 && f.ran == 1);
    f = find_with_put(eighths, 1024, 0);
    assert_true(f.known && f.holes == 0 && f.ran == 1);
}

typedef struct {
    uint64_t digest, blocks;
} Seen;

/* In any order of blocks, but not of a block's runs. */
static int see_runs(void *to, SliceRun *r)
{
    Seen *s = to;
    uint64_t h = (uint64_t)slice_run_number(r);
    for (int i = 0; i < r->n_runs; i++)
        h = (h ^ (uint64_t)r->runs[i].at ^ (uint64_t)r->runs[i].bytes << 40) *
            UINT64_C(0x9e3779b97f4a7c15);
    s->digest += h ^ h >> 29;
    s->blocks++;
    return 0;
}

/* What a block tells of others in its box is what they tell. */
static void test_some_blocks_by_others(void **state)
{
    enum { BLOCKS = 960 };
    static const char *const bodies[] = {
        "rem.u32 %r7, %r2, 48;\ndiv.u32 %r8, %r2, 48;\n"
        "mad.lo.s32 %r7, %r7, %r4, %r3;\nmad.lo.s32 %r6, %r8, 12800, %r7;\n",
        "xor.b32 %r2, %r2, 5;\nmad.lo.s32 %r6, %r2, %r4, %r3;\n"
        "setp.ge.s32 %p1, %r6, %r1;\n@%p1 bra done;\n",
        "rem.u32 %r7, %r2, 3;\nmul.lo.s32 %r7, %r7, %r7;\nmad.lo.s32 %r6, %r7, 100, %r3;\n"};
    static Launched x;
    uint64_t id[BLOCKS];
    char body[2048];
    Coverage unused = {0};
    (void)state;
    for (int i = 0; i < BLOCKS; i++) id[i] = (uint64_t)(i * 7 % BLOCKS);
    for (size_t k = 0; k < 3 * sizeof bodies / sizeof *bodies; k++) {
        Seen together = {0, 0}, alone = {0, 0};
        int64_t left = 100000000, rest = left;
        snprintf(body, sizeof body, "%s%sdone:\n", bodies[k / 3], put);
        launch(&x, body, BLOCKS, 256, 200000);
        if (k % 3) x.mem.visits = visits_new();
        for (int i = 0; i < BLOCKS && k % 3 < 2; i++)
            coverage_visit_some(&x.of, &id[i], 1, &rest, see_runs, &alone, &unused);
        coverage_visit_some(&x.of, id, BLOCKS, &left, see_runs, &together, &unused);
        for (int i = 0; i < BLOCKS && k % 3 == 2; i++)
            coverage_visit_some(&x.of, &id[i], 1, &rest, see_runs, &alone, &unused);
        assert_int_equal(together.blocks, BLOCKS);
        assert_int_equal(together.digest, alone.digest);
        assert_int_equal(left, rest);
        visits_free(x.mem.visits);
        launched_close(&x);
    }
}

/* Threads store to every third element. */
static void test_rows_of_elements_apart(void **state)
{
    (void)state;
    Found f = find_with_put("mad.lo.s32 %r7, %r2, %r4, %r3;\nmul.lo.s32 %r6, %r7, 3;\n", 340, 0);
    assert_int_equal(f.holes, BYTES / 4 - 340 * 256);
    assert_int_equal(f.first, 4);
}

/* Where memory decides, the blocks of both sides may store the element. What both sides have in common is
 * known behind them; what they set to different values is not. */
static void test_both_sides_of_a_condition(void **state)
{
    static const char stores[] =
        "ld.global.u32 %r9, [%rd2];\nsetp.eq.s32 %p1, %r9, 5;\nmad.lo.s32 %r6, %r2, %r4, %r3;\n"
        "@%p1 bra other;\nmov.u32 %r7, 1;\nbra both;\nother:\nmov.u32 %r7, 1;\n"
        "xor.b32 %r10, %r6, 256;\nmul.wide.s32 %rd5, %r10, 4;\nadd.s64 %rd6, %rd2, %rd5;\n"
        "st.global.u32 [%rd6], %r3;\nboth:\nmul.lo.s32 %r6, %r6, %r7;\n";
    static const char differ[] =
        "ld.global.u32 %r9, [%rd2];\nsetp.eq.s32 %p1, %r9, 5;\nmad.lo.s32 %r6, %r2, %r4, %r3;\n"
        "@%p1 bra other;\nmov.u32 %r7, 1;\nbra both;\nother:\nmov.u32 %r7, 2;\n"
        "both:\nmul.lo.s32 %r6, %r6, %r7;\n";
    BlockSet some, none;
    (void)state;
    assert_int_equal(reaching(stores, 100000, 100000000, &some), 0);
    assert_int_equal(some.n, 2);
    assert_true(block_set_has(&some, 100000 / 256));
    assert_true(block_set_has(&some, 100000 / 256 ^ 1));
    assert_int_equal(reaching(differ, 100000, 100000000, &none), -1);
    block_set_release(&some), block_set_release(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_block_stands_for_all),
                                       cmocka_unit_test(test_coordinates_of_a_number),
                                       cmocka_unit_test(test_rows_of_elements_apart),
                                       cmocka_unit_test(test_some_blocks_by_others),
                                       cmocka_unit_test(test_the_tail_is_another_block),
                                       cmocka_unit_test(test_a_block_tells_once),
                                       cmocka_unit_test(test_a_block_tells_once),
                                       cmocka_unit_test(test_small_grids_and_repeated_blocks),
                                       cmocka_unit_test(test_quotients),
                                       cmocka_unit_test(test_fields_and_high_halves),
                                       cmocka_unit_test(test_loops),
                                       cmocka_unit_test(test_what_is_loaded_is_not_known),
                                       cmocka_unit_test(test_copies_that_fill),
                                       cmocka_unit_test(test_boxes_of_tensors),
                                       cmocka_unit_test(test_few_threads_find_the_block),
                                       cmocka_unit_test(test_both_sides_of_a_condition),
                                       cmocka_unit_test(test_what_a_launch_stores_nothing_to)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
