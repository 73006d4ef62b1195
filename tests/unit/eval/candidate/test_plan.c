/* The launch plan: lines that parse, the sentences for those that do not, and the launches that
 * result. / */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/candidate/plan.h"
#include "eval/candidate/resolve.h"

static void parse_ok(const char *source, Plan *p)
{
    Fault f = {0};
    if (plan_parse(source, strlen(source), 0, p, &f)) fail_msg("%s", f.message);
}

static void parse_fails(const char *source, int want_line, const char *want)
{
    Plan p;
    Fault f = {0};
    if (!plan_parse(source, strlen(source), 0, &p, &f)) fail_msg("parsed: %s", source);
    if (!strstr(f.message, want)) fail_msg("expected '%s' in: %s", want, f.message);
    assert_int_equal(f.line, want_line);
    plan_release(&p);
}

static int text_is(PlanText t, const char *s)
{
    return t.len == strlen(s) && !memcmp(t.p, s, t.len);
}

static void test_grammar(void **state)
{
    (void)state;
    Plan p;
    parse_ok("// a comment\n"
             "//@ buffer float partial[rows * 32]\n"
             "  //@buffer unsigned   long long counts[4]\r\n"
             "//@ launch partial_sums<<<dim3(32, rows), 256>>>(x, partial, cols)\n"
             "__global__ void f();\n"
             "//@ schedule y vec=8 keep=registers\n"
             "//@ for t in 0..steps\n"
             "//@schedule\n"
             "//@ launch ns::step<float, (4>>1)> <<< ceil_div(rows, 256), dim3(16,16,2), 4 * (cols "
             "+ 1) >>> ( x + t*cols, y, 1e-5f );\n"
             "//@ launch partial_sums<<<1, 1>>>()",
             &p);
    assert_int_equal(p.n_buffers, 2);
    assert_string_equal(p.buffers[1].type, "unsigned long long");
    assert_int_equal(p.buffers[1].type_size, 8);
    assert_int_equal(p.buffers[0].line, 2);
    assert_int_equal(p.n_steps, 3);
    assert_int_equal(p.n_kernels, 2);
    assert_int_equal(p.steps[2].kernel, 0);
    assert_int_equal(p.steps[2].n_args, 0);
    assert_int_equal(p.steps[0].n_grid, 2);
    assert_int_equal(p.steps[0].n_block, 1);
    assert_true(text_is(p.steps[0].grid[1], "rows"));
    assert_string_equal(p.kernels[1], "ns::step<float, (4>>1)>");
    assert_int_equal(p.kernel_line[1], 9);
    const PlanStep *s = &p.steps[1];
    assert_true(s->loops);
    assert_int_equal(s->loop_line, 7);
    assert_string_equal(s->var, "t");
    assert_true(text_is(s->from, "0") && text_is(s->to, "steps"));
    assert_int_equal(s->n_block, 3);
    assert_true(text_is(s->shared, "4 * (cols + 1)"));
    assert_int_equal(s->n_args, 3);
    assert_true(text_is(s->args[0], "x + t*cols"));
    assert_false(p.steps[2].loops);
    plan_release(&p);
}

/* The word stands before a kernel's name, and may be one. */
static void test_cooperative(void **state)
{
    (void)state;
    Plan p;
    parse_ok("//@ launch cooperative f<<<1, 1>>>()\n"
             "//@ for t in 0..2\n//@ launch cooperative  ns::g<2> <<<1, 1>>>()\n"
             "//@ launch cooperative<<<1, 1>>>()\n//@ launch cooperative_f<<<1, 1>>>()\n"
             "//@ launch cooperative cooperative<<<1, 1>>>()\n",
             &p);
    static const char *const kernels[] = {"f", "ns::g<2>", "cooperative", "cooperative_f",
                                          "cooperative"};
    for (int i = 0; i < 5; i++) {
        assert_string_equal(p.kernels[p.steps[i].kernel], kernels[i]);
        assert_int_equal(p.steps[i].cooperative, i < 2 || i == 4);
    }
    assert_true(p.steps[1].loops);
    plan_release(&p);
}

