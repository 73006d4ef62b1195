/* Calls of tests/fixtures/ops on a device, by their plain kernels or by the route of a library, against
 * their references. The float64 tensors of a case become float32, float16 or bfloat16 tensors, or
 * stay as they are; the reference gets the rounded inputs. Many kernels go into one source. Include
 * after cmocka.h. */
#ifndef TESTS_UNIT_EVAL_OP_DEVICE_H
#define TESTS_UNIT_EVAL_OP_DEVICE_H

#include <ctype.h>

#include "eval/candidate/library_arguments.h"
#include "eval/device/device.h"
#include "tests/unit/eval/compile/compile_support.h"
#include "tests/unit/eval/half_value.h"
#include "tests/unit/eval/kept_ptx.h"
#include "tests/unit/ops/op_fixture.h"

enum { BATCH_BYTES = 60000, MAX_BATCH = 256 };

typedef struct {
    FixtureCase f;
    int from, to; /* launches */
    int n_scratch;
    struct {
        Dtype dtype;
        int64_t elements;
    } scratch[OP_MAX_SCRATCH];
    const json_t *json;
    int n_calls; /* of libraries, where the route is taken */
    OpLibraryCall call[OP_MAX_CALLS];
} Item;

typedef struct {
    Buffer source;
    OpPlain plain;
    int n;
    Item *item[MAX_BATCH];
} Batch;

static const DeviceOps *dev;
static const char *device_arg;

/* The device that QUERN_TEST_DEVICE names, or a simulator. */
static inline void choose_device(void)
{
    Error err;
    const char *name = getenv("QUERN_TEST_DEVICE");
    if (!(dev = device_find(name && *name ? name : "sim:h100", &device_arg, &err)))
        fail_msg("%s", err.text);
}

/* ---- elements of a dtype as doubles ---- */

static inline void put(Dtype d, void *p, int64_t i, double v)
{
    float f = (float)v;
    uint32_t bits;
    switch (d) {
    case DTYPE_F32: ((float *)p)[i] = f; break;
    case DTYPE_F16: ((uint16_t *)p)[i] = half_of(v); break;
    case DTYPE_BF16:
        memcpy(&bits, &f, sizeof bits);
        if (!isnan(f)) bits += 0x7fff + (bits >> 16 & 1);
        ((uint16_t *)p)[i] = (uint16_t)(bits >> 16);
        break;
    case DTYPE_F64: ((double *)p)[i] = v; break;
    case DTYPE_I32: ((int32_t *)p)[i] = (int32_t)v; break;
    case DTYPE_I64: ((int64_t *)p)[i] = (int64_t)v; break;
    default: dtype_from_double(d, &v, (char *)p + (size_t)i * dtype_size(d), 1);
    }
}

static inline double get(Dtype d, const void *p, int64_t i)
{
    float f;
    uint32_t bits;
    switch (d) {
    case DTYPE_F32: return (double)((const float *)p)[i];
    case DTYPE_F16: return half_value(((const uint16_t *)p)[i]);
    case DTYPE_BF16:
        bits = (uint32_t)((const uint16_t *)p)[i] << 16;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    case DTYPE_F64: return ((const double *)p)[i];
    case DTYPE_I32: return ((const int32_t *)p)[i];
    case DTYPE_I64: return (double)((const int64_t *)p)[i];
    default: {
        double v;
        dtype_to_double(d, (const char *)p + (size_t)i * dtype_size(d), &v, 1);
        return v;
    }
    }
}

/* The convolutions of a library may transform their tiles, which costs some bits. */
static inline double tolerance(Dtype d)
{
    const double f32 = getenv("QUERN_TEST_DEVICE") ? 2e-4 : 4e-5;
    return d == DTYPE_F64    ? 1e-10
           : d == DTYPE_F32  ? f32
           : d == DTYPE_F16  ? 4e-3
           : d == DTYPE_BF16 ? 3e-2
                             : 0;
}

/* Makes the float64 tensors of a case tensors of d, and computes the reference again. */
static inline void retype(FixtureCase *f, Dtype d)
{
    Error err;
    OpCall *c = &f->call;
    double place;
    for (int i = 0; i < c->n_args; i++)
        if (c->arg[i].kind == OP_DTYPE && c->arg[i].integer[0] == DTYPE_F64)
            c->arg[i].integer[0] = d;
    for (int t = 0; t < c->n_tensors; t++) {
        if (c->tensor[t].dtype != DTYPE_F64) continue;
        c->tensor[t].dtype = d;
        for (int64_t i = 0; i < f->extent[t]; i++) {
            put(d, &place, 0, f->storage[t][i]);
            f->storage[t][i] = get(d, &place, 0);
        }
        for (int64_t i = 0; i < op_elements(&c->tensor[t]); i++)
            f->in[t][i] = f->storage[t][fixture_place(&c->tensor[t], i)];
    }
    if (op_infer(c, &err) || c->op->reference(c, (const double *const *)f->in, f->out, &err))
        fail_msg("%s", err.text);
    op_layout(c);
}

