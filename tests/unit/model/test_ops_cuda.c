/* Every operation of the CUDA table against the CPU's, on inputs that bf16 holds exactly. Products
 * are in test_products_cuda.c.
 *
 * Errors are relative: of a row to its norm, and of a number to the row's root mean square. The
 * limits follow from the roundings: one rounding to bf16 is at most 2^-8 of a number, and 0.0017 of
 * a row's norm on average. Operations with intermediate bf16 (probabilities in attention) have a
 * few of them; operations in fp32 throughout have a few 1e-5. */
#include "tests/unit/model/ops_on_gpu.h"

/* Limits of a row's error; a single number has 8 times the limit. */
static const double once = 0.0040, few = 0.0065, single = 3e-5;

/* ---- memory ---- */

static void test_memory(void)
{
    enum { N = 5000003 };
    size_t free_bytes = 0, total = 0;
    Error err;
    begin("memory: zeroed, moved in odd pieces, rounded to even");
    unsigned char *host = memory_array(N, 1), *back = memory_array(N, 1), *p = gpu->alloc(N),
                  *q = gpu->alloc(N);
    if ((uintptr_t)p % 256) fail("alloc is not aligned to 256 bytes");
    gpu->download(back, p, N);
    for (size_t i = 0; i < N; i++)
        if (back[i]) fail("byte %zu is not zero", i);
    for (size_t i = 0; i < N; i++) host[i] = (unsigned char)random_u64(&rng);
    gpu->upload(p, host, N);
    gpu->zero(p + 77, 1001);
    gpu->copy(q + 3, p + 1, N - 4);
    gpu->download(back, q + 3, N - 4);
    memset(host + 77, 0, 1001);
    if (memcmp(back, host + 1, N - 4))
        fail("what was uploaded, partly zeroed, copied and downloaded is not the same");
    for (int i = 0; i < 300; i++) { /* host memory is reused at once */
        memset(host, i, 70001);
        gpu->upload(p + (size_t)i * 16384, host, 16384);
    }
    gpu->download(back, p, 300 * 16384);
    for (size_t i = 0; i < 300 * 16384; i++)
        if (back[i] != (unsigned char)(i / 16384))
            fail("byte %zu of small uploads is %d", i, back[i]);
    const float edge[] = {1,         -1,     0,        1.00390625f, 1.01171875f, 3.4e38f,
                          -3.39e38f, 1e-40f, INFINITY, 0x1.01p0f,   0x1.03p0f,   0x1.0100002p0f};
    enum { EDGES = sizeof edge / sizeof *edge };
    float stored[EDGES];
    gpu->load(p, edge, EDGES);
    gpu->store(stored, p, EDGES);
    for (size_t i = 0; i < EDGES; i++)
        if (stored[i] != bf16_to_float(float_to_bf16(edge[i])))
            fail("%.9g came back as %.9g", (double)edge[i], (double)stored[i]);
    if (gpu->memory(&free_bytes, &total, &err)) fail("%s", err.text);
    if (!free_bytes || free_bytes > total) fail("%zu of %zu bytes are free", free_bytes, total);
    gpu->release(p);
    gpu->release(q);
    gpu->release(NULL);
    end();
    begin("memory: too much is one sentence, after which all is well again");
    if (gpu->alloc(total * 2)) fail("twice the GPU's memory was given");
    if (!gpu->status(&err))
        fail("no failure is told");
    else if (!strstr(err.text, "memory is full") || !strstr(err.text, "--recompute"))
        fail("%s", err.text);
    p = gpu->alloc(1 << 20);
    gpu->upload(p, host, 1 << 20);
    gpu->release(p);
    end();
    free(host);
    free(back);
}

/* ---- rows ---- */

