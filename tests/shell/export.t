#!/bin/bash
# quern-export: the C package and the Python package launch what the plan says, on a stand-in for libcuda;
# what is refused leaves nothing behind. TAP on stdout.
. "$(dirname "$0")/tap.sh"
export QUERN_LOG=info
need python3

cat >all.cu <<'END'
//@ buffer float partial[rows * 4]
//@ buffer int flags[ceil_div(rows, 32) + 3]
//@ launch part<<<dim3(4, rows), 256>>>(x, partial, cols)
//@ for t in 0..min(rows, 2)
//@ launch mark<<<max(1, log2(rows)), 32 << 1, 2 * 1024>>>(ARGUMENTS)
//@ when rows >= 1
//@ launch cooperative finish<<<ceil_div(rows, 256), 256>>>(partial, y, rows)
extern "C" __global__ void part(const float *x, float *partial, int cols)
{
    __shared__ float s[256];
    float sum = 0;
    for (int c = blockIdx.x * 256 + threadIdx.x; c < cols; c += 1024)
        sum += x[(long long)blockIdx.y * cols + c];
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int d = 128; d; d /= 2) {
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) partial[blockIdx.y * 4 + blockIdx.x] = s[0];
}
extern "C" __global__ void mark(int *flags, long long t, int rows, float half, double tiny, float far)
{
    if (threadIdx.x == 0 && blockIdx.x == 0 && tiny < half && half < far) flags[0] = (int)t + rows;
}
extern "C" __global__ void finish(const float *partial, float *y, int rows)
{
    int r = blockIdx.x * 256 + threadIdx.x;
    if (r < rows) y[r] = partial[r * 4] + partial[r * 4 + 1] + partial[r * 4 + 2] + partial[r * 4 + 3];
}
END
sed -i 's|ARGUMENTS|flags + t * 2 % 3, t, cols > 100 ? rows / 2 : -(7 / 2), 0.5f, 1e-300, INFINITY|' all.cu
export SIZES='part:8,8,4 mark:8,8,4,4,8,4 finish:8,8,4'
gcc -shared -fPIC -Wall -Werror -I"$root/tests/fixtures/export" -o libcuda.so \
    "$root/tests/fixtures/export/driver.c"
ok $? "the stand-in compiles"

# ---- C ----
run quern-export --task row_sum --to c --name fast_sum -o c all.cu; ok $? "a C package is written"
grep -q '^c: fast_sum, a c package of row_sum; [0-9.]*x predicted for sim:h100, within' out &&
  grep -q '; torch.compile was not measured$' out
ok $? "the verdict of an exported kernel is told"
[ "$(ls c | tr '\n' ' ')" = 'fast_sum.c fast_sum.h kernel.cu verdict.json ' ] && cmp -s all.cu c/kernel.cu
ok $? "a C package has the source and the verdict"
cat >main.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include "fast_sum.h"
int main(int argc, char **argv)
{
    fast_sum_kernels k;
    int64_t rows = atoll(argv[1]), cols = atoll(argv[2]);
    int status = fast_sum_load(&k);
    if (status) return printf("load %d\n", status), 1;
    printf("verified %d workspace %zu\n", fast_sum_verified(rows, cols), fast_sum_workspace(rows, cols));
    status = fast_sum_launch(&k, (CUstream)0x77, rows, cols, 0x10000, 0x20000, 0x30000);
    fast_sum_unload(&k);
    return printf("launch %d\n", status), argc != 3;
}
END
gcc -std=c11 -Wall -Wextra -Werror -I"$root/tests/fixtures/export" -Ic -o driven main.c c/fast_sum.c -L. \
    -lcuda -Wl,-rpath,"$tmp"
