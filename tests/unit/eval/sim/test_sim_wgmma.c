/* wgmma: products of all types and shapes against plain ones. The test lays the factors out as tensor
 * copies do: rows of 16, 32, 64 or 128 bytes whose chunks of 16 are exchanged by the number of the row. */
#include "tests/unit/eval/half_value.h"
#include "tests/unit/eval/sim/sim_checks.h"

typedef enum { F16, BF16, TF32, E4M3, E5M2, S8, U8 } Type;
typedef enum { TO_F32, TO_F16, TO_S32 } Sum;

static const struct {
    const char *name;
    int bits;
} types[] = {{"f16", 16}, {"bf16", 16}, {"tf32", 32}, {"e4m3", 8},
             {"e5m2", 8}, {"s8", 8},    {"u8", 8}};

typedef struct {
    Type a, b;
    Sum to;
    int n, wide;     /* columns; bytes of a row of a tile: 16 to 128 */
    int a_registers; /* A comes from registers */
    int a_transposed, b_transposed;
    int adds, negates, saturates; /* to the accumulators; A is negated */
    int step;                     /* of K in a row of a tile */
} Case;

enum { IMAGE = 96 << 10, B_AT = 48 << 10 };

static unsigned char image[IMAGE];

/* ---- numbers ---- */

/* Element i of a factor: numbers that every type has, and whose sums are exact. */
static int number(int i, int is_b, Type t)
{
    int v = (int)(((unsigned)i * 2654435761u + (unsigned)is_b * 977u) >> 20) % 9 - 4;
    return t == U8 ? v & 7 : v;
}

/* The bits of a float with `fraction` bits, for a small integer. */
static uint32_t float_of(int v, int fraction, int bias)
{
    int e = 0, m = abs(v);
    if (!v) return 0;
    while (m >> (e + 1)) e++;
    uint32_t sign = v < 0,
             exponent_bits = bias == 7    ? 4
                             : bias == 15 ? 5
                                          : 8,
             bits = (uint32_t)(e + bias) << fraction |
                    (fraction >= e ? (uint32_t)(m - (1 << e)) << (fraction - e) : 0);
    return bits | sign << (fraction + (int)exponent_bits);
}

static uint32_t bits_of(int v, Type t)
{
    switch (t) {
    case F16: return float_of(v, 10, 15);
    case BF16: return float_of(v, 7, 127);
    case TF32: return float_of(v, 23, 127) | 0x123; /* the low bits do not count */
    case E4M3: return float_of(v, 3, 7);
    case E5M2: return float_of(v, 2, 15);
    default: return (uint32_t)v & 255;
    }
}

static int depth(const Case *c)
{
    return 256 / types[c->a].bits;
}

/* ---- layouts ---- */

/* Chunk c of row r of tiles with rows of `wide` bytes: its place from the first tile's start. */
static int swizzled(int r, int c, int wide)
{
    int phase = wide == 128 ? r & 7 : wide == 64 ? r >> 1 & 3 : wide == 32 ? r >> 2 & 1 : 0;
    return r * wide + ((c ^ phase) * 16);
}

/* The place of an element in bytes, and the descriptor's offsets. x: row of A or column of B. */
static int place(const Case *c, int transposed, int bits, int x, int k, int *leading, int *stride)
{
    int e = 128 / bits; /* elements of a chunk */
    if (!transposed && c->wide == 16) {
        *leading = 8192;
        *stride = 128;
        return k / e * 8192 + x * 16 + k % e * bits / 8;
    }
    if (!transposed) {
        *leading = 16;
        *stride = 8 * c->wide;
        return swizzled(x, c->step * 2 + k / e, c->wide) + k % e * bits / 8;
    }
    if (c->wide == 16) {
        *stride = 384; /* between groups of 8 along x */
        *leading = 128;
        return x / 8 * 384 + k / 8 * 128 + k % 8 * 16 + x % 8 * 2;
    }
    int row = c->wide / 2;
    *leading = 16 * c->wide + 1024; /* a gap between the tiles */
    *stride = 8 * c->wide;
    return x / row * *leading + swizzled(k, x % row / 8, c->wide) + x % 8 * 2;
}

static uint64_t fill(const Case *c, Type t, int is_b, int count, int transposed, int at)
{
    int leading = 16, stride = 16, bytes = types[t].bits / 8;
    for (int x = 0; x < count; x++)
        for (int k = 0; k < depth(c); k++) {
            uint32_t v = bits_of(number(x * depth(c) + k, is_b, t), t);
            int to = at + place(c, transposed, types[t].bits, x, k, &leading, &stride);
            assert_true(to + bytes <= (is_b ? IMAGE : B_AT));
            memcpy(image + to, &v, (size_t)bytes);
        }
    int start = at + (!transposed && c->wide > 16 ? c->step * 32 : 0);
    uint64_t mode = c->wide == 128 ? 1 : c->wide == 64 ? 2 : c->wide == 32 ? 3 : 0;
    return (uint64_t)(start >> 4) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 |
           mode << 62;
}

