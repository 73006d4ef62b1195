/* Copies by tensor maps against a plain computation: every type size, swizzle and number of dimensions, boxes
 * that lie partly or wholly outside of the tensor, tensors whose rows have gaps. */
#include "base/random.h"
#include "eval/device/tensor_map.h"
#include "tests/unit/eval/sim/sim_checks.h"

enum { SHARED_BYTES = 64 << 10, TENSOR_BYTES = 256 << 10, MOST_BOX = 32 << 10, ROUNDS = 8 };

/* Parameters: the map, memory of SHARED_BYTES, coordinates, the place of the box, its bytes. */
#define COPY_HEAD                                                                                  \
    HEAD                                                                                           \
        ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 c0, "       \
        ".param "                                                                                  \
        ".u32 c1, .param .u32 c2, .param .u32 c3, .param .u32 c4, .param .u32 place, .param .u32 " \
        "bytes, .param .u32 room)\n{\n.reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .b64 "            \
        "%rd<32>;\n.shared .align "                                                                \
        "1024 "                                                                                    \
        ".b8 s[65536];\n.shared .align 8 .b8 bar[8];\nmov.b64 %rd1, map;\ncvta.param.u64 %rd2, "   \
        "%rd1;\nld.param.u64 %rd3, [out];\nld.param.u32 %r10, [c0];\nld.param.u32 %r11, [c1];\n"   \
        "ld.param.u32 %r12, [c2];\nld.param.u32 %r13, [c3];\nld.param.u32 %r14, [c4];\nld.param."  \
        "u32 %r5, [place];\nld.param.u32 %r6, [bytes];\nld.param.u32 %r16, [room];\nmov.u32 %r7, " \
        "s;\nadd.u32 %r7, %r7, %r5;\n"                                                             \
        "mov.u32 %r8, bar;\ncvt.u64.u32 %rd4, %r5;\nadd.u64 %rd3, %rd3, %rd4;\nmov.u32 %r9, 0;\n"
/* Shared memory begins as -1, which stays between rows. */
#define FILL                                                                                     \
    "mov.u32 %r15, %r7;\nmov.u32 %r20, -1;\nF: st.shared.v4.u32 [%r15], {%r20, %r20, %r20, "     \
    "%r20};\nadd.u32 %r15, %r15, 16;\nadd.u32 %r9, %r9, 16;\nsetp.lt.u32 %p2, %r9, %r16;\n@%p2 " \
    "bra F;\nmov.u32 %r9, 0;\n"
#define BAR_INIT "mbarrier.init.shared::cta.b64 [%r8], 1;\nfence.proxy.async.shared::cta;\n"
#define BAR_EXPECT "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], %r6;\n"
#define BAR_WAIT "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r8], 0;\n@!%p1 bra W;\n"
/* s to out, or out to s, from the place of the box on */
#define COPY_OUT                                                                                   \
    "L: ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r7];\nst.global.v4.u32 [%rd3], {%r20, %r21, " \
    "%r22, %r23};\nadd.u32 %r7, %r7, 16;\nadd.u64 %rd3, %rd3, 16;\nadd.u32 %r9, %r9, 16;\n"        \
    "setp.lt.u32 %p2, %r9, %r16;\n@%p2 bra L;\n"
#define COPY_IN                                                                                    \
    "mov.u32 %r15, %r7;\nL: ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd3];\nst.shared.v4.u32 " \
    "[%r15], {%r20, %r21, %r22, %r23};\nadd.u32 %r15, %r15, 16;\nadd.u64 %rd3, %rd3, "             \
    "16;\nadd.u32 "                                                                                \
    "%r9, %r9, 16;\nsetp.lt.u32 %p2, %r9, %r16;\n@%p2 bra L;\n"
#define LOAD                                                                                    \
    "cp.async.bulk.tensor.%dd.%s.global%s.mbarrier::complete_tx::bytes [%%r7], [%%rd2, {%s}], " \
    "[%%r8];\n"
#define STORE "cp.async.bulk.tensor.%dd.global.shared::cta%s.bulk_group [%%rd2, {%s}], [%%r7];\n"
#define STORED "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"

static const char *const coordinates[] = {"%r10", "%r10, %r11", "%r10, %r11, %r12",
                                          "%r10, %r11, %r12, %r13", "%r10, %r11, %r12, %r13, %r14"};

typedef struct {
    TensorMap map;
    int32_t at[TENSOR_MAP_RANK];
    uint32_t place;
    int stores;
} Box;

static unsigned char tensor[TENSOR_BYTES], got[TENSOR_BYTES], want[TENSOR_BYTES],
    memory[SHARED_BYTES];
static Random numbers;

static int below(int n)
{
    return (int)random_below(&numbers, (uint64_t)n);
}

/* ---- the plain computation ---- */

/* Where a 16-byte chunk of a row of `span` bytes is: rows of a tile exchange their chunks. */
static uint32_t plain_place(uint32_t at, int span)
{
    uint32_t row = at / 128, chunk = at / 16 % 8;
    if (span == 128) chunk ^= row % 8;
    if (span == 64) chunk ^= row % 4;
    if (span == 32) chunk ^= row % 2;
    return row * 128 + chunk * 16 + at % 16;
}

/* Rows of a box lie as far apart as the swizzle's span. */
static uint32_t pitch_of(const TensorMap *m)
{
    return m->swizzle ? m->swizzle : m->box[0] * tensor_map_element((TensorMapType)m->type);
}

/* Behind the last column that a copy of the box reaches: a store writes whole units of 16 bytes. */
static int64_t row_end(const Box *b)
{
    const int64_t unit = 16 / tensor_map_element((TensorMapType)b->map.type),
                  size = (int64_t)b->map.size[0];
    return b->stores ? (size + unit - 1) / unit * unit : size;
}

/* Calls for each element of the box: its place in shared memory, and in the tensor, or -1. */
static void each(const Box *b, void (*see)(uint32_t shared, int64_t tensor, uint32_t element))
{
    const TensorMap *m = &b->map;
    uint32_t e = tensor_map_element((TensorMapType)m->type), n = tensor_map_box_bytes(m) / e;
    for (uint32_t i = 0; i < n; i++) {
        int64_t at = 0;
        uint32_t rest = i;
        for (int d = 0; d < m->rank; d++) {
            int64_t c = b->at[d] + (int64_t)(rest % m->box[d]);
            rest /= m->box[d];
            if (at >= 0 && c >= 0 && c < (d ? (int64_t)m->size[d] : row_end(b)))
                at += c * (int64_t)(d ? m->stride[d - 1] : e);
            else
                at = -1;
        }
        uint32_t place = i / m->box[0] * pitch_of(m) + i % m->box[0] * e;
        see(plain_place(b->place + place, m->swizzle), at, e);
    }
}

static void load_element(uint32_t shared, int64_t from, uint32_t element)
{
    if (from < 0)
        memset(want + shared, 0, element);
    else
        memcpy(want + shared, tensor + from, element);
}

static void store_element(uint32_t shared, int64_t to, uint32_t element)
{
    if (to >= 0) memcpy(want + to, memory + shared, element);
}

/* ---- boxes ---- */

static const TensorMapType types[] = {TENSOR_MAP_U8,  TENSOR_MAP_F16, TENSOR_MAP_BF16,
                                      TENSOR_MAP_F32, TENSOR_MAP_I32, TENSOR_MAP_F64};

static Box draw_box(int rank, int swizzle, int stores, DevicePtr base)
{
    Box b = {.map = {.base = base, .rank = (uint8_t)rank, .swizzle = (uint8_t)swizzle}};
    TensorMap *m = &b.map;
    m->type = (int16_t)types[below(sizeof types / sizeof *types)];
    uint32_t e = tensor_map_element((TensorMapType)m->type), bytes;
    int row = 16 * (1 + below(swizzle ? swizzle / 16 : 12));
    m->box[0] = (uint32_t)(swizzle && below(2) ? swizzle : row) / e;
    if (m->box[0] > 256) m->box[0] = 256;
    m->size[0] = 1 + (uint64_t)below(2 * (int)m->box[0]);
    uint64_t stride = (m->size[0] * e + 15) / 16 * 16 + 16 * (uint64_t)below(3);
    bytes = pitch_of(m);
    for (int d = 1; d < rank; d++) {
        m->box[d] = 1 + (uint32_t)below(rank == 2 ? 20 : 5);
        if (bytes * m->box[d] > MOST_BOX) m->box[d] = 1;
        bytes *= m->box[d];
        m->size[d] = 1 + (uint64_t)below(6);
        m->stride[d - 1] = stride;
        stride = stride * m->size[d] + 16 * (uint64_t)below(2);
    }
    assert_true(stride <= TENSOR_BYTES);
    for (int d = 0; d < rank; d++)
        b.at[d] =
            below(3) ? below((int)m->size[d]) : below(2 * (int)m->box[d] + 9) - (int)m->box[d] - 4;
    const int unit =
        16 / (int)e; /* columns: a box begins at a multiple, and of a store in its row */
    b.at[0] = (b.at[0] + 256 * unit) / unit * unit - 256 * unit;
    if (stores && b.at[0] < 0) b.at[0] = 0;
    b.stores = stores;
    b.place = (uint32_t)below(20) * 128;
    return b;
}

static int launch_box(const Box *b, DevicePtr out)
{
    const TensorMap *m = &b->map;
    DeviceLaunch l = {
        .module = sim.m, .kernel = "k", .grid = {1, 1, 1}, .block = {1, 1, 1}, .n_maps = 1};
    uint32_t bytes = tensor_map_box_bytes(&b->map),
             room = bytes / (m->box[0] * tensor_map_element((TensorMapType)m->type)) * pitch_of(m);
    memcpy(l.params, &b->map, sizeof b->map);
    memcpy(l.params + 128, &out, 8);
    memcpy(l.params + 136, b->at, sizeof b->at);
    memcpy(l.params + 156, &b->place, 4);
    memcpy(l.params + 160, &bytes, 4);
    memcpy(l.params + 164, &room, 4);
    int r = ops->run(sim.d, &l, 1, &sim.fault);
    if (r < 0) fail_msg("%s", sim.fault.error.text);
    return r;
}

static void fill(unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] = (unsigned char)random_u64(&numbers);
}