static void test_mistakes(void **state)
{
    (void)state;
    parse_fails("__global__ void f();\n", 0, "no launch line");
    parse_fails("\n//@ lanch f<<<1, 1>>>()\n", 2,
                "line 2: expected buffer, map, launch, op, for or when after //@, found 'lanch");
    parse_fails("//@ launch f(x)\n", 1, "no '<<<'");
    parse_fails("//@ launch f<<<1, 1(x)\n", 1, "no '>>>'");
    parse_fails("//@ launch f<<<1>>>(x)\n", 1, "expected <<<grid, block>>>");
    parse_fails("//@ launch f<<<1, 2, 3, 4>>>(x)\n", 1, "expected <<<grid, block>>>");
    parse_fails("//@ launch f<<<dim3(1,2,3,4), 2>>>(x)\n", 1, "dim3 takes one to three");
    parse_fails("//@ launch f<<<dim3 1, 2>>>(x)\n", 1, "expected dim3(x, y, z)");
    parse_fails("//@ launch f<<<1, 2>>> x\n", 1, "expected (arguments)");
    parse_fails("//@ launch f<<<1, 2>>>(x,,y)\n", 1, "argument 2 of f is empty");
    parse_fails("//@ launch f<<<1, 2>>>((x, y)\n", 1, "unbalanced");
    parse_fails("//@ launch <<<1, 2>>>(x)\n", 1, "expected a kernel's name");
    parse_fails("//@ launch f{<<<1, 2>>>(x)\n", 1, "named as in C++");
    parse_fails("//@ buffer float b\n", 1, "expected 'buffer TYPE name[elements]'");
    parse_fails("//@ buffer flaot b[3]\n", 1, "unknown buffer type 'flaot'");
    parse_fails("//@ buffer float b[]\n", 1, "needs a number of elements");
    parse_fails("//@ buffer float min[3]\n", 1, "is a word of the plan");
    parse_fails("//@ buffer float b[3]\n//@ buffer int b[3]\n", 2, "already declared on line 1");
    parse_fails("//@ for t in 0..4\n", 1, "no launch follows");
    parse_fails("//@ for t in 0..4\n//@ buffer float b[1]\n", 2,
                "repeats the launch on the next //@ line");
    parse_fails("//@ for t in 0..4\n//@ for u in 0..4\n//@ launch f<<<1,1>>>()\n", 2,
                "repeats the launch");
    parse_fails("//@ for t of 0..4\n", 1, "expected 'for var in from..to'");
    parse_fails("//@ for t in 4\n", 1, "expected a range");
    parse_fails("//@ for t in 4..\n", 1, "needs both ends");
}

static void test_map_mistakes(void **state)
{
    (void)state;
    parse_fails("//@ map\n", 1, "expected buffer, map");
    parse_fails("//@ map a tensor(x, box=[1])\n", 1, "expected 'map name = tensor(x, box=[...])'");
    parse_fails("//@ map a = tensor x\n", 1, "expected 'map name = tensor(x, box=[...])'");
    parse_fails("//@ map a = tile(x, box=[1])\n", 1, "expected 'map name = tensor(x, box=[...])'");
    parse_fails("//@ map a = tensor(3, box=[1])\n", 1, "expected a tensor or a buffer");
    parse_fails("//@ map a = tensor(x)\n", 1, "the map needs a box");
    parse_fails("//@ map a = tensor(x, 64)\n", 1, "expected box=, size=, stride= or swizzle=");
    parse_fails("//@ map a = tensor(x, tile=[64])\n", 1, "expected box, size, stride or swizzle");
    parse_fails("//@ map a = tensor(x, box=64)\n", 1, "expected box=[...] with one to 5");
    parse_fails("//@ map a = tensor(x, box=[1,2,3,4,5,6])\n", 1,
                "expected box=[...] with one to 5");
    parse_fails("//@ map a = tensor(x, box=[1,,2])\n", 1, "expected box=[...] with one to 5");
    parse_fails("//@ map a = tensor(x, box=[1, 2], size=[4])\n", 1,
                "1 entries, the list before it 2");
    parse_fails("//@ map a = tensor(x, box=[1, 2], stride=[4, 1])\n", 1, "needs the sizes");
    parse_fails("//@ map a = tensor(x, box=[64], swizzle=256)\n", 1,
                "expected swizzle=0, 32, 64 or");
    parse_fails("//@ map a = tensor(x, box=[4])\n//@ map a = tensor(x, box=[4])\n", 2,
                "already declared on line 1");
    parse_fails("//@ map dim3 = tensor(x, box=[4])\n", 1, "is a word of the plan");
}