/* ---- kernels ---- */

static void list(char *out, const char *form, int n)
{
    for (int i = 0; i < n; i++) out += sprintf(out, form, i ? ", " : "", i);
}

static int registers(const Case *c)
{
    return c->to == TO_F16 ? c->n / 4 : c->n / 2;
}

/* Writes the accumulators of thread t as out[i * 128 + t]. */
static char *kernel(const Case *c)
{
    static char names[2048], sums[8192];
    static const char *const to[] = {"f32", "f16", "s32"};
    int n = registers(c), halves = c->a <= BF16, at = n + (c->a_registers ? 4 : 1);
    char signs[64] = "", trans[16] = "", a[64], registers_a[96];
    list(names, "%s%%%d", n);
    list(sums, c->to == TO_F32 ? "%s\"+f\"(d[%d])" : "%s\"+r\"(d[%d])", n);
    if (c->to != TO_S32) snprintf(signs, sizeof signs, ", %d, 1", c->negates ? -1 : 1);
    if (halves && c->a_registers) snprintf(trans, sizeof trans, ", %d", c->b_transposed);
    if (halves && !c->a_registers)
        snprintf(trans, sizeof trans, ", %d, %d", c->a_transposed, c->b_transposed);
    snprintf(a, sizeof a, c->a_registers ? "{%%%d, %%%d, %%%d, %%%d}" : "%%%d", n, n + 1, n + 2,
             n + 3);
    snprintf(registers_a, sizeof registers_a, "%s",
             c->a_registers ? "\"r\"(r[0]), \"r\"(r[1]), \"r\"(r[2]), \"r\"(r[3])" : "\"l\"(da)");
    Buffer source;
    buffer_init(&source, 1 << 15);
    part_fill(&source, fixture_text("sim/wgmma.cu"), "kernel",
              "words=%d;type=%s;n=%d;first=%s;adds=%%%d;shape=m64n%dk%d.%s.%s.%s%s;sums_to=%s;a=%s;"
              "b=%%%d;"
              "flags=%s%s;sums=%s;registers=%s;bits=%s",
              IMAGE / 4, c->to == TO_F32 ? "float" : "u", n,
              c->to == TO_F32   ? "(float)(i - 3)"
              : c->to == TO_F16 ? "0xbc004000u" /* -1, 2 */
                                : "(u)(i == 1 ? 0x7ffffff0 : i - 3)",
              at + 1, c->n, depth(c), to[c->to], types[c->a].name, types[c->b].name,
              c->saturates ? ".satfinite" : "", names, a, at, signs, trans, sums, registers_a,
              c->to == TO_F32 ? "__float_as_uint(d[i])" : "d[i]");
    const char *reason;
    char *ptx = cuda_to_ptx_for(source.data, "sm_90a", NULL, &reason);
    buffer_release(&source);
    if (!ptx) fail_msg("%s", reason);
    return ptx;
}

/* ---- products ---- */

static double start_of(const Case *c, int reg, int high)
{
    if (!c->adds) return 0;
    if (c->to == TO_F16) return high ? -1 : 2;
    return c->to == TO_S32 && reg == 1 ? 0x7ffffff0 : reg - 3;
}

static double value_of(const Case *c, uint32_t bits, int high)
{
    float f;
    uint16_t half = (uint16_t)(bits >> 16 * high);
    memcpy(&f, &bits, 4);
    return c->to == TO_F32 ? (double)f : c->to == TO_F16 ? half_value(half) : (double)(int32_t)bits;
}

/* Lane l of warp w has of accumulator i: row 16 w + l / 4 + 8 (i / 2 mod 2), column 8 (i / 4) + 2 (l mod 4) +
 * i mod 2. */
