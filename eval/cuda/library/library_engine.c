/* Descriptors of cuDNN's backend. The numbers are those of cudnn_graph.h, so that a build needs no header
 * of cuDNN. Every descriptor that is made is destroyed here but a plan that is handed out. */
#include "eval/cuda/library/library_engine.h"

#include <string.h>

#include "eval/cuda/library/library_workspace.h"
#include "gpu/open.h"

/* cudnnBackendDescriptorType_t */
enum {
    CONVOLUTION = 1,
    ENGINE = 2,
    CONFIG = 3,
    HEURISTICS = 4,
    PLAN = 5,
    FORWARD = 10,
    BACKWARD_DATA = 12,
    OPERATIONS = 15,
    POINTERS = 16,
    TENSOR = 17
};

/* cudnnBackendAttributeType_t */
enum {
    TYPE_HANDLE = 0,
    TYPE_DATA = 1,
    TYPE_INT64 = 3,
    TYPE_FLOAT = 4,
    TYPE_POINTER = 6,
    TYPE_MODE = 7,
    TYPE_HEURISTIC = 8,
    TYPE_NOTE = 11,
    TYPE_DESCRIPTOR = 15
};

/* cudnnBackendAttributeName_t */
enum {
    CONVOLUTION_TYPE = 100,
    CONVOLUTION_MODE = 101,
    CONVOLUTION_DILATIONS = 102,
    CONVOLUTION_STRIDES = 103,
    CONVOLUTION_PADDING_AFTER = 104,
    CONVOLUTION_PADDING_BEFORE = 105,
    CONVOLUTION_DIMS = 106,
    HEURISTICS_MODE = 200,
    HEURISTICS_OPERATIONS = 201,
    HEURISTICS_RESULTS = 202,
    CONFIG_ENGINE = 300,
    PLAN_HANDLE = 400,
    PLAN_CONFIG = 401,
    PLAN_WORKSPACE = 402,
    OPERATIONS_HANDLE = 800,
    OPERATIONS_OPS = 801,
    TENSOR_ALIGNMENT = 900,
    TENSOR_TYPE = 901,
    TENSOR_SIZES = 902,
    TENSOR_STRIDES = 903,
    TENSOR_NAME = 906,
    POINTERS_NAMES = 1000,
    POINTERS_DATA = 1001,
    POINTERS_WORKSPACE = 1003,
    ENGINE_NOTES = 1303
};

/* cudnnBackendNumericalNote_t, and other values */
enum {
    NOTE_TENSOR_CORE = 0,
    NOTE_NARROWED_INPUTS = 1,
    MAX_NOTES = 16,
    MAX_CONFIGS = 64,
    CROSS_CORRELATION = 1,
    DATA_FLOAT = 0
};

/* What an operation calls its operands: alpha, beta, the convolution, the weight, x and y, where x is the
 * wider side: of a gradient the result. */
static const int attributes[2][6] = {{700, 701, 702, 703, 704, 705},
                                     {706, 707, 708, 709, 710, 711}};

static struct {
    int (*create)(int type, void **);
    int (*destroy)(void *);
    int (*finalize)(void *);
    int (*set)(void *, int name, int type, int64_t n, const void *);
    int (*get)(void *, int name, int type, int64_t n, int64_t *have, void *);
    int (*execute)(void *handle, void *plan, void *pointers);
    const char *(*status)(int);
    int loaded;
} dnn;

int library_engine_load(Error *err)
{
    static const char *const files[] = {"libcudnn.so.9", NULL};
    static const char *const names[] = {
        "cudnnBackendCreateDescriptor", "cudnnBackendDestroyDescriptor", "cudnnBackendFinalize",
        "cudnnBackendSetAttribute",     "cudnnBackendGetAttribute",      "cudnnBackendExecute",
        "cudnnGetErrorString"};
    if (dnn.loaded) return 0;
    if (open_library(files, OPEN_FUNCTIONS(names, &dnn), err)) return -1;
    dnn.loaded = 1;
    return 0;
}

static int check(int status, const char *what, Error *err)
{
    if (!status) return 0;
    return error_set(err, ERROR_UNSUPPORTED, "cuDNN's %s: %s (%d)", what, dnn.status(status),
                     status);
}

/* ---- descriptors ---- */

static void destroy(void **d)
{
    if (*d) dnn.destroy(*d);
    *d = NULL;
}

/* One attribute; name 0 ends a list. */
typedef struct {
    int name, type;
    int64_t n;
    const void *value;
} Attribute;

/* *out is the caller's to destroy, after an error too. */
static int make(void **out, int type, const Attribute *a, const char *what, Error *err)
{
    *out = NULL;
    if (check(dnn.create(type, out), what, err)) return -1;
    for (; a->name; a++)
        if (check(dnn.set(*out, a->name, a->type, a->n, a->value), what, err)) return -1;
    return check(dnn.finalize(*out), what, err);
}