static void test_branches(void **state)
{
    (void)state;
    Plan p;
    parse_ok("//@ launch a<<<1, 1>>>(x)\n//@ when rows >= 9\n//@ launch b<<<1, 1>>>(x)\n"
             "//@ when rows < 2 || cols\n//@ for t in 0..rows\n//@ launch a<<<1, 1>>>(x)\n"
             "//@ launch b<<<1, 1>>>(x)\n//@ otherwise\n//@ launch c<<<1, 1>>>(y)\n//@ end\n"
             "//@ launch d<<<1, 1>>>(y)\n//@ when cols\n//@ launch a<<<1, 1>>>(x)\n",
             &p);
    const int branch[] = {-1, 0, 1, 1, 2, -1, 3};
    assert_int_equal(p.n_steps, 7);
    for (int i = 0; i < 7; i++) assert_int_equal(p.steps[i].branch, branch[i]);
    assert_string_equal(p.branches[0].taken, "(rows >= 9)");
    assert_string_equal(p.branches[1].taken, "!(rows >= 9) && (rows < 2 || cols)");
    assert_string_equal(p.branches[2].taken, "!(rows >= 9) && !(rows < 2 || cols)");
    assert_string_equal(p.branches[3].taken, "(cols)");
    plan_release(&p);
    parse_fails("//@ when\n//@ launch a<<<1, 1>>>(x)\n", 1, "expected one condition");
    parse_fails("//@ when rows) || (1\n//@ launch a<<<1, 1>>>(x)\n", 1, "expected one condition");
    parse_fails("//@ when rows\n//@ when cols\n//@ launch a<<<1, 1>>>(x)\n", 1,
                "no launch or op line follows this when");
    parse_fails("//@ launch a<<<1, 1>>>(x)\n//@ otherwise\n", 2, "no when stands before");
    parse_fails("//@ launch a<<<1, 1>>>(x)\n//@ end\n", 2, "no when stands before");
    parse_fails("//@ when rows\n//@ launch a<<<1, 1>>>(x)\n//@ otherwise\n"
                "//@ launch a<<<1, 1>>>(x)\n//@ when cols\n//@ launch a<<<1, 1>>>(x)\n",
                5, "the otherwise on line 3, which takes all");
}

static void test_limits(void **state)
{
    (void)state;
    static char source[256 << 10];
    source[0] = 0;
    for (int i = 0; i < PLAN_MAX_BUFFERS + 1; i++)
        sprintf(source + strlen(source), "//@ buffer int b%d[1]\n", i);
    parse_fails(source, PLAN_MAX_BUFFERS + 1, "more than 256 buffers");
    source[0] = 0;
    for (int i = 0; i < PLAN_MAX_STEPS + 1; i++) strcat(source, "//@ launch f<<<1, 1>>>()\n");
    parse_fails(source, PLAN_MAX_STEPS + 1, "more than 4096 launch and op lines");
    strcpy(source, "//@ launch f<<<1, 1>>>(1");
    for (int i = 0; i < PLAN_MAX_ARGS; i++) strcat(source, ",1");
    strcat(source, ")");
    parse_fails(source, 1, "more than 64");
    strcpy(source, "//@ launch ");
    memset(source + 11, 'k', 300);
    strcpy(source + 311, "<<<1, 1>>>()");
    parse_fails(source, 1, "at most 199");
    memset(source + 11, ' ', PLAN_MAX_LINE);
    strcpy(source + 11 + PLAN_MAX_LINE, "f<<<1, 1>>>()");
    parse_fails(source, 1, "at most 4096 are read");
}

static void expect_float(const char *s, int is, double want)
{
    double v = 0;
    assert_int_equal(plan_text_float((PlanText){s, strlen(s)}, &v), is);
    if (is) assert_true(v == want);
}