static void test_sums(void)
{
    static const int sizes[][2] = {{1, 1},       {3, 7},      {129, 896},
                                   {1000, 1152}, {257, 4608}, {2048, 24}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int rows = sizes[i][0], n = sizes[i][1];
        size_t all = (size_t)rows * (size_t)n;
        begin("bias_grad %d x %d", rows, n);
        Array dy = given("dy", all, 0, 1), db = given("db", (size_t)n, 1, 1);
        cpu->bias_grad(db.host, dy.host, rows, n);
        gpu->bias_grad(db.gpu, dy.gpu, rows, n);
        check(&db, (size_t)n, single);
        put(&db);
        gpu->bias_grad(db.gpu, dy.gpu, rows, n);
        void *bits = kept(&db);
        put(&db);
        gpu->bias_grad(db.gpu, dy.gpu, rows, n);
        check_kept(&db, bits);
        drop(&db);
        end();
        begin("add of %zu", all);
        Array y = given("y", all, 0, 1);
        cpu->add(y.host, dy.host, all);
        gpu->add(y.gpu, dy.gpu, all);
        check(&y, all, once);
        drop(&y);
        end();
        begin("sum_squares of %zu", all);
        Array x = given("x", all, 1, 3);
        double want = cpu->sum_squares(x.host, all), got = gpu->sum_squares(x.gpu, all);
        note(fabs(got - want) / want, 1e-5);
        if (!(now.worst <= now.limit)) fail("%.9g, expected %.9g", got, want);
        if (gpu->sum_squares(x.gpu, all) != got) fail("another sum the second time");
        drop(&x), drop(&dy);
        end();
    }
}

/* groups 0: rows of the residual stream, which are float; else heads. */
typedef struct {
    int rows, groups, n, ld;
} NormSize;

static size_t norm_row(NormSize s)
{
    return (size_t)(s.groups ? s.groups : 1) * (size_t)s.n;
}
static size_t norm_extent(NormSize s)
{
    return (size_t)(s.rows - 1) * (size_t)s.ld + norm_row(s);
}

static Norm norm_of(NormSize s, const Num *x, const Num *w)
{
    return (Norm){x, w, s.rows, s.groups ? s.groups : 1, s.n, s.ld, 1e-6f};
}

static void norm_on(const Ops *op, NormSize s, Num *y, const Num *x, const Num *w)
{
    Norm v = norm_of(s, x, w);
    (s.groups ? op->head_norm : op->rmsnorm)(y, &v);
}

/* heads: the rows have groups. */
static void norm_grad_on(const Ops *op, int heads, Num *dx, int add, float *dw, const Num *dy,
                         const Norm *v)
{
    if (heads)
        op->head_norm_grad(dx, dw, dy, v);
    else
        op->rmsnorm_grad(dx, add, dw, dy, v);
}

static void one_norm(NormSize s, int in_place)
{
    size_t all = norm_extent(s);
    if (s.groups)
        begin("head_norm %d rows of %d x %d, %d apart%s", s.rows, s.groups, s.n, s.ld,
              in_place ? ", in place" : "");
    else
        begin("rmsnorm %d rows of %d", s.rows, s.n);
    Array x = given("x", all, !s.groups, 2), w = given("w", (size_t)s.n, 0, 1),
          y = in_place ? x : blank("y", all, 0);
    norm_on(cpu, s, y.host, x.host, w.host);
    norm_on(gpu, s, y.gpu, x.gpu, w.gpu);
    check_rows(&y, norm_row(s), (size_t)s.ld, few);
    if (!in_place) drop(&y);
    drop(&x), drop(&w);
    end();
}

