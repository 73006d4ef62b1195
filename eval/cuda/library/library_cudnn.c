/* cuDNN's convolutions by an engine of its graph functions: the first of the heuristics' list, then of the
 * fallback list, that computes in float32, or TF32 where that is allowed, and can be built, as eager PyTorch
 * takes it. A transposed convolution is the gradient of a plain one by its input. The numbers are those of
 * cudnn_graph.h, so that a build needs no header of cuDNN. All descriptors are destroyed here but plans. */
#include "eval/cuda/library/library_cudnn.h"

#include <string.h>

#include "eval/cuda/library/library_cublas.h"
#include "eval/cuda/library/library_workspace.h"
#include "gpu/nvrtc.h"
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
    MAX_ALIGNED = 32,
    CROSS_CORRELATION = 1,
    DATA_FLOAT = 0
};

/* The attributes of an operation's operands: alpha, beta, the convolution, the weight, x and y. x is the
 * wider side, which is the result of a gradient. */
static const int attributes[2][6] = {{700, 701, 702, 703, 704, 705},
                                     {706, 707, 708, 709, 710, 711}};

/* The thousands of a status: a call that cannot be made, on any device or on this one. */
enum { DNN_BAD_PARAM = 2, DNN_NOT_SUPPORTED = 3 };

/* One shape, ready to run. */
typedef struct {
    LibraryConvolution shape; /* without pointers */
    int aligned;              /* which these have */
    void *plan;
    size_t bytes; /* of workspace */
} DnnPlan;

/* clang-format off */
#define CUDNN_FUNCTIONS(X, TEXT)                                                                     \
    X(cudnnCreate, create, (void **))                                                                \
    X(cudnnSetStream, set_stream, (void *, void *stream))                                            \
    TEXT(cudnnGetErrorString, status, (int))                                                         \
    X(cudnnBackendCreateDescriptor, make, (int type, void **))                                       \
    X(cudnnBackendDestroyDescriptor, destroy, (void *))                                              \
    X(cudnnBackendFinalize, finalize, (void *))                                                      \
    X(cudnnBackendSetAttribute, set, (void *, int name, int type, int64_t n, const void *))          \
    X(cudnnBackendGetAttribute, get, (void *, int name, int type, int64_t n, int64_t *have, void *)) \
    X(cudnnBackendExecute, execute, (void *handle, void *plan, void *pointers))
/* clang-format on */

static struct {
    CUDNN_FUNCTIONS(OPEN_INT, OPEN_TEXT)
    int loaded;
    void *handle;
    DnnPlan plans[LIBRARY_MAX_SHAPES];
    int n_plans, next, last;
} dnn;

static int check(int status, const char *what, Error *err)
{
    if (!status) return 0;
    int refused = status / 1000 == DNN_BAD_PARAM || status / 1000 == DNN_NOT_SUPPORTED;
    return error_set(err, refused ? ERROR_UNSUPPORTED : ERROR_DEVICE, "cuDNN's %s: %s (%d)", what,
                     dnn.status(status), status);
}

