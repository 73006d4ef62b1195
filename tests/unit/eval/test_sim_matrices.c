/* Matrix instructions: mma and ldmatrix against sums of the host, and every form of wmma. */
#include "sim_support.h"

static Sim sim;

/* ---- mma, ldmatrix ---- */

/* One warp multiplies halves of 16 x 16 by 16 x 8 with fp32 sums (a, b, c to y) and of 16 x 8 by 8
 * x 8 with half sums (yh), tf32 of 16 x 8 by 8 x 8 (ta, tb to yt) and bytes of 16 x 32 by 32 x 8
 * (ia, ib to yi). */
static const char *mma_source =
    "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\ntypedef unsigned u;\n"
    "extern \"C\" __global__ void k(const __half *a, const __half *b, const float *c, float "
    "*y, __half *yh, const float *ta, const float *tb, float *yt, const signed char *ia, "
    "const signed char *ib, int *yi) {\n"
    "__shared__ __align__(16) __half sa[16][16], sb[16][8]; int l = threadIdx.x, g = l >> 2, "
    "t = l & 3;\n"
    "for (int i = l; i < 256; i += 32) sa[i / 16][i % 16] = a[i]; for (int i = l; i < 128; i "
    "+= 32) sb[i / 8][i % 8] = b[i]; __syncthreads();\n"
    "u A[4], B[2]; u pa = (u)__cvta_generic_to_shared(&sa[l & 15][(l >> 4) * 8]), pb = "
    "(u)__cvta_generic_to_shared(&sb[l & 15][0]);\n"
    "asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\" : "
    "\"=r\"(A[0]), \"=r\"(A[1]), \"=r\"(A[2]), \"=r\"(A[3]) : \"r\"(pa));\n"
    "asm volatile(\"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\" : "
    "\"=r\"(B[0]), \"=r\"(B[1]) : \"r\"(pb));\n"
    "float C[4], D[4]; for (int i = 0; i < 4; i++) C[i] = c[(g + 8 * (i >> 1)) * 8 + 2 * t + "
    "(i & 1)];\n"
    "asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
    "{%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};\" : \"=f\"(D[0]), \"=f\"(D[1]), "
    "\"=f\"(D[2]), \"=f\"(D[3])\n"
    " : \"r\"(A[0]), \"r\"(A[1]), \"r\"(A[2]), \"r\"(A[3]), \"r\"(B[0]), \"r\"(B[1]), "
    "\"f\"(C[0]), \"f\"(C[1]), \"f\"(C[2]), \"f\"(C[3]));\n"
    "for (int i = 0; i < 4; i++) y[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)] = D[i];\n"
    "u H[2]; asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, "
    "{%2,%3}, {%4}, {%5,%5};\" : \"=r\"(H[0]), \"=r\"(H[1]) : \"r\"(A[0]), \"r\"(A[1]), "
    "\"r\"(B[0]), \"r\"(0));\n"
    "for (int i = 0; i < 2; i++) *(u *)&yh[(g + 8 * i) * 8 + 2 * t] = H[i];\n"
    "u TA[4], TB[2]; for (int i = 0; i < 4; i++) TA[i] = __float_as_uint(ta[(g + 8 * (i & "
    "1)) * 8 + t + 4 * (i >> 1)]); for (int i = 0; i < 2; i++) TB[i] = __float_as_uint(tb[(t "
    "+ 4 * i) * 8 + g]);\n"
    "asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
    "{%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};\" : \"=f\"(D[0]), \"=f\"(D[1]), "
    "\"=f\"(D[2]), \"=f\"(D[3])\n"
    " : \"r\"(TA[0]), \"r\"(TA[1]), \"r\"(TA[2]), \"r\"(TA[3]), \"r\"(TB[0]), \"r\"(TB[1]), "
    "\"f\"(0.0f));\n"
    "for (int i = 0; i < 4; i++) yt[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)] = D[i];\n"
    "u IA[4], IB[2]; for (int i = 0; i < 4; i++) IA[i] = *(const u *)&ia[(g + 8 * (i & 1)) * "
    "32 + 4 * t + 16 * (i >> 1)]; for (int i = 0; i < 2; i++) IB[i] = *(const u *)&ib[g * 32 "
    "+ 4 * t + 16 * i]; int I[4];\n"
    "asm volatile(\"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, "
    "{%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};\" : \"=r\"(I[0]), \"=r\"(I[1]), "
    "\"=r\"(I[2]), \"=r\"(I[3])\n"
    " : \"r\"(IA[0]), \"r\"(IA[1]), \"r\"(IA[2]), \"r\"(IA[3]), \"r\"(IB[0]), \"r\"(IB[1]), "
    "\"r\"(5)); for (int i = 0; i < 4; i++) yi[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)] = "
    "I[i]; }\n";