static void one_norm_grad(NormSize s, int add, int with_dw, int in_place)
{
    size_t all = norm_extent(s);
    begin("%s %d rows of %d x %d, %d apart%s%s%s", s.groups ? "head_norm_grad" : "rmsnorm_grad",
          s.rows, s.groups ? s.groups : 1, s.n, s.ld, add ? ", added" : "", with_dw ? ", dw" : "",
          in_place ? ", in place" : "");
    Array x = given("x", all, !s.groups, 2), w = given("w", (size_t)s.n, 0, 1),
          dy = given("dy", all, 0, 1), dw = given("dw", (size_t)s.n, 1, 1);
    Array dx = in_place ? dy : add ? given("dx", all, 0, 1) : blank("dx", all, 0);
    const Norm here = norm_of(s, x.host, w.host), there = norm_of(s, x.gpu, w.gpu);
    void *bits = NULL;
    for (int again = 0; again < 2 && with_dw;
         /* Only dw could change with the order. */
         again++) {
        Array scrap = given("scrap", all, 0, 1);
        put(&dw);
        norm_grad_on(gpu, s.groups, scrap.gpu, 0, dw.gpu, dy.gpu, &there);
        if (again)
            check_kept(&dw, bits);
        else
            bits = kept(&dw);
        put(&dw);
        drop(&scrap);
    }
    norm_grad_on(cpu, s.groups, dx.host, add, with_dw ? dw.host : NULL, dy.host, &here);
    norm_grad_on(gpu, s.groups, dx.gpu, add, with_dw ? dw.gpu : NULL, dy.gpu, &there);
    check_rows(&dx, norm_row(s), (size_t)s.ld, few);
    check(&dw, (size_t)s.n, with_dw ? 1e-3 : 0);
    if (!in_place) drop(&dx);
    drop(&x), drop(&w), drop(&dy), drop(&dw);
    end();
}

static void test_norm(void)
{
    static const NormSize sizes[] = {{1, 0, 64, 64},      {300, 0, 896, 896},  {129, 0, 3584, 3584},
                                     {77, 0, 5120, 5120}, {5, 0, 8192, 8192},  {100, 18, 128, 2560},
                                     {33, 3, 64, 256},    {1000, 0, 100, 100}, {1000, 1, 100, 104},
                                     {17, 5, 16, 160}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        one_norm(sizes[i], 0);
        if (sizes[i].groups) one_norm(sizes[i], 1);
        one_norm_grad(sizes[i], 0, 1, 0);
        if (!sizes[i].groups) one_norm_grad(sizes[i], 1, 1, 0);
        one_norm_grad(sizes[i], 0, 0, 1);
    }
}

static void test_rope(void)
{
    static const HeadShape shapes[] = {{1, 1, 64}, {14, 2, 64}, {28, 4, 128}, {3, 1, 16},
                                       {2, 2, 80}, {4, 1, 96},  {2, 1, 256},  {5, 5, 32}};
    static const int lengths[] = {1, 300, 7, 64, 0};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int back = 0; back < 2; back++) {
            HeadShape s = shapes[i];
            begin("rope %d+%d heads of %d%s", s.heads, s.kv_heads, s.dim, back ? ", back" : "");
            Batch b = batch_of(lengths, 100);
            Array x = given("qkv", (size_t)b.cpu.rows * (size_t)head_row(s), 0, 1);
            Array cosines = given("cosines", (size_t)b.cpu.longest * (size_t)s.dim / 2, 1, 1);
            Array sines = given("sines", (size_t)b.cpu.longest * (size_t)s.dim / 2, 1, 1);
            Rotation here = {b.cpu.pos, cosines.host, sines.host, b.cpu.rows},
                     there = {b.gpu.pos, cosines.gpu, sines.gpu, b.cpu.rows};
            cpu->rope(x.host, &here, s, back ? -1 : 1);
            gpu->rope(x.gpu, &there, s, back ? -1 : 1);
            check(&x, (size_t)head_row(s), once);
            drop(&x), drop(&cosines), drop(&sines);
            batch_drop(&b);
            end();
        }
}

static void test_swiglu(void)
{
    static const int sizes[][2] = {{1, 8},      {3, 100}, {300, 4864},
                                   {65, 18944}, {1, 24},  {1001, 136}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int rows = sizes[i][0], ff = sizes[i][1];
        size_t all = (size_t)rows * (size_t)ff;
        begin("swiglu %d x %d", rows, ff);
        Array x = given("gate_up", 2 * all, 0, 2), y = blank("act", all, 0);
        cpu->swiglu(y.host, x.host, rows, ff);
        gpu->swiglu(y.gpu, x.gpu, rows, ff);
        check(&y, (size_t)ff, few);
        drop(&y);
        end();
        begin("swiglu_grad %d x %d", rows, ff);
        Array dy = given("dact", all, 0, 1), dx = blank("dgate_up", 2 * all, 0);
        cpu->swiglu_grad(dx.host, dy.host, x.host, rows, ff);
        gpu->swiglu_grad(dx.gpu, dy.gpu, x.gpu, rows, ff);
        check(&dx, 2 * (size_t)ff, few);
        drop(&x), drop(&dy), drop(&dx);
        end();
    }
}