ok $? "a C package compiles without a warning"
LAUNCHES=$tmp/c.txt ./driven 40 128 >out; ok $? "a C package loads and launches"
is "the workspace has room for each buffer" "$(head -1 out)" 'verified 1 workspace 1024'
cat >want.txt <<'END'
part 4,40,1 256,1,1 0 stream=77 0000000000010000 0000000000030000 00000080
mark 5,1,1 64,1,1 2048 stream=77 0000000000030300 0000000000000000 00000014 3f000000 01a56e1fc2f8f359 7f800000
mark 5,1,1 64,1,1 2048 stream=77 0000000000030308 0000000000000001 00000014 3f000000 01a56e1fc2f8f359 7f800000
cooperative finish 1,1,1 256,1,1 0 stream=77 0000000000030000 0000000000020000 00000028
END
cmp -s c.txt want.txt; ok $? "launches of a C package are the plan's"; diff c.txt want.txt | sed 's/^/# /'
LAUNCHES=$tmp/none.txt ./driven 1000000 128 >out
[ "$(cat out)" = $'verified 0 workspace 16125184\nlaunch 1' ] && [ ! -e none.txt ]
ok $? "sizes that were not judged are refused"
CAPABILITY=80 ./driven 40 128 >out; is "a GPU without a binary is refused" "$(cat out)" 'load 209'

# ---- Python, without torch ----
for name in x-1 1x a.b/; do
  run quern-export --task row_sum --to torch -o $name all.cu
  [ $rc = 2 ] && sentence quern-export 'a folder that Python can import' && [ ! -e $name ]
  ok $? "a folder that Python cannot import: $name"
done
run quern-export --task row_sum --to torch --name fast_sum --arch sm_80,sm_90 -o py all.cu
ok $? "a Python package is written"
[ -s py/kernels_sm_80.cubin ] && [ -s py/kernels_sm_90.cubin ] && [ -s py/torch_op.py ]
ok $? "a Python package has a binary for each architecture"
cat >drive.py <<'END'
import importlib.util, json, sys, threading
def load(name):
    spec = importlib.util.spec_from_file_location(name, f"py/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
plan, driver = load("plan"), load("driver")
package = json.load(open("py/package.json"))
rows, cols = int(sys.argv[1]), int(sys.argv[2])
axes = plan.solve_axes(package, [(rows, cols)])
print(plan.unverified(package, axes))
if rows == 40:
    whole, seven = (dict(package, constraints=[f"rows % {n} == 0 && cols > 1"]) for n in (8, 7))
    assert plan.unverified(whole, axes) is None and plan.fits(whole)([(rows, cols)])
    assert "rows % 7 == 0 && cols > 1 does not hold" in plan.unverified(seven, axes)
    assert not plan.fits(seven)([(rows, cols)]) and not plan.is_own(seven, axes)
    assert package["accepts"].startswith("rows from 1 to 8192 and cols from 3 to 4096, with no tensor")
outputs, buffers, launches = plan.resolve(package, axes)
print(outputs, buffers)
kernels = driver.Kernels(driver.Driver("./libcuda.so"), open("py/kernels_sm_90.cubin", "rb").read(),
    package["kernels"])
at, addresses, slots = 0x30000, [0x10000, 0x20000], {"x": 0, "y": 1}
for buffer, size in zip(package["buffers"], buffers):
    slots[buffer["name"]] = len(slots)
    addresses.append(at)
    at += (size + 255) // 256 * 256
prepared = driver.Prepared(kernels, launches, slots)
t = threading.Thread(target=prepared.run, args=(addresses, 0x77))
t.start()
t.join()
END
LAUNCHES=$tmp/py.txt python3 drive.py 40 128 >out 2>err; ok $? "a Python package launches"
is "outputs and buffers have the plan's sizes" "$(cat out)" $'None\n[[40]] [640, 20]'
cmp -s py.txt want.txt; ok $? "launches of a Python package are the plan's, byte for byte"
diff py.txt want.txt | sed 's/^/# /'
python3 drive.py 1000000 128 2>err | head -1 >out
grep -q '^rows=1000000 is outside of 1 to [0-9]*, which were judged$' out
ok $? "sizes that were not judged are named"
cat >expressions.py <<'END'
import importlib.util
spec = importlib.util.spec_from_file_location("plan", "py/plan.py")
plan = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plan)
values = {"n": 10, "m": -7}
for text, want in [("n + 2 * 3 - 1", 15), ("m / 2", -3), ("m % 4", -3), ("-m / 2 * 2", 6), ("1 << 3 | 1", 9),
                   ("n > 3 && m > 0", 0),
                   ("n > 3 || 1 / 0", 1), ("n ? 4 : 1 / 0", 4), ("!n ? 1 / (n - 10) : 5", 5),
                   ("n == 10 ? m < 0 ? 1 : 2 : 3", 1),
                   ("ceil_div(n, 3)", 4), ("ceil_div(9, 3)", 3), ("ceil_div(0, 3)", 0), ("log2(n)", 3),
                   ("min(n, m) + max(n, m)", 3),
                   ("0x10 + ~0", 15), ("(n & 6) ^ 1", 3), ("2 * (3 + n) % 7", 5), ("n >= 10 != 0", 1)]:
    try:
        got = plan.evaluate(text, values)
    except plan.PlanError as e:
        got = e
    if got != want:
        print(text, got, "expected", want)
