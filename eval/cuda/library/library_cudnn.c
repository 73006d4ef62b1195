/* cuDNN's convolution through its legacy functions, which cuDNN 9 still has. The declarations are
 * here, so that a build needs no header of cuDNN. */
#include "eval/cuda/library/library_cudnn.h"

#include <string.h>

#include "eval/cuda/library/library_cublas.h"
#include "eval/cuda/library/library_workspace.h"
#include "gpu/open.h"

enum {
    DNN_FLOAT = 0,
    DNN_NCHW = 0,
    DNN_DEFAULT_MATH = 0,
    DNN_FMA_MATH = 3,
    DNN_CROSS_CORRELATION = 1,
    DNN_ALGORITHMS = 8
};

/* cudnnConvolutionFwdAlgoPerf_t */
typedef struct {
    int algorithm, status;
    float ms;
    size_t bytes;
    int deterministic, math, reserved[3];
} DnnChoice;

/* One shape, ready to run. */
typedef struct {
    int shape[9]; /* batch, cin, cout, depth, height, width, kernel, stride, padding */
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
    int (*convolution_destroy)(void *);
    int (*choose)(void *, void *x, void *weight, void *convolution, void *y, int max, int *n,
                  DnnChoice *out);
    int (*workspace)(void *, void *x, void *weight, void *convolution, void *y, int algorithm,
                     size_t *bytes);
    int (*forward)(void *, const void *alpha, void *lx, const void *x, void *lweight,
                   const void *weight, void *convolution, int algorithm, void *workspace,
                   size_t bytes, const void *beta, void *ly, void *y);
    int loaded;
    void *handle;
    DnnPlan plans[LIBRARY_MAX_SHAPES];
    int n_plans, next;
} dnn;

static int check(int status, const char *what, Error *err)
{
    if (!status) return 0;
    return error_set(err, ERROR_DEVICE, "%s: %s (%d)", what, dnn.status(status), status);
}

static int load(Error *err)
{
    static const char *const files[] = {"libcudnn.so.9", NULL};
    const OpenSymbol symbols[] = {
        {"cudnnCreate", &dnn.create},
        {"cudnnSetStream", &dnn.set_stream},
        {"cudnnGetErrorString", &dnn.status},
        {"cudnnCreateTensorDescriptor", &dnn.tensor_create},
        {"cudnnSetTensorNdDescriptor", &dnn.tensor_set},
        {"cudnnDestroyTensorDescriptor", &dnn.tensor_destroy},
        {"cudnnCreateFilterDescriptor", &dnn.filter_create},
        {"cudnnSetFilterNdDescriptor", &dnn.filter_set},
        {"cudnnDestroyFilterDescriptor", &dnn.filter_destroy},
        {"cudnnCreateConvolutionDescriptor", &dnn.convolution_create},
        {"cudnnSetConvolutionNdDescriptor", &dnn.convolution_set},
        {"cudnnSetConvolutionMathType", &dnn.convolution_math},
        {"cudnnDestroyConvolutionDescriptor", &dnn.convolution_destroy},
        {"cudnnGetConvolutionForwardAlgorithm_v7", &dnn.choose},
        {"cudnnGetConvolutionForwardWorkspaceSize", &dnn.workspace},
        {"cudnnConvolutionForward", &dnn.forward},
    };
    if (dnn.loaded) return 0;
    if (library_cublas_load(err) ||
        open_library(files, symbols, sizeof symbols / sizeof *symbols, err))
        return -1;
    dnn.loaded = 1;
    return 0;
}

static void plan_destroy(DnnPlan *p)
{
    if (p->x) dnn.tensor_destroy(p->x);
    if (p->y) dnn.tensor_destroy(p->y);
    if (p->weight) dnn.filter_destroy(p->weight);
    if (p->convolution) dnn.convolution_destroy(p->convolution);
    memset(p, 0, sizeof *p);
}

static int make_tensor(void **out, const int dims[5], const char *what, Error *err)
{
    int strides[5];
    int64_t stride = 1;
    for (int i = 4; i >= 0; i--) {
        if (stride > INT32_MAX)
            return error_set(err, ERROR_LIMIT, "%s has more than 2^31 elements", what);
        strides[i] = (int)stride;
        stride *= dims[i];
    }
    if (check(dnn.tensor_create(out), what, err)) return -1;
    return check(dnn.tensor_set(*out, DNN_FLOAT, 5, dims, strides), what, err);
}

