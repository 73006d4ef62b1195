/* cuDNN's convolutions by an engine of its graph functions, and where it offers none by its legacy
 * functions, which cuDNN 9 still has. A transposed convolution is the gradient of a plain one by its
 * input. The declarations are here, so that a build needs no header of cuDNN. */
#include "eval/cuda/library/library_cudnn.h"

#include <string.h>

#include "eval/cuda/library/library_cublas.h"
#include "eval/cuda/library/library_engine.h"
#include "eval/cuda/library/library_workspace.h"
#include "gpu/nvrtc.h"
#include "gpu/open.h"

enum {
    DNN_FLOAT = 0,
    DNN_HALF = 2,
    DNN_BFLOAT16 = 9,
    DNN_NCHW = 0,
    DNN_NHWC = 1,
    DNN_DEFAULT_MATH = 0,
    DNN_TENSOR_MATH = 1,
    DNN_FMA_MATH = 3,
    DNN_CROSS_CORRELATION = 1,
    DNN_ALGORITHMS = 8,
    /* The thousands of a status: a call that cannot be made, on any device or on this one. */
    DNN_BAD_PARAM = 2,
    DNN_NOT_SUPPORTED = 3
};

/* cudnnConvolutionFwdAlgoPerf_t, and the same for gradients */
typedef struct {
    int algorithm, status;
    float ms;
    size_t bytes;
    int deterministic, math, reserved[3];
} DnnChoice;

/* One shape, ready to run. */
typedef struct {
    LibraryConvolution shape; /* without pointers */
    int aligned;              /* which these have */
    LibraryEngine engine;     /* without a plan: the rest holds */
    void *x, *weight, *y, *convolution;
    int algorithm;
    size_t bytes;
} DnnPlan;

static struct {
    int (*create)(void **);
    int (*set_stream)(void *, void *stream);
    const char *(*status)(int);
    int (*tensor_create)(void **);
    int (*tensor_set)(void *, int type, int n, const int *dims, const int *strides);
    int (*tensor_destroy)(void *);
    int (*filter_create)(void **);
    int (*filter_set)(void *, int type, int format, int n, const int *dims);
    int (*filter_destroy)(void *);
    int (*convolution_create)(void **);
    int (*convolution_set)(void *, int n, const int *padding, const int *stride,
                           const int *dilation, int mode, int type);
    int (*convolution_math)(void *, int math);
    int (*convolution_groups)(void *, int groups);
    int (*convolution_destroy)(void *);
    /* Forward, and the gradient by the input, whose functions have the same parameters: the forward
     * one's first and second operands are x and the weight, the gradient's the weight and x. */
    struct {
        int (*choose)(void *, void *first, void *second, void *convolution, void *y, int max,
                      int *n, DnnChoice *out);
        int (*workspace)(void *, void *first, void *second, void *convolution, void *y,
                         int algorithm, size_t *bytes);
        int (*run)(void *, const void *alpha, void *lfirst, const void *first, void *lsecond,
                   const void *second, void *convolution, int algorithm, void *workspace,
                   size_t bytes, const void *beta, void *ly, void *y);
    } way[2];
    int loaded;
    void *handle;
    DnnPlan plans[LIBRARY_MAX_SHAPES];
    int n_plans, next, last;
} dnn;

static int check(int status, const char *what, Error *err)
{
    if (!status) return 0;
    int refused = status / 1000 == DNN_BAD_PARAM || status / 1000 == DNN_NOT_SUPPORTED;
    return error_set(err, refused ? ERROR_UNSUPPORTED : ERROR_DEVICE, "%s: %s (%d)", what,
                     dnn.status(status), status);
}

static int load(Error *err)
{
    static const char *const files[] = {"libcudnn.so.9", NULL};
    static const char *const names[] = {"cudnnCreate",
                                        "cudnnSetStream",
                                        "cudnnGetErrorString",
                                        "cudnnCreateTensorDescriptor",
                                        "cudnnSetTensorNdDescriptor",
                                        "cudnnDestroyTensorDescriptor",
                                        "cudnnCreateFilterDescriptor",
                                        "cudnnSetFilterNdDescriptor",
                                        "cudnnDestroyFilterDescriptor",
                                        "cudnnCreateConvolutionDescriptor",
                                        "cudnnSetConvolutionNdDescriptor",
                                        "cudnnSetConvolutionMathType",
                                        "cudnnSetConvolutionGroupCount",
                                        "cudnnDestroyConvolutionDescriptor",
                                        "cudnnGetConvolutionForwardAlgorithm_v7",
                                        "cudnnGetConvolutionForwardWorkspaceSize",
                                        "cudnnConvolutionForward",
                                        "cudnnGetConvolutionBackwardDataAlgorithm_v7",
                                        "cudnnGetConvolutionBackwardDataWorkspaceSize",
                                        "cudnnConvolutionBackwardData"};
    Nvrtc *compiler;
    if (dnn.loaded) return 0;
    if (library_cublas_load(err) || open_library(files, OPEN_FUNCTIONS(names, &dnn), err) ||
        library_engine_load(err))
        return -1;
    /* Some engines are compiled by cuDNN, which would find NVRTC on the loader's path alone. */
    if (!nvrtc_open(&compiler, NULL)) nvrtc_close(compiler);
    dnn.loaded = 1;
    return 0;
}