static _Float16 a[256], b[128], yh[128];
static float c[128], y[128], ta[128], tb[64], yt[128];
static signed char ia[512], ib[256];
static int yi[128];

static void fill(void)
{
    for (int i = 0; i < 512; i++) {
        if (i < 256)
            a[i] = (_Float16)((float)(i * 37 % 41) / 8 - 2),
            ib[i] = (signed char)(i * 91 % 251 - 120);
        if (i < 128)
            b[i] = (_Float16)((float)(i * 23 % 29) / 4 - 3), c[i] = (float)i,
            ta[i] = (float)(i * 13 % 17) / 4;
        if (i < 64) tb[i] = (float)(i * 11 % 19) - 9;
        ia[i] = (signed char)(i * 57 % 253 - 126);
    }
}

/* Compares with sums of the host. All values are exact in fp32. */
static void check_products(void)
{
    for (int i = 0; i < 128; i++) {
        int row = i / 8, col = i % 8, isum = 5;
        float sum = c[i], half = 0, tsum = 0;
        for (int k = 0; k < 16; k++) {
            sum += (float)a[row * 16 + k] * (float)b[k * 8 + col];
            if (k < 8)
                half += (float)a[row * 16 + k] * (float)b[k * 8 + col],
                    tsum += ta[row * 8 + k] * tb[k * 8 + col];
        }
        for (int k = 0; k < 32; k++) isum += ia[row * 32 + k] * ib[col * 32 + k];
        assert_true(y[i] == sum && yh[i] == (_Float16)half && yt[i] == tsum);
        assert_int_equal(yi[i], isum);
    }
}

static void test_matrices(void **state)
{
    (void)state;
    sim_start_cuda(&sim, mma_source);
    fill();
    DevicePtr p[11] = {
        sim_buffer(&sim, "a", a, sizeof a),      sim_buffer(&sim, "b", b, sizeof b),
        sim_buffer(&sim, "c", c, sizeof c),      sim_buffer(&sim, "y", NULL, sizeof y),
        sim_buffer(&sim, "yh", NULL, sizeof yh), sim_buffer(&sim, "ta", ta, sizeof ta),
        sim_buffer(&sim, "tb", tb, sizeof tb),   sim_buffer(&sim, "yt", NULL, sizeof yt),
        sim_buffer(&sim, "ia", ia, sizeof ia),   sim_buffer(&sim, "ib", ib, sizeof ib),
        sim_buffer(&sim, "yi", NULL, sizeof yi)};
    sim_run(&sim, ((Shape){.kernel = "k", .block = {32}}), 11, A(p[0]), A(p[1]), A(p[2]), A(p[3]),
            A(p[4]), A(p[5]), A(p[6]), A(p[7]), A(p[8]), A(p[9]), A(p[10]));
    assert_int_equal(sim_last_counts(sim.d)->tensor_flops, 2 * 16 * 8 * (16 + 8 + 8 + 32));
    assert_int_equal(sim_last_counts(sim.d)->by_class[INST_TENSOR], 4);
    sim_read(&sim, p[3], y, sizeof y);
    sim_read(&sim, p[4], yh, sizeof yh);
    sim_read(&sim, p[7], yt, sizeof yt);
    sim_read(&sim, p[10], yi, sizeof yi);
    check_products();
    sim_stop(&sim);
}

/* ---- wmma ---- */