/* Take cuDNN's first algorithm that works in float32; algorithms that round to TF32 are skipped. */
static int choose_algorithm(DnnPlan *p, Error *err)
{
    DnnChoice choices[DNN_ALGORITHMS];
    int n = 0;
    if (check(dnn.choose(dnn.handle, p->x, p->weight, p->convolution, p->y, DNN_ALGORITHMS, &n,
                         choices),
              "cudnnGetConvolutionForwardAlgorithm_v7", err))
        return -1;
    for (int i = 0; i < n && i < DNN_ALGORITHMS; i++) {
        size_t bytes = 0;
        if (choices[i].status ||
            (choices[i].math != DNN_FMA_MATH && choices[i].math != DNN_DEFAULT_MATH))
            continue;
        if (dnn.workspace(dnn.handle, p->x, p->weight, p->convolution, p->y, choices[i].algorithm,
                          &bytes))
            continue;
        if (bytes > LIBRARY_MAX_WORKSPACE) continue;
        p->algorithm = choices[i].algorithm;
        p->bytes = bytes;
        return 0;
    }
    return error_set(err, ERROR_DEVICE,
                     "cuDNN offers no float32 algorithm for this convolution (%d were named)", n);
}

static int plan_make(DnnPlan *p, Error *err)
{
    const int *s = p->shape;
    const int kernel = s[6], stride = s[7], padding = s[8],
              three_stride[3] = {stride, stride, stride},
              three_padding[3] = {padding, padding, padding}, dilation[3] = {1, 1, 1};
    const int x[5] = {s[0], s[1], s[3], s[4], s[5]},
              weight[5] = {s[2], s[1], kernel, kernel, kernel};
    int y[5] = {s[0], s[2]};
    for (int i = 0; i < 3; i++) {
        int64_t room = (int64_t)s[3 + i] + 2 * (int64_t)padding - kernel;
        if (room < 0)
            return error_set(err, ERROR_LIMIT, "the kernel of %d is larger than the input of %d",
                             kernel, s[3 + i]);
        y[2 + i] = (int)(room / stride) + 1;
    }
    if (make_tensor(&p->x, x, "the input", err) || make_tensor(&p->y, y, "the output", err))
        return -1;
    if (check(dnn.filter_create(&p->weight), "the filter", err) ||
        check(dnn.filter_set(p->weight, DNN_FLOAT, DNN_NCHW, 5, weight), "the filter", err) ||
        check(dnn.convolution_create(&p->convolution), "the convolution", err) ||
        check(dnn.convolution_set(p->convolution, 3, three_padding, three_stride, dilation,
                                  DNN_CROSS_CORRELATION, DNN_FLOAT),
              "the convolution", err) ||
        check(dnn.convolution_math(p->convolution, DNN_FMA_MATH), "cudnnSetConvolutionMathType",
              err))
        return -1;
    return choose_algorithm(p, err);
}

static int find_plan(const int shape[9], DnnPlan **out, Error *err)
{
    for (int i = 0; i < dnn.n_plans; i++) {
        *out = &dnn.plans[i];
        if (!memcmp((*out)->shape, shape, sizeof(*out)->shape)) return 0;
    }
    DnnPlan made = {.algorithm = -1};
    memcpy(made.shape, shape, sizeof made.shape);
    if (plan_make(&made, err)) {
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
    **out = made;
    return 0;
}

int library_cudnn_conv3d_forward(const uint64_t *args, void *stream, Error *err)
{
    const float one = 1, zero = 0;
    int shape[9];
    void *workspace = NULL;
    DnnPlan *p;
    for (int i = 0; i < 9; i++) shape[i] = (int)args[3 + i];
    if (load(err)) return -1;
    if (!dnn.handle && check(dnn.create(&dnn.handle), "cudnnCreate", err)) return -1;
    if (check(dnn.set_stream(dnn.handle, stream), "cudnnSetStream", err) ||
        find_plan(shape, &p, err))
        return -1;
    if (p->bytes && library_workspace(p->bytes, &workspace, err)) return -1;
    return check(dnn.forward(dnn.handle, &one, p->x, library_pointer(args[0]), p->weight,
                             library_pointer(args[1]), p->convolution, p->algorithm, workspace,
                             p->bytes, &zero, p->y, library_pointer(args[2])),
                 "cudnnConvolutionForward", err);
}