static void test_floats(void **state)
{
    (void)state;
    expect_float("1.5", 1, 1.5);
    expect_float("-1e-5f", 1, -1e-5);
    expect_float(" .5F ", 1, 0.5);
    expect_float("2f", 1, 2);
    expect_float("-INFINITY", 1, -(double)INFINITY);
    expect_float("3", 0, 0);
    expect_float("rows", 0, 0);
    expect_float("1.5x", 0, 0);
    expect_float("0x1p3", 0, 0);
    expect_float("nan", 0, 0);
    expect_float("1e999", 0, 0);
    expect_float("", 0, 0);
    expect_float("-", 0, 0);
}

/* ---- resolving for the kernel (const float *x, float *y, int n, float e) ---- */

static Task task;
static const DeviceInfo device = {
    .max_threads_per_block = 1024, .max_shared_per_block = 65536, .memory_bytes = 1 << 20};
static PlanKernel kernel;
static const DevicePtr buffer_memory[] = {0x300000, 0x400000, 0x500000};
static const PlanMemory memory = {
    .inputs = {0x1000}, .outputs = {0x20000}, .buffers = buffer_memory};

static int make_task(void **state)
{
    (void)state;
    static char rows[] = "rows", cols[] = "cols";
    static TaskTensor x, y;
    task = (Task){.n_axes = 2, .n_inputs = 1, .n_outputs = 1, .n_workloads = 1};
    task.inputs = &x;
    task.outputs = &y;
    strcpy(task.axis_name[0], "rows");
    strcpy(task.axis_name[1], "cols");
    task.inputs[0] =
        (TaskTensor){.name = "x", .dtype = DTYPE_F32, .rank = 2, .shape = {rows, cols}};
    task.outputs[0] = (TaskTensor){.name = "y", .dtype = DTYPE_F16, .rank = 1, .shape = {rows}};
    task.workloads[0] = (Workload){.axis = {7, 33}};
    kernel = (PlanKernel){.lowered = "f"};
    kernel.info = (KernelInfo){.n_params = 4,
                               .param_bytes = 24,
                               .registers = 8,
                               .static_shared = 1024,
                               .max_threads = 512};
    for (int i = 0; i < 4; i++) {
        kernel.info.params[i].offset = (uint32_t[]){0, 8, 16, 20}[i];
        kernel.info.params[i].size = i < 2 ? 8 : 4;
        kernel.info.params[i].is_pointer = i < 2 ? -1 : 0;
    }
    plan_kernel_kinds(
        &kernel,
        ".visible .entry ff(\n.param .u64 a\n)\n{}\n.visible .entry f(\n\t.param .u64 f_param_0,\n"
        "\t.param .u64 .ptr .align 4 f_param_1,\n\t.param .u32 f_param_2,\n\t.param .f32 "
        "f_param_3\n)\n{ ret; }\n");
    return 0;
}

static int resolve(const char *source, Plan *p, DeviceLaunch **launches, int *n, Fault *f)
{
    if (plan_parse(source, strlen(source), 0, p, f)) fail_msg("%s", f->message);
    PlanContext context = {.plan = p, .task = &task, .device = &device, .kernels = &kernel};
    if (plan_check_names(&context, f)) return -1;
    return plan_resolve(&context, &task.workloads[0], &memory, launches, n, f);
}

static void resolve_fails(const char *source, int want_line, const char *want)
{
    Plan p;
    Fault f = {0};
    DeviceLaunch *launches;
    int n;
    if (!resolve(source, &p, &launches, &n, &f)) fail_msg("resolved: %s", source);
    if (!strstr(f.message, want)) fail_msg("expected '%s' in: %s", want, f.message);
    assert_int_equal(f.line, want_line);
    plan_release(&p);
}