for text in ["1 / 0", "k", "n +", "(n", "f(n)", "n n", "1 $ 2", "n ? 1 / 0 : 4"]:
    try:
        print(text, plan.evaluate(text, values), "expected an error")
    except plan.PlanError:
        pass
END
python3 expressions.py >out 2>err; [ $? = 0 ] && [ ! -s out ]; ok $? "expressions mean what they mean in C"

# ---- refusals ----
sed 's/partial\[r \* 4 + 3\]/0/' all.cu >wrong.cu
run quern-export --task row_sum --to c -o wrong wrong.cu; [ $rc = 1 ] && [ ! -e wrong ] &&
    grep -q 'wrong_result' out
ok $? "a kernel that is wrong is not exported"
run quern-export --task row_sum --to c -o c all.cu; [ $rc = 2 ] && sentence quern-export 'c is not empty'
ok $? "a folder with files is not written to"
run quern-export --task row_sum --to rust -o d all.cu; [ $rc = 2 ] && sentence quern-export torch
ok $? "an unknown form is refused"
run quern-export --task row_sum --to c -o d none.cu
[ $rc = 2 ] && sentence quern-export 'cannot open none.cu'
ok $? "a missing file is refused"
"$BIN/quern-kernel" --task bias_norm_rowadd >set.cu
run quern-export --task composed/bias_norm_rowadd --to c -o set set.cu
[ $rc = 0 ] && [ -e set/bias_norm_rowadd.c ]
ok $? "a task of a set, by its folder, gives the package its name"
run quern-export --task row_som --to c -o d all.cu; [ $rc = 2 ] && sentence quern-export row_som
ok $? "an unknown task is refused"
run quern-export --task row_sum --to c --name 3d -o d all.cu; [ $rc = 2 ] && sentence quern-export '"3d"'
ok $? "a name that is no identifier is refused"
run quern-export --task row_sum --to c --arch sm90 -o d all.cu; [ $rc = 2 ] && sentence quern-export sm90
ok $? "an architecture that is none is refused"
run quern-export --task row_sum --to flashinfer -o d all.cu
[ $rc = 1 ] && sentence quern-export 'has no graph'
ok $? "FlashInfer-Bench needs a graph"
op=$root/tests/fixtures/op_lines
run quern-export --task op_layer --task-root "$op/tasks" --to torch --name op_layer -o py_op \
    "$op/fused_rest.cu"
ok $? "a kernel beside an operator is exported for PyTorch"
python3 -c '
import json
p = json.load(open("py_op/package.json"))
op, launch = p["steps"]
print(op["op"], launch["arguments"][0])' >out
is "an exported operator has its whole name, and its result as the kernel's pointer" "$(cat out)" \
  "h = aten.linear.default(x, weight, bias) {'kind': 'pointer', 'name': 'h', 'offset': '0', 'element': 4}"
for form in c flashinfer; do
  run quern-export --task op_layer --task-root "$op/tasks" --to $form -o d "$op/fused_rest.cu"
  [ $rc = 1 ] && sentence quern-export 'line 4 runs aten.linear.default'
  ok $? "no other package runs an operator: $form"
done
run quern-export --task op_layer --task-root "$op/tasks" --to torch -o d "$op/only_ops.cu"
[ $rc = 1 ] && sentence quern-export 'no kernel of its own'
ok $? "operators alone are nothing to export"
mkdir locked; chmod 500 locked
if [ "$(id -u)" = 0 ]; then ok 0 "a folder that cannot be written (root writes everywhere) # SKIP"
else run quern-export --task row_sum --to c -o locked/d all.cu; [ $rc = 3 ]
ok $? "a folder that cannot be written"; fi
[ -z "$(ls -d d* locked/d* 2>/dev/null | grep -v drive)" ]
ok $? "nothing is left of packages that cannot be written"
done_testing