/* ---- one call on the device ---- */

static inline DevicePtr upload(Device *d, Dtype dtype, int64_t n, const double *v)
{
    Error err;
    DevicePtr p;
    size_t bytes = (size_t)(n ? n : 1) * dtype_size(dtype);
    if (dev->alloc(d, bytes, "tensor", &p, &err)) fail_msg("%s", err.text);
    if (!v) return p;
    void *data = memory_alloc(bytes);
    for (int64_t i = 0; i < n; i++) put(dtype, data, i, v[i]);
    if (dev->write(d, p, data, bytes, &err)) fail_msg("%s", err.text);
    free(data);
    return p;
}

static inline void compare(Device *d, const Item *it, int r, DevicePtr p)
{
    const OpTensor *y = &it->f.call.result[r];
    size_t bytes = (size_t)fixture_extent(y) * dtype_size(y->dtype);
    void *data = memory_alloc(bytes);
    double limit = 0;
    Error err;
    if (dev->read(d, p, data, bytes, &err)) fail_msg("%s", err.text);
    if (dtype_is_float(y->dtype)) limit = tolerance(y->dtype);
    for (int64_t i = 0; i < op_elements(y); i++) {
        double got = get(y->dtype, data, fixture_place(y, i)), want = it->f.out[r][i], place;
        put(y->dtype, &place, 0, want);
        if (got == get(y->dtype, &place, 0) || (isnan(got) && isnan(want))) continue;
        if (!(fabs(got - want) <= limit * (1 + fabs(want))))
            fail_msg("%s in %s: result %d, element %lld is %g, the reference has %g; %s",
                     it->f.name, dtype_name(y->dtype), r, (long long)i, got, want,
                     json_dumps(it->json, JSON_SORT_KEYS));
    }
    free(data);
}