static void test_resolve(void **state)
{
    (void)state;
    Plan p;
    Fault f = {0};
    DeviceLaunch *l;
    int n;
    if (resolve("//@ buffer half b[rows + 1]\n//@ launch f<<<dim3(ceil_div(rows, 2), cols), "
                "dim3(8, 4), 4*cols>>>(b + 2, y, rows - cols, 1)\n"
                "//@ for t in 1..rows / 2\n//@ launch f<<<t, t>>>(x + t*cols, y, t, -0.5f)\n",
                &p, &l, &n, &f))
        fail_msg("%s", f.message);
    assert_int_equal(n, 3);
    uint64_t pointer;
    int32_t integer;
    float real;
    assert_int_equal(l[0].grid[0], 4);
    assert_int_equal(l[0].grid[1], 33);
    assert_int_equal(l[0].grid[2], 1);
    assert_int_equal(l[0].block[1], 4);
    assert_int_equal(l[0].shared_bytes, 132);
    memcpy(&pointer, l[0].params, 8);
    assert_int_equal(pointer, 0x300004);
    memcpy(&integer, l[0].params + 16, 4);
    assert_int_equal(integer, -26);
    memcpy(&real, l[0].params + 20, 4);
    assert_true(real == 1.0f); /* an integer where the kernel takes a float */
    memcpy(&pointer, l[2].params, 8);
    assert_int_equal(pointer, 0x1000 + 2 * 33 * 4);
    memcpy(&integer, l[2].params + 16, 4);
    assert_int_equal(integer, 2);
    free(l);
    plan_release(&p);
}

static void test_resolve_mistakes(void **state)
{
    (void)state;
    resolve_fails("//@ launch f<<<1, 1>>>(x, y)\n", 1,
                  "line 1: kernel f has 4 parameters, the plan passes 2");
    resolve_fails("//@ launch f<<<1, 1>>>(x, x, 1, 1.0)\n", 0, "no launch takes the output y");
    resolve_fails("//@ when row\n//@ launch f<<<1, 1>>>(x, y, 1, 1.0)\n", 1,
                  "line 1: the condition (row): ");
    resolve_fails("//@ when rows == 0\n//@ launch f<<<1, 1>>>(x, y, 1, 1.0)\n", 0,
                  "no branch is taken");
    resolve_fails("//@ launch f<<<row, 1>>>(x, y, 1, 1.0)\n", 1,
                  "unknown name 'row' (numbers known here: rows, cols)");
    resolve_fails("//@ launch f<<<rows / 8, 1>>>(x, y, 1, 1.0)\n", 1,
                  "grid x 'rows / 8' is 0 for the workload");
    resolve_fails("//@ launch f<<<dim3(1, 70000), 1>>>(x, y, 1, 1.0)\n", 1,
                  "grid y '70000' is 70000");
    resolve_fails("//@ launch f<<<1, 1025>>>(x, y, 1, 1.0)\n", 1, "expected 1 to 1024");
    resolve_fails("//@ launch f<<<1, dim3(32, 32)>>>(x, y, 1, 1.0)\n", 1,
                  "a block of 1024 threads; f allows at most 512 (its __launch_bounds__)");
    resolve_fails("//@ launch f<<<1, 1, 65536>>>(x, y, 1, 1.0)\n", 1,
                  "65536 dynamic and 1024 static bytes");
    resolve_fails("//@ launch f<<<1, 1, 0 - 1>>>(x, y, 1, 1.0)\n", 1, "-1 dynamic");
    resolve_fails("//@ launch f<<<1, 1>>>(x, y, x, 1.0)\n", 1,
                  "argument 3 of f is x, which is memory, but the kernel's parameter is an integer "
                  "of 4 bytes");
    resolve_fails("//@ launch f<<<1, 1>>>(x, y, 1, y)\n", 1, "the kernel's parameter is a float");
    resolve_fails("//@ launch f<<<1, 1>>>(x, y, 1.5, 1.0)\n", 1,
                  "argument 3 of f is the float 1.5");
    resolve_fails("//@ launch f<<<1, 1>>>(x, 2.0f, 1, 1.0)\n//@ launch f<<<1,1>>>(x, y, 1, 1)\n", 1,
                  "the float 2.0f");
    resolve_fails("//@ launch f<<<1, 1>>>(x, y, rows << 40, 1.0)\n", 1, "does not fit");
    resolve_fails("//@ launch f<<<1, 1>>>(x + rows*cols + 1, y, 1, 1.0)\n", 1,
                  "starts at element 232 of x, which has 231");
    resolve_fails("//@ launch f<<<1, 1>>>(x + 0 - 1, y, 1, 1.0)\n", 1, "starts at element -1");
    resolve_fails("//@ buffer float b[rows - 7]\n//@ launch f<<<1, 1>>>(b, y, 1, 1.0)\n", 1,
                  "0 elements");
    resolve_fails("//@ buffer float b[rows << 40]\n//@ launch f<<<1, 1>>>(b, y, 1, 1.0)\n", 1,
                  "over the 1 MiB");
    resolve_fails("//@ buffer float x[4]\n//@ launch f<<<1, 1>>>(x, y, 1, 1.0)\n", 1,
                  "name of a tensor");
    resolve_fails("//@ buffer float cols[4]\n//@ launch f<<<1, 1>>>(x, y, 1, 1.0)\n", 1,
                  "name of an axis");
    resolve_fails("//@ for t in 0..5000\n//@ launch f<<<1, 1>>>(x, y, t, 1.0)\n", 2,
                  "more than 4096 launches");
    resolve_fails("//@ for t in 0..t\n//@ launch f<<<1, 1>>>(x, y, t, 1.0)\n", 1,
                  "unknown name 't'");
    resolve_fails("//@ for t in 0..0\n//@ launch f<<<1, 1>>>(x, y, t, 1.0)\n", 0, "empty range");
}