static void test_embed(void)
{
    static const int sizes[][2] = {{1, 8}, {7, 100}, {500, 896}, {5000, 64}, {32000, 256}};
    static const int lengths[] = {300, 1, 513, 70, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int vocab = sizes[i][0], n = sizes[i][1];
        begin("embed and embed_grad, %d ids of %d", vocab, n);
        Batch b = batch_of(lengths, vocab);
        size_t all = (size_t)b.cpu.rows * (size_t)n;
        Array table = given("table", (size_t)vocab * (size_t)n, 0, 1), x = blank("x", all, 1);
        cpu->embed(x.host, table.host, b.cpu.ids, b.cpu.rows, n);
        gpu->embed(x.gpu, table.gpu, b.gpu.ids, b.cpu.rows, n);
        check(&x, (size_t)n, 0);
        Array dx = given("dx", all, 0, 1),
              dtable = given("dtable", (size_t)vocab * (size_t)n, 1, 1);
        gpu->embed_grad(dtable.gpu, dx.gpu, &b.gpu, n);
        void *bits = kept(&dtable);
        put(&dtable);
        gpu->embed_grad(dtable.gpu, dx.gpu, &b.gpu, n);
        check_kept(&dtable, bits);
        cpu->embed_grad(dtable.host, dx.host, &b.cpu, n);
        check(&dtable, (size_t)n, single);
        drop(&table), drop(&x), drop(&dx), drop(&dtable);
        batch_drop(&b);
        end();
    }
}

/* ---- attention ---- */

static void one_attention(HeadShape s, const int *lengths, double scale)
{
    Batch b = batch_of(lengths, 100);
    size_t rows = (size_t)b.cpu.rows, width = (size_t)s.heads * (size_t)s.dim;
    const char *note = scale > 1 ? ", large scores" : "";
    begin("attention %d+%d heads of %d, %d sequences, longest %d%s", s.heads, s.kv_heads, s.dim,
          b.cpu.n, b.cpu.longest, note);
    Array qkv = given("qkv", rows * (size_t)head_row(s), 0, scale),
          out = blank("out", rows * width, 0), lse = blank("lse", rows * (size_t)s.heads, 1);
    cpu->attention(out.host, lse.host, qkv.host, &b.cpu, s);
    gpu->attention(out.gpu, lse.gpu, qkv.gpu, &b.gpu, s);
    check_each(&lse, 1e-4);
    check(&out, (size_t)s.dim, 0.01);
    end();
    /* The gradient from the CPU's own output, so that one wrong kernel is one failure. */
    begin("attention_grad %d+%d heads of %d, %d sequences, longest %d%s", s.heads, s.kv_heads,
          s.dim, b.cpu.n, b.cpu.longest, note);
    for (size_t i = 0; i < out.n; i++) out.host[i] = bf16_to_float(float_to_bf16(out.host[i]));
    put(&out), put(&lse);
    Array dout = given("dout", rows * width, 0, 1),
          dqkv = blank("dqkv", rows * (size_t)head_row(s), 0);
    const Attended here = {qkv.host, out.host, lse.host}, there = {qkv.gpu, out.gpu, lse.gpu};
    cpu->attention_grad(dqkv.host, dout.host, &here, &b.cpu, s);
    gpu->attention_grad(dqkv.gpu, dout.gpu, &there, &b.gpu, s);
    void *bits = kept(&dqkv);
    check(&dqkv, (size_t)head_row(s), 0.015);
    gpu->attention_grad(dqkv.gpu, dout.gpu, &there, &b.gpu, s);
    check_kept(&dqkv, bits);
    drop(&qkv), drop(&out), drop(&lse), drop(&dout), drop(&dqkv);
    batch_drop(&b);
    end();
}