static void same(const Box *b, size_t bytes, int rank, int swizzle)
{
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != want[i])
            fail_msg(
                "byte %zu is %d, expected %d (rank %d, swizzle %d, type %d, box %u of %llu, at %d)",
                i, got[i], want[i], rank, swizzle, b->map.type, b->map.box[0],
                (unsigned long long)b->map.size[0], b->at[0]);
}

static void load_boxes(int rank, int swizzle)
{
    char ptx[4096], copy[256];
    static const char *const spaces[] = {"shared::cluster", "shared::cta"};
    snprintf(copy, sizeof copy, LOAD, rank, spaces[rank % 2], rank % 3 ? ".tile" : "",
             coordinates[rank - 1]);
    snprintf(ptx, sizeof ptx, "%s%s%s", COPY_HEAD FILL BAR_INIT BAR_EXPECT, copy,
             BAR_WAIT COPY_OUT TAIL);
    sim_start(&sim, ptx);
    DevicePtr p = sim_buffer(&sim, "input x", tensor, TENSOR_BYTES),
              out = sim_buffer(&sim, "output y", NULL, SHARED_BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        Box b = draw_box(rank, swizzle, 0, p);
        fill(tensor, TENSOR_BYTES);
        ops->write(sim.d, p, tensor, TENSOR_BYTES, &sim.err);
        ops->poison(sim.d, out, &sim.err);
        memset(want, 255, SHARED_BYTES);
        if (launch_box(&b, out)) fail_msg("%s", sim.fault.message);
        each(&b, load_element);
        sim_read(&sim, out, got, SHARED_BYTES);
        same(&b, SHARED_BYTES, rank, swizzle);
    }
    sim_stop(&sim);
}