/* ---- maps: the kernel (map, const float *x, float *y); a driver aligns a map in its own memory of
 * parameters, so that its place among them need not be a multiple of 64 ---- */

static PlanKernel mapped;

static int make_mapped(void **state)
{
    make_task(state);
    task.workloads[0] = (Workload){.axis = {7, 36}};
    mapped = (PlanKernel){.lowered = "g", .kind = {'b', 'i', 'i'}};
    mapped.info = (KernelInfo){.n_params = 3, .param_bytes = 192, .max_threads = 512};
    mapped.info.params[0] = (KernelParam){48, 128, 0};
    mapped.info.params[1] = (KernelParam){176, 8, -1};
    mapped.info.params[2] = (KernelParam){184, 8, -1};
    kernel = mapped;
    return 0;
}

/* The map that a launch of g gets for `line`. */
static TensorMap map_of(const char *line)
{
    Plan p;
    Fault f = {0};
    DeviceLaunch *l;
    TensorMap m;
    int n;
    char source[600];
    snprintf(source, sizeof source,
             "//@ buffer half b[rows * cols]\n%s\n"
             "//@ launch g<<<1, 1>>>(a, x, y)\n",
             line);
    if (resolve(source, &p, &l, &n, &f)) fail_msg("%s", f.message);
    assert_int_equal(l->n_maps, 1);
    assert_int_equal(l->map_at[0], 48);
    memcpy(&m, l->params + 48, sizeof m);
    free(l);
    plan_release(&p);
    return m;
}

static void test_maps(void **state)
{
    (void)state;
    TensorMap m = map_of("//@ map a = tensor(x, box=[4, 32], swizzle=128)");
    assert_int_equal(m.base, 0x1000);
    assert_int_equal(m.rank, 2);
    assert_int_equal(m.size[0], 36);
    assert_int_equal(m.size[1], 7);
    assert_int_equal(m.stride[0], 144);
    assert_int_equal(m.box[0], 32);
    assert_int_equal(m.box[1], 4);
    assert_int_equal(m.swizzle, 128);
    assert_int_equal(m.type, TENSOR_MAP_F32);
    assert_int_equal(tensor_map_box_bytes(&m), 512);
    m = map_of("//@ map a = tensor(b + 8, size=[2, rows - 1, 8], stride=[16, cols - 4, 1], "
               "box=[1, 7, 8]);");
    assert_int_equal(m.base, 0x300010);
    assert_int_equal(m.rank, 3);
    assert_int_equal(m.size[1], 6);
    assert_int_equal(m.stride[0], 64);
    assert_int_equal(m.stride[1], 32);
    assert_int_equal(m.type, TENSOR_MAP_F16);
    m = map_of("//@ map a = tensor(y, box=[16])"); /* an output, and a shape of its own */
    assert_int_equal(m.base, 0x20000);
    assert_int_equal(m.size[0], 7);
}

#define TAKES "//@ launch g<<<1, 1>>>(a, x, y)\n"