static void test_attention(void)
{
    static const HeadShape shapes[] = {
        {1, 1, 64},   {2, 1, 64}, {14, 2, 64}, {4, 4, 64}, {1, 1, 128}, {28, 4, 128}, {16, 8, 128},
        {16, 1, 128}, {3, 1, 16}, {4, 2, 32},  {2, 2, 80}, {5, 1, 96},  {2, 1, 256}};
    static const int lengths[][8] = {{1},   {5}, {64, 64}, {65, 1, 127, 2}, {300, 17, 33, 128, 129},
                                     {1000}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++)
            one_attention(shapes[i], lengths[j], 1);
    one_attention((HeadShape){4, 2, 64}, (const int[]){200, 33, 0}, 3);
    one_attention((HeadShape){4, 2, 128}, (const int[]){200, 33, 0}, 3);
    one_attention((HeadShape){14, 2, 64}, (const int[]){2048, 0}, 1);
    one_attention((HeadShape){28, 4, 128}, (const int[]){2048, 0}, 1);
}

/* ---- loss ---- */

static void test_loss(void)
{
    static const int sizes[][2] = {{1, 2},      {3, 100},    {130, 1000}, {65, 151936},
                                   {9, 128256}, {33, 32003}, {300, 50257}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int rows = sizes[i][0], vocab = sizes[i][1];
        size_t n = (size_t)rows;
        int32_t *target = memory_array(n, 4);
        begin("cross_entropy %d x %d", rows, vocab);
        Array logits = given("logits", n * (size_t)vocab, 1, 3), logp = blank("logp", n, 1),
              lse = blank("lse", n, 1);
        for (size_t r = 0; r < n; r++)
            target[r] = r % 5 == 4 ? -1 : (int32_t)(random_u64(&rng) % (uint64_t)vocab);
        if (rows > 2) target[0] = 0, target[1] = vocab - 1;
        int32_t *on_gpu = device_ints(target, n);
        const Logits here = {logits.host, target, rows, vocab},
                     there = {logits.gpu, on_gpu, rows, vocab};
        cpu->cross_entropy(logp.host, lse.host, &here);
        gpu->cross_entropy(logp.gpu, lse.gpu, &there);
        check_each(&logp, 2e-5);
        check_each(&lse, 2e-5);
        end();
        begin("cross_entropy_grad %d x %d", rows, vocab);
        Array weight = given("weight", n, 1, 1);
        put(&lse);
        for (size_t r = 0; r < n; r++)
            if (target[r] < 0 || r == 3) weight.host[r] = 0;
        put(&weight);
        gpu->cross_entropy_grad(logits.gpu, lse.gpu, weight.gpu, &there);
        cpu->cross_entropy_grad(logits.host, lse.host, weight.host, &here);
        /* dlogits are in the first half of each row's bytes, as bf16. */
        Array row = logits;
        for (size_t r = 0; r < n; r++) {
            row.n = (size_t)vocab;
            row.wide = 0;
            row.host = logits.host + r * (size_t)vocab;
            row.gpu = (char *)logits.gpu + r * (size_t)vocab * sizeof(float);
            float *got = fetch(&row);
            double diff = 0, norm = 0;
            for (size_t v = 0; v < row.n; v++) {
                double d = (double)got[v] - (double)row.host[v];
                diff += d * d;
                norm += (double)row.host[v] * (double)row.host[v];
            }
            double error = norm > 0 ? sqrt(diff / norm) : sqrt(diff);
            note(error, few);
            if (!(error <= few))
                fail("dlogits: row %zu (target %d, weight %g) is off by %.3g of its norm", r,
                     target[r], (double)weight.host[r], error);
            free(got);
        }
        check_guards(&logits);
        gpu->release(on_gpu);
        free(target);
        drop(&logits), drop(&logp), drop(&lse), drop(&weight);
        end();
    }
}