static int load(Error *err)
{
    static const char *const files[] = {"libcudnn.so.9", NULL};
    static const char *const names[] = {CUDNN_FUNCTIONS(OPEN_NAME, OPEN_NAME)};
    Nvrtc *compiler;
    if (dnn.loaded) return 0;
    if (library_cublas_load(err) || open_library(files, OPEN_FUNCTIONS(names, &dnn), err))
        return -1;
    /* Some engines are compiled by cuDNN, which would find NVRTC on the loader's path alone. */
    if (!nvrtc_open(&compiler, NULL)) nvrtc_close(compiler);
    dnn.loaded = 1;
    return 0;
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
    if (check(dnn.make(type, out), what, err)) return -1;
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

/* Pointers are aligned to at least so many bytes, which decides what engines fit. */
static int alignment(const LibraryConvolution *c)
{
    int n = 1;
    while (n < MAX_ALIGNED && (c->x | c->weight | c->y) % (2 * (uint64_t)n) == 0) n *= 2;
    return n;
}

/* The strides of a dense tensor of n sizes (batch, channels, the rest) in the convolution's layout. */
static void dense_strides(const LibraryConvolution *c, int n, const int64_t *sizes,
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
    int64_t strides[5], aligned = alignment(c);
    dense_strides(c, n, sizes, strides);
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

static int make_operation(Operation *o, const LibraryConvolution *c, Error *err)
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
    const Attribute g[] = {{OPERATIONS_HANDLE, TYPE_HANDLE, 1, &dnn.handle},
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
    if (dnn.make(ENGINE, &engine)) return 0;
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
static int build(void *config, DnnPlan *p)
{
    int64_t bytes = 0, n = 0;
    void *workspace;
    const Attribute a[] = {{PLAN_HANDLE, TYPE_HANDLE, 1, &dnn.handle},
                           {PLAN_CONFIG, TYPE_DESCRIPTOR, 1, &config},
                           {0}};
    if (!make(&p->plan, PLAN, a, "plan", NULL) &&
        !dnn.get(p->plan, PLAN_WORKSPACE, TYPE_INT64, 1, &n, &bytes) && bytes >= 0 &&
        (!bytes || !library_workspace((size_t)bytes, &workspace, NULL))) {
        p->bytes = (size_t)bytes;
        return 1;
    }
    destroy(&p->plan);
    return 0;
}

/* 1: found; 0: none of this list; -1: the list cannot be had. */
static int choose(const Operation *o, const LibraryConvolution *c, int mode, DnnPlan *p,
                  int *offered, Error *err)
{
    void *list = NULL, *configs[MAX_CONFIGS] = {NULL};
    int64_t n = 0;
    int rc, made = 0, found = 0;
    const Attribute a[] = {{HEURISTICS_OPERATIONS, TYPE_DESCRIPTOR, 1, &o->graph},
                           {HEURISTICS_MODE, TYPE_HEURISTIC, 1, &mode},
                           {0}};
    rc = make(&list, HEURISTICS, a, "heuristics", err);
    for (; made < MAX_CONFIGS && !rc; made++)
        rc = check(dnn.make(CONFIG, &configs[made]), "configuration", err);
    if (!rc)
        rc = check(dnn.get(list, HEURISTICS_RESULTS, TYPE_DESCRIPTOR, MAX_CONFIGS, &n, configs),
                   "list of engines", err);
    for (int64_t i = 0; i < n && i < MAX_CONFIGS && !rc && !found; i++) {
        *offered += 1;
        found = allowed(configs[i], c) && build(configs[i], p);
    }
    for (int i = 0; i < made; i++) destroy(&configs[i]);
    destroy(&list);
    return rc ? -1 : found;
}

static int make_plan(DnnPlan *p, const LibraryConvolution *c, Error *err)
{
    static const int modes[] = {0, 2}; /* instant, fallback */
    Operation o;
    int found = 0, offered = 0, rc = make_operation(&o, c, err);
    for (int i = 0; i < 2 && !rc && found <= 0; i++)
        found = choose(&o, c, modes[i], p, &offered, err);
    operation_destroy(&o);
    if (!rc && !found)
        error_set(err, ERROR_UNSUPPORTED,
                  "cuDNN offers no engine for this convolution (%d were named)", offered);
    return found > 0 ? 0 : -1;
}

static int run_plan(const DnnPlan *p, const LibraryConvolution *c, void *workspace, Error *err)
{
    static const int64_t names[] = {'x', 'w', 'y'};
    void *data[] = {library_pointer(c->x), library_pointer(c->weight), library_pointer(c->y)};
    const Attribute a[] = {{POINTERS_NAMES, TYPE_INT64, 3, names},
                           {POINTERS_DATA, TYPE_POINTER, 3, data},
                           {POINTERS_WORKSPACE, TYPE_POINTER, 1, &workspace},
                           {0}};
    void *pointers = NULL;
    int rc = make(&pointers, POINTERS, a, "list of pointers", err);
    if (!rc) rc = check(dnn.execute(dnn.handle, p->plan, pointers), "engine", err);
    destroy(&pointers);
    return rc;
}

/* ---- calls ---- */

static int find_plan(const LibraryConvolution *c, DnnPlan **out, Error *err)
{
    DnnPlan made = {.aligned = alignment(c)};
    memcpy(&made.shape, c, sizeof *c);
    made.shape.x = made.shape.weight = made.shape.y = 0;
    for (int i = 0, last = dnn.last; i < dnn.n_plans; i++) {
        dnn.last = library_kept(last, i, dnn.n_plans);
        *out = &dnn.plans[dnn.last];
        if ((*out)->aligned == made.aligned &&
            !memcmp(&(*out)->shape, &made.shape, sizeof made.shape))
            return 0;
    }
    if (make_plan(&made, c, err)) return -1;
    if (dnn.n_plans < LIBRARY_MAX_SHAPES) {
        *out = &dnn.plans[dnn.n_plans++];
    } else {
        *out = &dnn.plans[dnn.next];
        dnn.next = (dnn.next + 1) % LIBRARY_MAX_SHAPES;
        destroy(&(*out)->plan);
    }
    memcpy(*out, &made, sizeof made);
    dnn.last = (int)(*out - dnn.plans);
    return 0;
}

int library_cudnn_convolution(const LibraryConvolution *c, void *stream, Error *err)
{
    void *workspace = NULL;
    DnnPlan *p;
    if (load(err)) return -1;
    if (!dnn.handle && check(dnn.create(&dnn.handle), "handle", err)) return -1;
    if (check(dnn.set_stream(dnn.handle, stream), "stream", err) || find_plan(c, &p, err) ||
        (p->bytes && library_workspace(p->bytes, &workspace, err)))
        return -1;
    return run_plan(p, c, workspace, err);
}