static void test_map_limits(void **state)
{
    (void)state;
    static const struct {
        const char *line, *want;
    } wrong[] = {
        {"tensor(z, box=[4])", "'z' is no tensor of the task and no buffer"},
        {"tensor(x, box=[4])", "x has 2 dimensions, the box 1"},
        {"tensor(x, box=[4, 300])", "the box has 300 elements in dimension 2; TMA takes 1 to 256"},
        {"tensor(x, box=[0, 4])", "the box has 0 elements in dimension 1"},
        {"tensor(x, box=[4, 3])", "has 12 bytes; TMA takes multiples of 16"},
        {"tensor(x, box=[4, 36], swizzle=128)",
         "has 144 bytes; with swizzle=128 it has at most 128"},
        {"tensor(x, size=[rows, cols - 1], box=[4, 4])", "stride of dimension 1 is 140 bytes"},
        {"tensor(x, size=[rows, 4], stride=[0, 1], box=[4, 4])",
         "stride of dimension 1 is 0 bytes"},
        {"tensor(x, size=[rows, 4], stride=[cols, 2], box=[4, 4])", "expected 1"},
        {"tensor(x, size=[rows + 1, cols], box=[4, 4])",
         "covers elements 0 to 287 of x, which has 252"},
        {"tensor(x + 4, box=[4, 4])", "covers elements 4 to 255 of x, which has 252"},
        {"tensor(x + 0 - 4, box=[4, 4])", "covers elements -4 to 247 of x"},
        {"tensor(x + 1, size=[4], box=[4])", "the tensor starts at address 0x1004"},
        {"tensor(x, size=[0 - 1], box=[4])", "has size -1"},
        {"tensor(x, size=[4, 1 << 40, 1 << 40], box=[1, 1, 4])", "no product of 64 bits"},
        {"tensor(x, size=[rows - 7], box=[4])", "has 0 elements; TMA takes 1 to 4294967295"},
        {"tensor(x, size=[t], box=[4])", "unknown name 't'"},
        {"tensor(v, box=[4])", "are vectors, which TMA does not have"},
    };
    char source[300];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(source, sizeof source, "//@ buffer float4 v[4]\n//@ map a = %s\n" TAKES,
                 wrong[i].line);
        resolve_fails(source, 2, wrong[i].want);
    }
    resolve_fails(
        "//@ map a = tensor(x, box=[4, 4])\n//@ launch g<<<1, 1>>>(x, x, y)\n", 2,
        "is x, which is memory, but the kernel's parameter is a struct or half of 128 bytes");
    resolve_fails("//@ map a = tensor(x, box=[4, 4])\n//@ launch g<<<1, 1>>>(a, a, y)\n", 2,
                  "expected const __grid_constant__ CUtensorMap");
    resolve_fails("//@ map rows = tensor(x, box=[4, 4])\n" TAKES, 1, "name of an axis");
    resolve_fails("//@ map x = tensor(x, box=[4, 4])\n" TAKES, 1, "name of a tensor");
    resolve_fails("//@ buffer int a[4]\n//@ map a = tensor(x, box=[4, 4])\n" TAKES, 2,
                  "name of a buffer");
    resolve_fails("//@ map a = tensor(x, box=[4, 4])\n//@ launch g<<<1, 1>>>(a, x, x)\n", 0,
                  "no launch takes the output y");
}

/* A map that no launch takes at these sizes is not looked at; one of an output gives the output. */
static void test_maps_of_branches(void **state)
{
    (void)state;
    Plan p;
    Fault f = {0};
    DeviceLaunch *l;
    int n;
    const char *source = "//@ map a = tensor(x, box=[4, 3])\n//@ map b = tensor(y, box=[16])\n"
                         "//@ when rows > 7\n//@ launch g<<<1, 1>>>(a, x, x)\n"
                         "//@ otherwise\n//@ launch g<<<1, 1>>>(b, x, x)\n//@ end\n";
    if (resolve(source, &p, &l, &n, &f)) fail_msg("%s", f.message);
    assert_int_equal(n, 1);
    free(l);
    plan_release(&p);
}

/* ---- library calls: the harness's baselines only ---- */

static void trusted_fails(const char *source, int want_line, const char *want)
{
    Plan p;
    Fault f = {0};
    DeviceLaunch *launches = NULL;
    int n, rc = plan_parse(source, strlen(source), 1, &p, &f);
    PlanContext context = {.plan = &p, .task = &task, .device = &device, .kernels = &kernel};
    if (!rc)
        rc = plan_check_names(&context, &f) ||
             plan_resolve(&context, &task.workloads[0], &memory, &launches, &n, &f);
    if (!rc) fail_msg("resolved: %s", source);
    if (!strstr(f.message, want)) fail_msg("expected '%s' in: %s", want, f.message);
    assert_int_equal(f.line, want_line);
    plan_release(&p);
}