static void compare(const Case *c, const uint32_t *out)
{
    for (int t = 0; t < 128; t++)
        for (int i = 0; i < c->n / 2; i++) {
            int row = t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2),
                column = i / 4 * 8 + t % 4 * 2 + i % 2, high = c->to == TO_F16 && i % 2,
                reg = c->to == TO_F16 ? i / 2 : i;
            double sum = 0, got = value_of(c, out[reg * 128 + t], high);
            for (int k = 0; k < depth(c); k++)
                sum += (double)number(row * depth(c) + k, 0, c->a) *
                       number(column * depth(c) + k, 1, c->b);
            sum = (c->negates ? -sum : sum) + start_of(c, reg, high);
            if (c->to == TO_S32 && sum > INT32_MAX) sum = c->saturates ? INT32_MAX : sum - 0x1p32;
            if (got != sum)
                fail_msg("%s %s n %d, rows of %d, %d %d: row %d column %d is %g, %g expected",
                         types[c->a].name, types[c->b].name, c->n, c->wide, c->a_transposed,
                         c->b_transposed, row, column, got, sum);
        }
}

/* The registers of A: two elements of 16 bits, or as many of another size, of the row; see PTX. */
static void fragment(const Case *c, uint32_t a[4][128])
{
    int e = 32 / types[c->a].bits;
    memset(a, 0, sizeof(uint32_t[4][128]));
    for (int t = 0; t < 128; t++)
        for (int i = 0; i < 4 * e; i++) {
            int row = t / 32 * 16 + t % 32 / 4 + (i / e % 2 ? 8 : 0),
                k = t % 4 * e + i % e + (i >= 2 * e ? 4 * e : 0);
            a[i / e][t] |= bits_of(number(row * depth(c) + k, 0, c->a), c->a)
                           << types[c->a].bits * (i % e);
        }
}

static void check(Case c)
{
    static uint32_t out[128 * 128], a[4][128];
    memset(image, 0x7f, sizeof image);
    uint64_t da = fill(&c, c.a, 0, 64, c.a_transposed, 0),
             db = fill(&c, c.b, 1, c.n, c.b_transposed, B_AT);
    fragment(&c, a);
    char *ptx = kernel(&c);
    sim_start(&sim, ptx);
    free(ptx);
    DevicePtr pi = sim_buffer(&sim, "image", image, sizeof image),
              pa = sim_buffer(&sim, "a", a, sizeof a),
              po = sim_buffer(&sim, "out", NULL, sizeof out);
    Shape s = shape(1, 128);
    s.shared = IMAGE;
    sim_run(&sim, s, 6, A(pi), A(pa), A(da), A(db), A(po), A(c.adds));
    assert_int_equal(sim_last_counts(sim.d)->by_class[INST_TENSOR], 4);
    assert_int_equal(sim_last_counts(sim.d)->tensor_flops, 2 * 64 * c.n * 16);
    int bytes = c.n * 8 + (c.a_registers ? 0 : 512); /* of each warp */
    assert_int_equal(sim_last_counts(sim.d)->shared_load_wavefronts, 4 * ((bytes + 127) / 128));
    sim_read(&sim, po, out, (size_t)registers(&c) * 512);
    compare(&c, out);
    sim_stop(&sim);
}

static void test_swizzles(void **state)
{
    (void)state;
    for (int wide = 16; wide <= 128; wide *= 2)
        for (int step = 0; step < wide / 32 || !step; step += 3)
            for (int t = 0; t < 4; t++)
                if (!t || !step)
                    check((Case){.a = F16,
                                 .n = 64,
                                 .wide = wide,
                                 .step = step,
                                 .adds = 1,
                                 .a_transposed = t & 1,
                                 .b_transposed = t >> 1});
}

static void test_types(void **state)
{
    (void)state;
    static const Case cases[] = {
        {.a = F16, .b = F16, .to = TO_F32},   {.a = F16, .b = F16, .to = TO_F16},
        {.a = BF16, .b = BF16, .to = TO_F32}, {.a = TF32, .b = TF32, .to = TO_F32},
        {.a = E4M3, .b = E5M2, .to = TO_F32}, {.a = E5M2, .b = E4M3, .to = TO_F16},
        {.a = S8, .b = U8, .to = TO_S32},     {.a = U8, .b = S8, .to = TO_S32}};
    for (int i = 0; i < 8; i++)
        for (int r = 0; r < 2; r++) {
            Case c = cases[i];
            c.a_registers = r;
            c.n = r ? 32 : 8;
            c.wide = r ? 128 : 32;
            c.adds = 1 - r;
            c.saturates = c.to == TO_S32 && i % 2;
            c.negates = c.to != TO_S32 && i % 2;
            check(c);
        }
}

static void test_columns(void **state)
{
    (void)state;
    static const int columns[] = {8, 24, 104, 128, 192, 256};
    for (int i = 0; i < 6; i++) {
        check((Case){.a = BF16, .b = BF16, .n = columns[i], .wide = 128, .step = 1, .adds = 1});
        check((Case){.a = F16, .n = columns[i], .wide = 64, .b_transposed = 1, .a_registers = 1});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_swizzles),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_columns),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