static void plan_destroy(DnnPlan *p)
{
    library_engine_release(&p->engine);
    if (p->x) dnn.tensor_destroy(p->x);
    if (p->y) dnn.tensor_destroy(p->y);
    if (p->weight) dnn.filter_destroy(p->weight);
    if (p->convolution) dnn.convolution_destroy(p->convolution);
    memset(p, 0, sizeof *p);
}

static const int data_types[] = {DNN_FLOAT, DNN_HALF, DNN_BFLOAT16};

typedef struct {
    const char *name; /* for messages */
    int n, dims[5];   /* batch, channels, sizes */
} DnnTensor;

static int make_tensor(void **out, const LibraryConvolution *c, const DnnTensor *t, Error *err)
{
    int64_t sizes[5], wide[5];
    int strides[5];
    for (int i = 0; i < t->n; i++) sizes[i] = t->dims[i];
    library_engine_strides(c, t->n, sizes, wide);
    for (int i = 0; i < t->n; i++) {
        if (wide[i] > INT32_MAX)
            return error_set(err, ERROR_LIMIT, "%s has more than 2^31 elements", t->name);
        strides[i] = (int)wide[i];
    }
    if (check(dnn.tensor_create(out), t->name, err)) return -1;
    return check(dnn.tensor_set(*out, data_types[c->dtype], t->n, t->dims, strides), t->name, err);
}

/* The operands' descriptors in the order of the functions. */
static void operands(const DnnPlan *p, void **first, void **second)
{
    *first = p->shape.transposed ? p->weight : p->x;
    *second = p->shape.transposed ? p->x : p->weight;
}

/* 1: the choice works, in float32 arithmetic for float32. Algorithms that round to TF32 work where it is
 * allowed. */
static int works(const DnnPlan *p, const DnnChoice *c, size_t *bytes)
{
    void *first, *second;
    operands(p, &first, &second);
    if (c->status) return 0;
    if (!p->shape.dtype && !p->shape.tf32 && c->math != DNN_FMA_MATH && c->math != DNN_DEFAULT_MATH)
        return 0;
    return !dnn.way[p->shape.transposed].workspace(dnn.handle, first, second, p->convolution, p->y,
                                                   c->algorithm, bytes) &&
           *bytes <= LIBRARY_MAX_WORKSPACE;
}

/* Takes cuDNN's first algorithm that works and repeats bit for bit, else the first that works. */
static int choose_algorithm(DnnPlan *p, Error *err)
{
    DnnChoice choices[DNN_ALGORITHMS];
    void *first, *second;
    int n = 0, found = -1;
    operands(p, &first, &second);
    if (check(dnn.way[p->shape.transposed].choose(dnn.handle, first, second, p->convolution, p->y,
                                                  DNN_ALGORITHMS, &n, choices),
              "cuDNN's choice of an algorithm", err))
        return -1;
    for (int i = 0; i < n && i < DNN_ALGORITHMS; i++) {
        size_t bytes = 0;
        if (!works(p, &choices[i], &bytes) || (found >= 0 && !choices[i].deterministic)) continue;
        found = i;
        p->algorithm = choices[i].algorithm;
        p->bytes = bytes;
        if (choices[i].deterministic) break;
    }
    if (found < 0)
        return error_set(err, ERROR_UNSUPPORTED,
                         "cuDNN offers no algorithm for this convolution (%d were named)", n);
    return p->shape.dtype || p->shape.tf32
               ? check(dnn.convolution_math(p->convolution, choices[found].math),
                       "cudnnSetConvolutionMathType", err)
               : 0;
}