static const char *wmma_source =
    "#include <mma.h>\nusing namespace nvcuda;\n"
    "template <class T> __device__ T of(int v) { return T(float(v)); }\n"
    "template <> __device__ unsigned char of<unsigned char>(int v) { return v + 130; }\n"
    "template <class L> "
    "struct by { enum { columns = 0 }; }; template <> struct by<wmma::col_major> { enum { "
    "columns = 1 }; };\n"
    "template <int M, int N, int K, class T, class P, class S, class LA, class LB, bool C> "
    "__device__ void one(float *y) {\n"
    "extern __shared__ __align__(32) char room[]; T *a = (T *)room, *b = (T *)(room + 5120); S "
    "*c = (S *)(room + 10240); const bool ca = by<LA>::columns, cb = by<LB>::columns;\n"
    "int l = threadIdx.x, da = ca ? 40 : 24, db = cb ? 24 : 40, dc = 40; __syncthreads();\n"
    "for (int e = l; e < M * K; e += 32) { int i = e / K, k = e % K; a[ca ? k * da + i : i * "
    "da + k] = of<T>((i * 7 + k * 3) % 11 - 5); }\n"
    "for (int e = l; e < N * K; e += 32) { int k = e / N, j = e % N; b[cb ? j * db + k : k * "
    "db + j] = of<T>((k * 5 + j * 2) % 7 - 3); }\n"
    "for (int e = l; e < M * N; e += 32) { int i = e / N, j = e % N; c[C ? j * dc + i : i * dc "
    "+ j] = of<S>(i - j); } __syncthreads();\n"
    "wmma::fragment<wmma::matrix_a, M, N, K, P, LA> fa; wmma::fragment<wmma::matrix_b, M, N, "
    "K, P, LB> fb; wmma::fragment<wmma::accumulator, M, N, K, S> fc; wmma::layout_t o = C ? "
    "wmma::mem_col_major : wmma::mem_row_major;\n"
    "wmma::load_matrix_sync(fa, a, da); wmma::load_matrix_sync(fb, b, db); "
    "wmma::load_matrix_sync(fc, c, dc, o); __syncthreads();\n"
    "for (int e = 0; e < fc.num_elements; e++) fc.x[e] = fc.x[e] + fc.x[e]; wmma::mma_sync(fc, "
    "fa, fb, fc); wmma::store_matrix_sync(c, fc, dc, o); __syncthreads();\n"
    "for (int e = l; e < M * N; e += 32) y[e] = (float)c[C ? e % N * dc + e / N : e / N * dc + "
    "e % N]; }\n"
    "template <int M, int N, int K, class T, class P, class S> __device__ void all(float *y) { "
    "typedef wmma::row_major R; typedef wmma::col_major L;\n"
    "one<M, N, K, T, P, S, R, R, false>(y); one<M, N, K, T, P, S, R, L, true>(y + 256); one<M, "
    "N, K, T, P, S, L, R, true>(y + 512); one<M, N, K, T, P, S, L, L, false>(y + 768); }\n"
    "template <class T, class S> __device__ void shapes(float *y) { all<16, 16, 16, T, T, "
    "S>(y); all<32, 8, 16, T, T, S>(y + 1024); all<8, 32, 16, T, T, S>(y + 2048); }\n"
    "extern \"C\" __global__ void k(float *y) { shapes<__half, float>(y); shapes<__half, "
    "__half>(y + 3072); shapes<__nv_bfloat16, float>(y + 6144);\n"
    "shapes<signed char, int>(y + 9216); shapes<unsigned char, int>(y + 12288);\n"
    "all<16, 16, 8, float, wmma::precision::tf32, float>(y + 15360); }\n";

/* Every shape, type and layout, on whole numbers: the results are exact whatever the layout of a
 * fragment is. */
static void test_fragments(void **state)
{
    (void)state;
    sim_start_cuda(&sim, wmma_source);
    enum { BYTES = 48, TF32 = 60, TILES = 64 }; /* BYTES: the first without signs */
    static float results[TILES * 256];
    DevicePtr py = sim_buffer(&sim, "y", NULL, sizeof results);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {32}, .shared = 15360}), 1, A(py));
    sim_read(&sim, py, results, sizeof results);
    for (int tile = 0; tile < TILES; tile++) {
        int columns = (int[]){16, 8, 32}[tile / 4 % 3], depth = 16;
        int more = tile >= BYTES && tile < TF32 ? 130 : 0;
        if (tile >= TF32) columns = 16, depth = 8;
        for (int e = 0; e < 256; e++) {
            int i = e / columns, j = e % columns, want = 2 * (i - j);
            for (int k = 0; k < depth; k++)
                want += ((i * 7 + k * 3) % 11 - 5 + more) * ((k * 5 + j * 2) % 7 - 3 + more);
            if (results[tile * 256 + e] != (float)want)
                fail_msg("tile %d, row %d, column %d: %g, %d expected", tile, i, j,
                         (double)results[tile * 256 + e], want);
        }
    }
    sim_stop(&sim);
}