static inline void launch(Device *d, DeviceModule *m, const OpLaunch *l, int round,
                          const DevicePtr operands[3][64])
{
    Error err;
    KernelInfo info;
    Fault fault;
    DeviceLaunch go = {.module = m, .kernel = l->kernel, .shared_bytes = (uint32_t)l->shared};
    int n = 0;
    if (dev->kernel(d, m, l->kernel, &info, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++) {
        go.grid[i] = (uint32_t)l->grid[i];
        go.block[i] = (uint32_t)l->block[i];
    }
    for (const char *at = l->arguments; *at; at += strspn(at, ", "), n++) {
        if (*at == '-' || isdigit((unsigned char)*at)) {
            long long number = strtoll(at, (char **)&at, 10);
            assert_true(n < info.n_params && info.params[n].size == sizeof number);
            memcpy(go.params + info.params[n].offset, &number, sizeof number);
            continue;
        }
        int set = *at == 'x' ? 0 : *at == 'y' ? 1 : 2;
        if (!strcmp(at, "t")) {
            assert_int_equal(info.params[n].size, sizeof round);
            memcpy(go.params + info.params[n].offset, &round, sizeof round);
            n++;
            break;
        }
        DevicePtr p = operands[set][strtol(at + 1, (char **)&at, 10)];
        assert_true(n < info.n_params && info.params[n].size == sizeof p);
        memcpy(go.params + info.params[n].offset, &p, sizeof p);
    }
    assert_int_equal(n, info.n_params);
    int rc = dev->run(d, &go, 1, &fault);
    if (rc) fail_msg("%s: %s", l->kernel, rc < 0 ? err.text : fault.message);
}

/* A pointer "x0 + 12", a number with a point, or an integer: the bits of an argument. */
static inline uint64_t library_argument(const OpCall *c, const char *text, char kind,
                                        const DevicePtr operands[3][64])
{
    char *end;
    double number = strtod(text, NULL);
    uint64_t bits = (uint64_t)strtoll(text, NULL, 10);
    if (kind == 'd') memcpy(&bits, &number, sizeof bits);
    if (kind != 'p') return bits;
    int set = *text == 'x' ? 0 : *text == 'y' ? 1 : 2;
    long i = strtol(text + 1, &end, 10);
    const char *plus = strchr(end, '+');
    size_t size = set == 2 ? 1 : dtype_size(set ? c->result[i].dtype : c->tensor[i].dtype);
    return operands[set][i] + (plus ? strtoull(plus + 1, NULL, 10) * size : 0);
}

static inline void call_library(Device *d, DeviceModule *m, const OpCall *c, const OpLibraryCall *l,
                                const DevicePtr operands[3][64])
{
    Error err;
    Fault fault;
    char text[sizeof l->arguments], *save = NULL;
    DeviceLaunch go = {.module = m, .kernel = l->library, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    const LibrarySignature *s = library_signature(l->library);
    assert_non_null(s);
    snprintf(text, sizeof text, "%s", l->arguments);
    for (char *p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        assert_true(s->kinds[go.library_args]);
        uint64_t bits =
            library_argument(c, p + strspn(p, " "), s->kinds[go.library_args], operands);
        memcpy(go.params + 8 * go.library_args++, &bits, sizeof bits);
    }
    assert_int_equal(go.library_args, (int)strlen(s->kinds));
    int rc = dev->run(d, &go, 1, &fault);
    if (rc) fail_msg("%s(%s): %s", l->library, l->arguments, rc < 0 ? err.text : fault.message);
}

static inline void run_item(Device *d, DeviceModule *m, const OpLaunch *launches, const Item *it)
{
    const OpCall *c = &it->f.call;
    DevicePtr p[3][64] = {0};
    for (int i = 0; i < c->n_tensors; i++)
        p[0][i] = upload(d, c->tensor[i].dtype, it->f.extent[i], it->f.storage[i]);
    for (int i = 0; i < c->n_results; i++)
        p[1][i] = c->view_of[i] >= 0
                      ? p[0][c->view_of[i]]
                      : upload(d, c->result[i].dtype, op_elements(&c->result[i]), NULL);
    for (int i = 0; i < it->n_scratch; i++)
        p[2][i] = upload(d, it->scratch[i].dtype, it->scratch[i].elements, NULL);
    for (int k = it->from, calls = 0; k <= it->to; k++) {
        for (; calls < it->n_calls && it->call[calls].after <= k; calls++)
            call_library(d, m, c, &it->call[calls], p);
        if (k == it->to) break;
        for (int round = 0; round == 0 || round < launches[k].repeat; round++)
            launch(d, m, &launches[k], round, p);
    }
    for (int i = 0; i < c->n_results; i++)
        if (op_elements(&c->result[i])) compare(d, it, i, p[1][i]);
    for (int i = 0; i < c->n_results; i++)
        if (c->view_of[i] < 0) dev->free(d, p[1][i]);
    for (int i = 0; i < c->n_tensors; i++) dev->free(d, p[0][i]);
    for (int i = 0; i < it->n_scratch; i++) dev->free(d, p[2][i]);
}

/* ---- batches ---- */

/* For a GPU a batch is compiled as a candidate is. It is larger than one: 5 s of a busy core are not always
 * enough. */
static inline void compile_batch(const char *source, CompileResult *r)
{
    const CompilerOptions options = {.cpu_s = 60, .cache_dir = getenv("QUERN_TEST_CACHE")};
    if (!compiler && open_compiler_with(&options)) fail();
    run_source(compiler, source, r);
    if (!r->ok) fail_msg("%s\n%s", r->message, source);
}

static inline int close_batch_compiler(void **state)
{
    return compiler ? close_compiler(state) : 0;
}

/* A simulator executes PTX and needs no machine code. Optimized less, the PTX of a batch takes NVRTC 6.5 CPU
 * seconds in place of 17.8 (2026-11-30), and its few elements take the simulator no longer. With -Ofc=max PTX
 * branches by what has no value. NVRTC before CUDA 13 does not know the option. */
static const char *const batch_options[] = {"-std=c++17", "-include", "quern_prelude.h", NULL,
                                            "-Ofc=mid"};
enum { N_BATCH_OPTIONS = sizeof batch_options / sizeof *batch_options };

static inline char *compile_quickly(const Nvrtc *nvrtc, const char *prelude, const char *source)
{
    static const char *const name = "quern_prelude.h";
    char folder[5000];
    const char *options[N_BATCH_OPTIONS];
    NvrtcOutput out;
    snprintf(folder, sizeof folder, "-I%s", nvrtc_include_dir(nvrtc));
    for (int i = 0; i < N_BATCH_OPTIONS; i++)
        options[i] = batch_options[i] ? batch_options[i] : folder;
    NvrtcJob job = {"compute_90", "batch.cu",      source,  1, &name,
                    &prelude,     N_BATCH_OPTIONS, options, 0, NULL};
    if (nvrtc_compile(nvrtc, &job, &out) == NVRTC_BROKEN) {
        nvrtc_output_release(&out);
        job.n_options--;
        nvrtc_compile(nvrtc, &job, &out);
    }
    if (out.outcome != NVRTC_DONE) fail_msg("%s\n%s", out.log, source);
    char *ptx = memory_strdup(out.ptx);
    nvrtc_output_release(&out);
    return ptx;
}

/* The PTX of a batch for a simulator, compiled once for all runs of `make test`. The caller frees it. */
static inline char *batch_ptx(const char *source)
{
    static Nvrtc *nvrtc;
    const char *prelude = fixture_text("../../eval/compile/prelude.cuh");
    char key[DIGEST_HEX];
    Digester d;
    Digest digest;
    Error err;
    if (!nvrtc && nvrtc_open(&nvrtc, &err)) fail_msg("%s", err.text);
    const char *const parts[] = {"batch of operators", nvrtc_version(nvrtc),
                                 batch_options[N_BATCH_OPTIONS - 1], prelude, source};
    digester_init(&d);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        digester_add_field(&d, parts[i], strlen(parts[i]));
    digester_finish(&d, &digest);
    digest_hex(&digest, key);
    char *ptx = kept_ptx(key);
    if (ptx) return ptx;
    ptx = compile_quickly(nvrtc, prelude, source);
    keep_ptx(key, ptx);
    return ptx;
}

static inline void flush(Batch *b)
{
    CompileResult r = {0};
    Device *d;
    DeviceModule *m;
    Fault fault;
    Error err;
    if (b->n) {
        if (getenv("SHOW_KERNELS")) fputs(b->source.data, stderr);
        if (dev->open(device_arg, &d, &err)) fail_msg("%s", err.text);
        if (b->plain.n && dev->info(d)->predicted)
            r.ptx_len = strlen(r.ptx = batch_ptx(b->source.data));
        else if (b->plain.n)
            compile_batch(b->source.data, &r);
        DeviceCode code = {r.ptx, r.ptx_len, r.cubin, r.cubin_len};
        int rc = dev->load(d, b->plain.n ? &code : NULL, 1, &m, &fault);
        if (rc) fail_msg("%s", rc < 0 ? err.text : fault.message);
        for (int i = 0; i < b->n; i++) run_item(d, m, b->plain.launch, b->item[i]);
        dev->unload(d, m);
        dev->close(d);
    }
    compile_result_release(&r);
    for (int i = 0; i < b->n; i++) {
        fixture_close(&b->item[i]->f);
        free(b->item[i]);
    }
    free(b->plain.launch);
    b->plain = (OpPlain){.source = &b->source};
    buffer_clear(&b->source);
    buffer_puts(&b->source,
                "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda_fp8.h>\n");
    b->n = 0;
}

/* The simulator orders accesses by words of four bytes, and takes two warps that read and write the
 * halves of one for a race. An in-place kernel does so on strided halves only. */
static inline int shares_words(const OpCall *c)
{
    const OpTensor *y = &c->result[0];
    return c->op->flags & OP_IN_PLACE && dtype_size(y->dtype) < 4 &&
           (y->offset || !op_is_contiguous(y));
}

/* Takes the route, or the plain kernels. Returns 0 where there is no route. */
static inline int add(Batch *b, const char *name, const json_t *j, Dtype d, int routed)
{
    Error err;
    Item *it = memory_alloc(sizeof *it);
    fixture_open(&it->f, name, j);
    retype(&it->f, d);
    it->json = j;
    it->from = b->plain.n;
    if (shares_words(&it->f.call)) {
        fixture_close(&it->f);
        free(it);
        return 0;
    }
    OpRoute route = {.kernels = &b->plain};
    int rc = routed ? op_route(&it->f.call, &route, &err) : op_plain(&it->f.call, &b->plain, &err);
    if (rc < 0) fail_msg("%s", err.text);
    if (routed) {
        it->n_calls = rc ? route.n : 0;
        memcpy(it->call, route.call, sizeof it->call);
    }
    it->to = b->plain.n;
    it->n_scratch = b->plain.n_scratch;
    memcpy(it->scratch, b->plain.scratch, sizeof it->scratch);
    if (it->from == it->to && !it->n_calls) { /* views of an input, no elements, or no route */
        fixture_close(&it->f);
        free(it);
        return 0;
    }
    b->item[b->n++] = it;
    if (b->n == MAX_BATCH || b->plain.n > 4000 || b->source.len > BATCH_BYTES) flush(b);
    return 1;
}

/* Calls test for every operator that ONLY_OP's text is in, or for all, with its fixture's cases. */
static inline void each_operator(void (*test)(Batch *b, const Op *op, const json_t *cases))
{
    const char *only = getenv("ONLY_OP");
    Batch b = {.n = 0};
    buffer_init(&b.source, 1 << 22);
    choose_device();
    flush(&b);
    for (int i = 0; op_family(i).n; i++) {
        OpFamily family = op_family(i);
        json_t *all = fixture_file(family.name);
        for (int k = 0; k < family.n; k++) {
            const char *name = family.ops[k].name;
            if (only && !strstr(name, only)) continue;
            test(&b, &family.ops[k], json_object_get(json_object_get(all, name), "cases"));
        }
        flush(&b);
        json_decref(all);
    }
    buffer_release(&b.source);
    free(b.plain.launch);
}

#endif