/* The spatial dimensions are the last two, or all three. */
static int legacy_make(DnnPlan *p, Error *err)
{
    const LibraryConvolution *c = &p->shape;
    const int type = data_types[c->dtype];
    int flat = c->d[0].in == 1 && c->d[0].kernel == 1 && c->d[0].out == 1, n = flat ? 2 : 3;
    DnnTensor x = {"the input", n + 2, {(int)c->batch, (int)c->in}},
              y = {"the output", n + 2, {(int)c->batch, (int)c->out}};
    int weight[5], padding[3], stride[3], dilation[3];
    weight[0] = (int)(c->transposed ? c->in : c->out);
    weight[1] = (int)((c->transposed ? c->out : c->in) / c->groups);
    for (int i = 0; i < n; i++) {
        int d = i + flat;
        x.dims[2 + i] = (int)c->d[d].in, y.dims[2 + i] = (int)c->d[d].out;
        weight[2 + i] = (int)c->d[d].kernel;
        padding[i] = (int)c->d[d].padding;
        stride[i] = (int)c->d[d].stride;
        dilation[i] = (int)c->d[d].dilation;
    }
    if (make_tensor(&p->x, c, &x, err) || make_tensor(&p->y, c, &y, err) ||
        check(dnn.filter_create(&p->weight), "the filter", err) ||
        check(dnn.filter_set(p->weight, type, c->last ? DNN_NHWC : DNN_NCHW, n + 2, weight),
              "the filter", err) ||
        check(dnn.convolution_create(&p->convolution), "the convolution", err) ||
        check(dnn.convolution_set(p->convolution, n, padding, stride, dilation,
                                  DNN_CROSS_CORRELATION, DNN_FLOAT),
              "the convolution", err) ||
        check(dnn.convolution_groups(p->convolution, (int)c->groups), "the groups", err) ||
        check(dnn.convolution_math(p->convolution, c->dtype  ? DNN_TENSOR_MATH
                                                   : c->tf32 ? DNN_DEFAULT_MATH
                                                             : DNN_FMA_MATH),
              "cudnnSetConvolutionMathType", err))
        return -1;
    return choose_algorithm(p, err);
}

static int plan_make(DnnPlan *p, const LibraryConvolution *c, Error *err)
{
    if (library_engine_find(dnn.handle, c, &p->engine, err)) return legacy_make(p, err);
    p->bytes = p->engine.bytes;
    return 0;
}

static int find_plan(const LibraryConvolution *c, DnnPlan **out, Error *err)
{
    DnnPlan made = {.algorithm = -1, .aligned = library_engine_alignment(c)};
    memcpy(&made.shape, c, sizeof *c);
    made.shape.x = made.shape.weight = made.shape.y = 0;
    for (int i = 0, last = dnn.last; i < dnn.n_plans; i++) {
        dnn.last = library_kept(last, i, dnn.n_plans);
        *out = &dnn.plans[dnn.last];
        if ((*out)->aligned == made.aligned &&
            !memcmp(&(*out)->shape, &made.shape, sizeof made.shape))
            return 0;
    }
    if (plan_make(&made, c, err)) {
        plan_destroy(&made);
        return -1;
    }
    if (dnn.n_plans < LIBRARY_MAX_SHAPES) {
        *out = &dnn.plans[dnn.n_plans++];
    } else {
        *out = &dnn.plans[dnn.next];
        dnn.next = (dnn.next + 1) % LIBRARY_MAX_SHAPES;
        plan_destroy(*out);
    }
    memcpy(*out, &made, sizeof made);
    dnn.last = (int)(*out - dnn.plans);
    return 0;
}

static int legacy_run(const DnnPlan *p, const LibraryConvolution *c, void *workspace, Error *err)
{
    const float one = 1, zero = 0;
    const void *x = library_pointer(c->x), *weight = library_pointer(c->weight);
    void *first, *second;
    operands(p, &first, &second);
    return check(dnn.way[c->transposed].run(dnn.handle, &one, first, c->transposed ? weight : x,
                                            second, c->transposed ? x : weight, p->convolution,
                                            p->algorithm, workspace, p->bytes, &zero, p->y,
                                            library_pointer(c->y)),
                 "a convolution of cuDNN", err);
}

int library_cudnn_convolution(const LibraryConvolution *c, void *stream, Error *err)
{
    void *workspace = NULL;
    DnnPlan *p;
    if (load(err)) return -1;
    if (!dnn.handle && check(dnn.create(&dnn.handle), "cudnnCreate", err)) return -1;
    if (check(dnn.set_stream(dnn.handle, stream), "cudnnSetStream", err) || find_plan(c, &p, err) ||
        (p->bytes && library_workspace(p->bytes, &workspace, err)))
        return -1;
    return p->engine.plan ? library_engine_run(dnn.handle, &p->engine, c, workspace, err)
                          : legacy_run(p, c, workspace, err);
}