/* The descriptors of one operation. */
typedef struct {
    void *x, *weight, *y, *convolution, *operation, *graph;
} Operation;

static void operation_destroy(Operation *o)
{
    destroy(&o->graph);
    destroy(&o->operation);
    destroy(&o->convolution);
    destroy(&o->x);
    destroy(&o->weight);
    destroy(&o->y);
}

int library_engine_alignment(const LibraryConvolution *c)
{
    int n = 1;
    while (n < ENGINE_MAX_ALIGNED && (c->x | c->weight | c->y) % (2 * (uint64_t)n) == 0) n *= 2;
    return n;
}

void library_engine_strides(const LibraryConvolution *c, int n, const int64_t *sizes,
                            int64_t *strides)
{
    int64_t stride = c->last ? sizes[1] : 1;
    for (int i = n - 1; i >= 0; i--) {
        if (c->last && i == 1) continue;
        strides[i] = stride;
        stride *= sizes[i];
    }
    if (c->last) strides[1] = 1;
}

static int make_tensor(void **out, const LibraryConvolution *c, int64_t name, int n,
                       const int64_t *sizes, Error *err)
{
    static const int types[] = {DATA_FLOAT, 2, 9};
    int64_t strides[5], aligned = library_engine_alignment(c);
    library_engine_strides(c, n, sizes, strides);
    const Attribute a[] = {
        {TENSOR_TYPE, TYPE_DATA, 1, &types[c->dtype]}, {TENSOR_SIZES, TYPE_INT64, n, sizes},
        {TENSOR_STRIDES, TYPE_INT64, n, strides},      {TENSOR_NAME, TYPE_INT64, 1, &name},
        {TENSOR_ALIGNMENT, TYPE_INT64, 1, &aligned},   {0}};
    return make(out, TENSOR, a, "tensor", err);
}

/* The spatial dimensions are the last two, or all three. */
static int make_operands(Operation *o, const LibraryConvolution *c, Error *err)
{
    int flat = c->d[0].in == 1 && c->d[0].kernel == 1 && c->d[0].out == 1, n = flat ? 2 : 3;
    const int type = DATA_FLOAT, mode = CROSS_CORRELATION;
    int64_t x[5] = {c->batch, c->in}, y[5] = {c->batch, c->out}, weight[5], padding[3], stride[3],
            dilation[3], dims = n;
    weight[0] = c->transposed ? c->in : c->out;
    weight[1] = (c->transposed ? c->out : c->in) / c->groups;
    for (int i = 0; i < n; i++) {
        int d = i + flat;
        x[2 + i] = c->d[d].in, y[2 + i] = c->d[d].out, weight[2 + i] = c->d[d].kernel;
        padding[i] = c->d[d].padding, stride[i] = c->d[d].stride, dilation[i] = c->d[d].dilation;
    }
    const Attribute a[] = {{CONVOLUTION_TYPE, TYPE_DATA, 1, &type},
                           {CONVOLUTION_MODE, TYPE_MODE, 1, &mode},
                           {CONVOLUTION_DIMS, TYPE_INT64, 1, &dims},
                           {CONVOLUTION_PADDING_BEFORE, TYPE_INT64, n, padding},
                           {CONVOLUTION_PADDING_AFTER, TYPE_INT64, n, padding},
                           {CONVOLUTION_STRIDES, TYPE_INT64, n, stride},
                           {CONVOLUTION_DILATIONS, TYPE_INT64, n, dilation},
                           {0}};
    return make_tensor(&o->x, c, 'x', n + 2, x, err) || make_tensor(&o->y, c, 'y', n + 2, y, err) ||
                   make_tensor(&o->weight, c, 'w', n + 2, weight, err) ||
                   make(&o->convolution, CONVOLUTION, a, "convolution", err)
               ? -1
               : 0;
}

static int make_operation(Operation *o, void *handle, const LibraryConvolution *c, Error *err)
{
    const int *name = attributes[c->transposed];
    const float one = 1, zero = 0;
    *o = (Operation){0};
    if (make_operands(o, c, err)) return -1;
    const Attribute a[] = {{name[0], TYPE_FLOAT, 1, &one},
                           {name[1], TYPE_FLOAT, 1, &zero},
                           {name[2], TYPE_DESCRIPTOR, 1, &o->convolution},
                           {name[3], TYPE_DESCRIPTOR, 1, &o->weight},
                           {name[4], TYPE_DESCRIPTOR, 1, c->transposed ? &o->y : &o->x},
                           {name[5], TYPE_DESCRIPTOR, 1, c->transposed ? &o->x : &o->y},
                           {0}};
    if (make(&o->operation, c->transposed ? BACKWARD_DATA : FORWARD, a, "operation", err))
        return -1;
    const Attribute g[] = {{OPERATIONS_HANDLE, TYPE_HANDLE, 1, &handle},
                           {OPERATIONS_OPS, TYPE_DESCRIPTOR, 1, &o->operation},
                           {0}};
    return make(&o->graph, OPERATIONS, g, "graph of operations", err);
}