/* More than 2^31 logits: all but the last row are zero, so the CPU needs one row. */
static void test_large_loss(void)
{
    enum { ROWS = 14500, VOCAB = 151936 };
    size_t free_bytes = 0, total = 0, last = (size_t)(ROWS - 1) * VOCAB;
    begin("cross_entropy of more than 2^31 logits");
    if (gpu->memory(&free_bytes, &total, NULL) ||
        free_bytes < (size_t)ROWS * VOCAB * 4 + ((size_t)1 << 30)) {
        printf("# not run: it needs 10 GiB of free memory\n");
        end();
        return;
    }
    float *logits = gpu->alloc((size_t)ROWS * VOCAB * 4);
    int32_t *target = memory_array(ROWS, 4), last_target = 77777;
    float *ones = memory_array(ROWS, 4), got[2];
    for (int i = 0; i < ROWS; i++) ones[i] = 1;
    target[ROWS - 1] = last_target;
    int32_t *on_gpu = device_ints(target, ROWS);
    Array row = given("last row", VOCAB, 1, 3), logp = blank("logp", ROWS, 1),
          lse = blank("lse", ROWS, 1), w = blank("weight", ROWS, 1);
    memcpy(w.host, ones, ROWS * 4);
    put(&w);
    gpu->copy(logits + last, row.gpu, VOCAB * 4);
    const Logits all = {logits, on_gpu, ROWS, VOCAB}, one = {row.host, &last_target, 1, VOCAB};
    gpu->cross_entropy(logp.gpu, lse.gpu, &all);
    for (int i = 0; i < ROWS; i++) logp.host[i] = -(lse.host[i] = logf(VOCAB));
    cpu->cross_entropy(&logp.host[ROWS - 1], &lse.host[ROWS - 1], &one);
    check_each(&logp, 2e-5);
    check_each(&lse, 2e-5);
    gpu->cross_entropy_grad(logits, lse.gpu, w.gpu, &all);
    float want = 1 - expf(row.host[last_target] - lse.host[ROWS - 1]);
    gpu->store(&got[0], (char *)(logits + last) + (size_t)last_target * 2, 1);
    gpu->store(&got[1], logits, 1);
    if (fabsf(got[0] - want) > 0.005f || fabsf(got[1] - (1 - 1.0f / VOCAB)) > 0.005f)
        fail("dlogits of targets: %g and %g, expected %g and 1", (double)got[0], (double)got[1],
             (double)want);
    gpu->release(logits);
    gpu->release(on_gpu);
    free(target);
    free(ones);
    drop(&row), drop(&logp), drop(&lse), drop(&w);
    end();
}

/* ---- the optimizer ---- */

static void test_adamw(void)
{
    static const size_t sizes[] = {1, 7, 1000, 100003, 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        begin("adamw with masters, %zu numbers, three steps", n);
        Array p = given("p", n, 0, 1), master = given("master", n, 1, 1), m = given("m", n, 1, 0),
              v = given("v", n, 1, 0);
        memcpy(master.host, p.host, n * sizeof(float));
        put(&master);
        float *start = memory_array(n, sizeof *start);
        memcpy(start, p.host, n * sizeof *start);
        for (int step = 1; step <= 3; step++) {
            AdamStep s = {.lr = 1e-3,
                          .beta1 = 0.9,
                          .beta2 = 0.99,
                          .eps = 1e-8,
                          .decay = 0.1,
                          .scale = 0.7,
                          .correct1 = 1 - pow(0.9, step),
                          .correct2 = 1 - pow(0.99, step)};
            Array g = given("g", n, 1, 0.1);
            cpu->adamw(&(AdamSlice){p.host, NULL, g.host, m.host, v.host, n}, &s);
            gpu->adamw(&(AdamSlice){p.gpu, master.gpu, g.gpu, m.gpu, v.gpu, n}, &s);
            check(&g, n, 0); /* zero now */
            drop(&g);
        }
        check(&m, n, 1e-5);
        check(&v, n, 1e-5);
        /* The CPU's p is its own master. The steps are compared, not the weights. */
        float *got = fetch(&master);
        double diff = 0, moved = 0;
        for (size_t j = 0; j < n; j++) {
            diff += pow((double)got[j] - (double)p.host[j], 2);
            moved += pow((double)p.host[j] - (double)start[j], 2);
        }
        double off = sqrt(diff / moved);
        note(off, 1e-3);
        if (!(off <= 1e-3)) fail("the masters' steps are off by %.3g of their norm", off);
        float *rounded = fetch(&p);
        for (size_t j = 0; j < n; j++)
            if (rounded[j] != bf16_to_float(float_to_bf16(got[j])))
                fail("weight %zu is %.9g, not its master %.9g rounded", j, (double)rounded[j],
                     (double)got[j]);
        check_guards(&p), check_guards(&master);
        free(got);
        free(rounded);
        free(start);
        drop(&p), drop(&master), drop(&m), drop(&v);
        end();
    }
}