/* Sums of bytes wrap around, and with satfinite they end at the limits. */
static void test_saturation(void **state)
{
    (void)state;
    static int32_t sums[2][256];
    sim_start_cuda(
        &sim,
        "#include <mma.h>\nusing namespace nvcuda;\nextern \"C\" __global__ void k(int *y) {\n"
        "wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a;\n"
        "wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;\n"
        "wmma::fragment<wmma::accumulator, 16, 16, 16, int> c, d;\n"
        "wmma::fill_fragment(a, 127); wmma::fill_fragment(b, 127); wmma::fill_fragment(c, "
        "2147483000);\n"
        "wmma::mma_sync(d, a, b, c, false); wmma::store_matrix_sync(y, d, 16, "
        "wmma::mem_row_major);\n"
        "wmma::mma_sync(d, a, b, c, true); wmma::store_matrix_sync(y + 256, d, 16, "
        "wmma::mem_row_major); }\n");
    DevicePtr py = sim_buffer(&sim, "y", NULL, sizeof sums);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {32}}), 1, A(py));
    assert_int_equal(sim_last_counts(sim.d)->tensor_flops, 2 * 2 * 16 * 16 * 16);
    sim_read(&sim, py, sums, sizeof sums);
    for (int i = 0; i < 256; i++) {
        assert_int_equal(sums[0][i], (int32_t)(2147483000u + 16u * 127u * 127u));
        assert_int_equal(sums[1][i], INT32_MAX);
    }
    sim_stop(&sim);
}

/* A matrix of bytes in shared memory, which have no value when n is 0. */
static const char *bytes_source =
    "#include <mma.h>\nusing namespace nvcuda;\n"
    "extern \"C\" __global__ void k(const signed char *x, int *y, int n) {\n"
    "__shared__ __align__(32) signed char s[256]; signed char v; int l = threadIdx.x;\n"
    "if (n) v = x[l];\n"
    "for (int i = l; i < 256; i += blockDim.x) s[i] = v;\n"
    "if (ORDERED) __syncthreads();\n"
    "wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, LAYOUT> a;\n"
    "wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;\n"
    "wmma::fragment<wmma::accumulator, 16, 16, 16, int> c;\n"
    "if (l < 32) { wmma::load_matrix_sync(a, s, 16); wmma::fill_fragment(b, 1); "
    "wmma::fill_fragment(c, 0);\n"
    "wmma::mma_sync(c, a, b, c); wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major); } }\n";

static void judge_bytes(const char *layout, int threads, int ordered, int n, Outcome outcome)
{
    char source[4096];
    snprintf(source, sizeof source, "#define LAYOUT wmma::%s\n#define ORDERED %d\n%s", layout,
             ordered, bytes_source);
    sim_start_cuda(&sim, source);
    signed char x[64];
    memset(x, 1, sizeof x);
    DevicePtr px = sim_buffer(&sim, "x", x, sizeof x), py = sim_buffer(&sim, "y", NULL, 1024);
    Shape block = {.kernel = "k", .block = {(uint32_t)threads}};
    int r = sim_try(&sim, block, 3, A(px), A(py), A(n));
    if ((r ? sim.fault.outcome : OUTCOME_OK) != outcome)
        fail_msg("%s, %d threads: %d %s", layout, threads, r, sim.fault.message);
    sim_stop(&sim);
}

/* A matrix of bytes has its undefined elements and its races seen, in both layouts. */
static void test_checked_bytes(void **state)
{
    (void)state;
    static const char *const layouts[] = {"row_major", "col_major"};
    for (int i = 0; i < 2; i++) {
        judge_bytes(layouts[i], 32, 1, 1, OUTCOME_OK);
        judge_bytes(layouts[i], 32, 1, 0, OUTCOME_UNINITIALISED);
        judge_bytes(layouts[i], 64, 1, 1, OUTCOME_OK);
        judge_bytes(layouts[i], 64, 0, 1, OUTCOME_RACE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_checked_bytes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