/* ---- the choice ---- */

/* 1: the configuration's engine computes with what eager PyTorch allows: float32 on tensor cores only where
 * TF32 is, and in no case as half types. */
static int allowed(void *config, const LibraryConvolution *c)
{
    void *engine = NULL;
    int notes[MAX_NOTES], ok;
    int64_t n = 0;
    if (dnn.create(ENGINE, &engine)) return 0;
    ok = !dnn.get(config, CONFIG_ENGINE, TYPE_DESCRIPTOR, 1, &n, &engine) &&
         !dnn.get(engine, ENGINE_NOTES, TYPE_NOTE, MAX_NOTES, &n, notes);
    for (int64_t i = 0; ok && i < n && i < MAX_NOTES; i++) {
        if (!c->dtype &&
            (notes[i] == NOTE_NARROWED_INPUTS || (notes[i] == NOTE_TENSOR_CORE && !c->tf32)))
            ok = 0;
    }
    destroy(&engine);
    return ok;
}

/* 1: the plan is built and there is memory for its workspace. */
static int build(void *handle, void *config, LibraryEngine *e)
{
    int64_t bytes = 0, n = 0;
    void *workspace;
    const Attribute a[] = {
        {PLAN_HANDLE, TYPE_HANDLE, 1, &handle}, {PLAN_CONFIG, TYPE_DESCRIPTOR, 1, &config}, {0}};
    if (!make(&e->plan, PLAN, a, "plan", NULL) &&
        !dnn.get(e->plan, PLAN_WORKSPACE, TYPE_INT64, 1, &n, &bytes) && bytes >= 0 &&
        (!bytes || !library_workspace((size_t)bytes, &workspace, NULL))) {
        e->bytes = (size_t)bytes;
        return 1;
    }
    destroy(&e->plan);
    return 0;
}

/* 1: found; 0: none of this list; -1: the list cannot be had. */
static int choose(void *handle, const Operation *o, const LibraryConvolution *c, int mode,
                  LibraryEngine *e, Error *err)
{
    void *list = NULL, *configs[MAX_CONFIGS] = {NULL};
    int64_t n = 0;
    int rc, made = 0, found = 0;
    const Attribute a[] = {{HEURISTICS_OPERATIONS, TYPE_DESCRIPTOR, 1, &o->graph},
                           {HEURISTICS_MODE, TYPE_HEURISTIC, 1, &mode},
                           {0}};
    rc = make(&list, HEURISTICS, a, "heuristics", err);
    for (; made < MAX_CONFIGS && !rc; made++)
        rc = check(dnn.create(CONFIG, &configs[made]), "configuration", err);
    if (!rc)
        rc = check(dnn.get(list, HEURISTICS_RESULTS, TYPE_DESCRIPTOR, MAX_CONFIGS, &n, configs),
                   "list of engines", err);
    for (int64_t i = 0; i < n && i < MAX_CONFIGS && !rc && !found; i++) {
        e->offered++;
        found = allowed(configs[i], c) && build(handle, configs[i], e);
    }
    for (int i = 0; i < made; i++) destroy(&configs[i]);
    destroy(&list);
    return rc ? -1 : found;
}

int library_engine_find(void *handle, const LibraryConvolution *c, LibraryEngine *out, Error *err)
{
    static const int modes[] = {0, 2}; /* instant, fallback */
    Operation o;
    int found = 0;
    *out = (LibraryEngine){0};
    int rc = make_operation(&o, handle, c, err);
    for (int i = 0; i < 2 && !rc && found <= 0; i++)
        found = choose(handle, &o, c, modes[i], out, err);
    operation_destroy(&o);
    if (!rc && !found)
        error_set(err, ERROR_UNSUPPORTED,
                  "cuDNN offers no engine for this convolution (%d were named)", out->offered);
    return found > 0 ? 0 : -1;
}

int library_engine_run(void *handle, const LibraryEngine *e, const LibraryConvolution *c,
                       void *workspace, Error *err)
{
    static const int64_t names[] = {'x', 'w', 'y'};
    void *data[] = {library_pointer(c->x), library_pointer(c->weight), library_pointer(c->y)};
    const Attribute a[] = {{POINTERS_NAMES, TYPE_INT64, 3, names},
                           {POINTERS_DATA, TYPE_POINTER, 3, data},
                           {POINTERS_WORKSPACE, TYPE_POINTER, 1, &workspace},
                           {0}};
    void *pointers = NULL;
    int rc = make(&pointers, POINTERS, a, "list of pointers", err);
    if (!rc) rc = check(dnn.execute(handle, e->plan, pointers), "engine", err);
    destroy(&pointers);
    return rc;
}

void library_engine_release(LibraryEngine *e)
{
    destroy(&e->plan);
}