static void test_library(void **state)
{
    (void)state;
    const char *source =
        "//@ buffer float b[rows * cols]\n"
        "//@ library cublas.sgemm_batched(x, b + cols, y, 2, rows, cols - 1, 3, 0, 1, 0.125f)\n"
        "//@ launch f<<<1, 1>>>(x, y, 1, 1.0)\n"
        "//@ for t in 1..3\n"
        "//@ library cublas.sgemm(x, x, y, t, 1, 1);\n";
    Plan p;
    Fault f = {0};
    DeviceLaunch *l;
    int n;
    parse_fails(source, 2, "line 2: library calls are the harness's own");
    if (plan_parse(source, strlen(source), 1, &p, &f)) fail_msg("%s", f.message);
    assert_int_equal(p.n_kernels, 1); /* a library call needs no compilation */
    PlanContext context = {.plan = &p, .task = &task, .device = &device, .kernels = &kernel};
    if (plan_resolve(&context, &task.workloads[0], &memory, &l, &n, &f)) fail_msg("%s", f.message);
    assert_int_equal(n, 4);
    uint64_t args[10];
    double alpha;
    assert_string_equal(l[0].kernel, "cublas.sgemm_batched");
    assert_int_equal(l[0].library_args, 10);
    memcpy(args, l[0].params, sizeof args);
    memcpy(&alpha, &args[9], sizeof alpha);
    assert_int_equal(args[0], 0x1000);
    assert_int_equal(args[1], 0x300000 + 33 * 4);
    assert_int_equal(args[2], 0x20000);
    assert_int_equal(args[5], 32);
    assert_int_equal(args[8], 1);
    assert_true(alpha == 0.125);
    assert_int_equal(l[1].library_args, 0);
    assert_string_equal(l[1].kernel, "f");
    assert_string_equal(l[3].kernel, "cublas.sgemm");
    memcpy(args, l[3].params, sizeof args);
    assert_int_equal(args[3], 2);
    free(l);
    plan_release(&p);
}

static void test_library_mistakes(void **state)
{
    (void)state;
    trusted_fails("//@ library cublas.dgemm(x, x, y, 1, 1, 1)\n", 1,
                  "no library call is named 'cublas.dgemm'");
    trusted_fails("//@ library cublas.sgemm x, x, y\n", 1, "expected 'library name(arguments)'");
    trusted_fails("//@ library cublas.sgemm(x, x, y, 1, 1)\n", 1,
                  "cublas.sgemm takes 6 arguments, the plan passes 5");
    trusted_fails("//@ library cublas.sgemm(x, , y, 1, 1, 1)\n", 1,
                  "argument 2 of cublas.sgemm is empty");
    trusted_fails("//@ library cublas.sgemm(x, 1, y, 1, 1, 1)\n", 1,
                  "argument 2 of cublas.sgemm is the integer '1'");
    trusted_fails("//@ library cublas.sgemm(x, x, y, x, 1, 1)\n", 1,
                  "argument 4 of cublas.sgemm is x, which is memory");
    trusted_fails("//@ library cublas.sgemm(x, x, y, 1.5, 1, 1)\n", 1,
                  "argument 4 of cublas.sgemm is the float 1.5");
    trusted_fails("//@ library cublas.sgemm(x + 232, x, y, 1, 1, 1)\n", 1,
                  "starts at element 232 of x");
    trusted_fails("//@ library cublas.sgemm(x, x, x, 1, 1, 1)\n", 0,
                  "no launch takes the output y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_cooperative),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_resolve),
        cmocka_unit_test(test_resolve_mistakes),
        cmocka_unit_test(test_library),
        cmocka_unit_test(test_library_mistakes),
        cmocka_unit_test(test_map_mistakes),
        cmocka_unit_test_setup(test_maps, make_mapped),
        cmocka_unit_test_setup(test_map_limits, make_mapped),
        cmocka_unit_test_setup(test_maps_of_branches, make_mapped),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_task, NULL);
}