/* Stochastic rounding: each weight becomes one of the two nearest numbers, without bias. */
static void test_lean(void)
{
    enum { N = 1 << 20 };
    AdamStep s = {.lr = 1e-4,
                  .beta1 = 0.9,
                  .beta2 = 0.99,
                  .eps = 1e-8,
                  .decay = 0,
                  .scale = 1,
                  .correct1 = 0.1,
                  .correct2 = 0.01,
                  .lean = 1,
                  .seed = 7};
    begin("adamw without masters: stochastic rounding");
    Array p = given("p", N, 0, 1), m = given("m", N, 0, 0), v = given("v", N, 0, 0),
          g = given("g", N, 1, 0.1);
    float *start = memory_array(N, sizeof *start);
    memcpy(start, p.host, N * sizeof *start);
    gpu->adamw(&(AdamSlice){p.gpu, NULL, g.gpu, m.gpu, v.gpu, N}, &s);
    void *bits = kept(&p);
    Array again = given("again", N, 0, 1);
    memcpy(again.host, p.host, N * sizeof(float));
    put(&again), put(&m), put(&v), put(&g);
    gpu->adamw(&(AdamSlice){again.gpu, NULL, g.gpu, m.gpu, v.gpu, N}, &s);
    check_kept(&again, bits);
    s.lean = 0;
    cpu->adamw(&(AdamSlice){p.host, NULL, g.host, m.host, v.host, N}, &s);
    float *got = fetch(&p);
    double bias = 0, moved = 0;
    for (size_t i = 0; i < N; i++) {
        double ulp = ldexp(1, ilogb((double)p.host[i]) - 7);
        if (!(fabs((double)got[i] - (double)p.host[i]) <= 1.01 * ulp + 0.01 * s.lr))
            fail("weight %zu is %.9g, expected a neighbour of %.9g", i, (double)got[i],
                 (double)p.host[i]);
        double direction = p.host[i] > start[i] ? 1 : -1;
        bias += direction * ((double)got[i] - (double)p.host[i]);
        moved += direction * ((double)p.host[i] - (double)start[i]);
    }
    note(fabs(bias / moved), 0.1);
    if (!(fabs(bias / moved) <= 0.1))
        fail("on average weights move %.3g of their step too far or too short", bias / moved);
    check_guards(&p), check_guards(&m), check_guards(&v);
    float *first = fetch(&m);
    for (size_t i = 0; i < N; i++) /* (1 - beta1) g, up to one rounding */
        if (!(fabs((double)first[i] - (double)m.host[i]) <=
              0.008 * fabs((double)m.host[i]) + 1e-30))
            fail("m %zu is %.9g, expected %.9g", i, (double)first[i], (double)m.host[i]);
    free(first);
    free(got);
    free(start);
    drop(&p), drop(&m), drop(&v), drop(&g), drop(&again);
    end();
}

static void all(void)
{
    test_memory();
    test_sums();
    test_norm();
    test_rope();
    test_swiglu();
    test_embed();
    test_loss();
    test_large_loss();
    test_adamw();
    test_lean();
    test_attention();
}

int main(void)
{
    return on_gpu(all);
}