static void store_boxes(int rank, int swizzle)
{
    char ptx[4096], copy[256];
    snprintf(copy, sizeof copy, STORE, rank, rank % 3 ? "" : ".tile", coordinates[rank - 1]);
    snprintf(ptx, sizeof ptx, "%s%s%s", COPY_HEAD COPY_IN "fence.proxy.async.shared::cta;\n", copy,
             STORED TAIL);
    sim_start(&sim, ptx);
    DevicePtr p = sim_buffer(&sim, "output y", NULL, TENSOR_BYTES),
              from = sim_buffer(&sim, "input x", memory, SHARED_BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        Box b = draw_box(rank, swizzle, 1, p);
        fill(memory, SHARED_BYTES);
        ops->write(sim.d, from, memory, SHARED_BYTES, &sim.err);
        ops->poison(sim.d, p, &sim.err);
        memset(want, 255, TENSOR_BYTES);
        if (launch_box(&b, from)) fail_msg("%s", sim.fault.message);
        each(&b, store_element);
        sim_read(&sim, p, got, TENSOR_BYTES);
        same(&b, TENSOR_BYTES, rank, swizzle);
    }
    sim_stop(&sim);
}

static void test_loads(void **state)
{
    (void)state;
    random_init(&numbers, 1, 1);
    for (int rank = 1; rank <= TENSOR_MAP_RANK; rank++)
        for (int swizzle = 16; swizzle <= 128; swizzle *= 2)
            load_boxes(rank, swizzle == 16 ? 0 : swizzle);
}

static void test_stores(void **state)
{
    (void)state;
    random_init(&numbers, 2, 1);
    for (int rank = 1; rank <= TENSOR_MAP_RANK; rank++)
        for (int swizzle = 16; swizzle <= 128; swizzle *= 2)
            store_boxes(rank, swizzle == 16 ? 0 : swizzle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loads), cmocka_unit_test(test_stores)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
