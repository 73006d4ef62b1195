#!/bin/bash
# A plan with tensor maps as a package: the driver makes each map of the tensors' addresses and sizes, on a
# stand-in for libcuda. TAP on stdout.
. "$(dirname "$0")/tap.sh"
need python3
{
  cat <<'CU'
//@ buffer __nv_bfloat16 b[min(n + 1, 51) * 64]
//@ map other = tensor(b + 64, size=[min(n, 50), 32], stride=[64, 1], box=[4, 32], swizzle=64)
//@ launch note<<<1, 32>>>(other)
CU
  grep -v '^// ' "$root/tests/cheats/honest_map_relu.cu"
  cat <<'CU'
__global__ void note(const __grid_constant__ CUtensorMap m)
{
    asm volatile("prefetch.tensormap [%0];" : : "l"(&m));
}
CU
} >maps.cu
gcc -shared -fPIC -Wall -Werror -I"$root/tests/fixtures/export" -o libcuda.so \
    "$root/tests/fixtures/export/driver.c"
ok $? "the stand-in compiles"
run quern-export --task relu --to c --name cut -o c maps.cu; ok $? "a C package is written"
cat >main.c <<'END_C'
#include <stdio.h>
#include "cut.h"
int main(void)
{
    cut_kernels k;
    int status = cut_load(&k);
    if (!status) status = cut_launch(&k, (CUstream)0x77, 1024, 0x10000, 0x20000, 0x30000);
    return printf("%d\n", status), status;
}
END_C
gcc -std=c11 -Wall -Wextra -Werror -I"$root/tests/fixtures/export" -Ic -o driven main.c c/cut.c -L. -lcuda \
    -Wl,-rpath,"$tmp"
ok $? "a C package compiles without a warning"
mapfile -t kernels < <(sed -n 's|^    "\(_Z[^"]*\)",$|\1|p' c/cut.c)
export SIZES="${kernels[0]}:8 ${kernels[1]}:8,8"
LAUNCHES=$tmp/c.txt ./driven >out; ok $? "a C package launches"
cat >want.txt <<END_W
map 30080 type=9 swizzle=2 32:32 50:4 stride=128
${kernels[0]} 1,1,1 32,1,1 0 stream=77 0000000000030080
map 10000 type=7 swizzle=0 1024:256
map 20000 type=7 swizzle=0 1024:256
${kernels[1]} 4,1,1 256,1,1 0 stream=77 0000000000010000 0000000000020000
END_W
cmp -s c.txt want.txt; ok $? "its maps are the plan's"; diff c.txt want.txt | sed 's/^/# /'

run quern-export --task relu --to torch --name cut -o py maps.cu; ok $? "a Python package is written"
cat >drive.py <<'END_P'
import importlib.util, json
def load(name):
    spec = importlib.util.spec_from_file_location(name, f"py/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
plan, driver = load("plan"), load("driver")
package = json.load(open("py/package.json"))
axes = plan.solve_axes(package, [(1024,)])
outputs, buffers, launches = plan.resolve(package, axes)
kernels = driver.Kernels(driver.Driver("./libcuda.so"), open("py/kernels_sm_90.cubin", "rb").read(),
    package["kernels"])
memory, one = plan.one_workspace([("y", 4096), ("b", buffers[0])], 1, launches)
print([name for name, _ in memory])
prepared = driver.Prepared(kernels, one, {"x": 0, "y": 1, plan.WORKSPACE: 2})
for x in 0x10000, 0x10000, 0x50000, 0x10000:
    prepared.run([x, 0x20000, 0x30000], 0x77)
END_P
LAUNCHES=$tmp/py.txt python3 drive.py >out 2>err; ok $? "a Python package launches"
head -5 py.txt | LC_ALL=C sort >first; LC_ALL=C sort want.txt | cmp -s - first
ok $? "its maps are the plan's"; sed 's/^/# /' err
is "the buffer lies in the workspace" "$(cat out)" "['y', '0']"
is "a map is made once for each place" "$(grep -c '^map' py.txt)" 4
is "a launch takes the map of its place" "$(grep "^${kernels[1]}" py.txt | awk '{print $6}' | xargs)" \
  '0000000000010000 0000000000010000 0000000000050000 0000000000010000'
done_testing
