#!/bin/bash
# An exported package in PyTorch without a GPU: which calls its function hands to the registered operator,
# and, over a stand-in for libcuda, what it launches by itself. Skipped where Python has no torch;
# QUERN_PYTHON names another Python. TAP on stdout.
. "$(dirname "$0")/tap.sh"
python=${QUERN_PYTHON:-python3}
"$python" -c 'import torch' 2>/dev/null || skip_all "no torch in $python"
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
op=$root/tests/fixtures/op_lines
cd "$tmp" || exit 1
run quern-export --task op_layer --task-root "$op/tasks" --to torch --name layer -o layer "$op/fused_rest.cu"
ok $? "a PyTorch package is written"
cat >sum.cu <<'END'
//@ buffer float part[rows]
//@ launch parts<<<rows, 32>>>(x, part, cols)
//@ launch copy<<<ceil_div(rows, 32), 32>>>(part, y, rows)
extern "C" __global__ void parts(const float *x, float *part, int cols)
{
    float sum = 0;
    for (int c = threadIdx.x; c < cols; c += 32) sum += x[(size_t)blockIdx.x * cols + c];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}
extern "C" __global__ void copy(const float *part, float *y, int rows)
{
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < rows) y[i] = part[i];
}
END
run quern-export --task row_sum --to torch --name sums -o sums sum.cu
ok $? "a PyTorch package of two launches and a buffer is written"
"${QUERN_CC:-gcc}" -w -O1 -fPIC -shared -I"$root/tests/fixtures/export" -o libcuda.so \
    "$root/tests/fixtures/export/driver.c"

cat >calls.py <<'END'
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
import layer

def ok(right, name):
    print(("ok" if right else "not ok"), name)

x, w, b, s = torch.randn(8, 96), torch.randn(160, 96), torch.randn(160), torch.randn(160)
h = torch.nn.functional.linear(x, w, b)
want = torch.nn.functional.gelu(h) + torch.relu(h) * s
near = lambda got: torch.allclose(got, want, atol=1e-4)
ok(near(layer.op(x, w, b, s)), "tensors of the CPU take the original's way")
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias, self.scale = (torch.nn.Parameter(t) for t in (w, b, s))

    def forward(self, x):
        h = torch.nn.functional.linear(x, self.weight, self.bias)
        return torch.nn.functional.gelu(h) + torch.relu(h) * self.scale

ok(near(layer.Module(Layer())(x)), "a module too")
compiled = torch.compile(lambda *a: layer.op(*a) * 1, fullgraph=True, backend="aot_eager")
ok(near(compiled(x, w, b, s)), "torch.compile keeps one graph")
with FakeTensorMode() as mode:
    ok(layer.op(*[mode.from_tensor(t) for t in (x, w, b, s)]).shape == (8, 160), "fake tensors have shapes")
layer._package.json["tags"] = ["cut"]
try:
    layer.Module(Layer())
    ok(False, "a part of a module does not stand for it")
except TypeError as e:
    ok("a part of the module" in str(e), "a part of a module does not stand for it")
try:
    layer.op(x)
    ok(False, "too few tensors are refused")
except TypeError as e:
    ok("missing 3 required" in str(e), "too few tensors are refused")
END
"$python" -W ignore calls.py >out 2>err
while read -r line; do [ "${line%% *}" = ok ]; ok $? "${line#*ok }"; done <out
is "all checks of the package ran" "$(grep -c . out)" 6; sed 's/^/# /' err | tail -5

fixtures=$root/tests/fixtures/export
PYTHONPATH=$fixtures:. "$python" -W ignore "$fixtures/modules.py" "$root" >out 2>err
while read -r line; do [ "${line%% *}" = ok ]; ok $? "${line#*ok }"; done <out
is "all checks of modules ran" "$(grep -c . out)" 94; sed 's/^/# /' err | tail -5

cat >launches.py <<'END'
import torch

torch.Tensor.get_device = lambda self: 0  # the stand-in's
torch._C._cuda_getDevice, torch._C._cuda_getCurrentRawStream = (lambda: 0), (lambda index: stream)
import sums.driver, sums.torch_op as t

t.Package._cubin = lambda self, device: open("sums/" + self.json["binaries"][-1]["file"], "rb").read()
sums.driver.Driver.__init__.__defaults__ = ("./libcuda.so",)
from sums import _package
_package.device_type = "cpu"
x = torch.zeros(40, 128)
for stream in (0x10, 0x10, 0x20):
    y = _package.op(x)
print(y.shape, y.dtype)
seen = []
_package._fallback = lambda why, tensors: seen.append(why) or x
for bad in (x.double(), x.t(), torch.zeros(40 * 128 + 1)[1:].view(40, 128)):
    print(_package._addresses([bad], 0), _package._reason([bad]))
END
LAUNCHES=$tmp/launched SIZES="parts:8,8,4 copy:8,8,4" "$python" -W ignore launches.py >out 2>err
is "the result of a PyTorch package is the plan's" "$(head -1 out)" "torch.Size([40]) torch.float32"
is "a PyTorch package says why it refuses other inputs" \
    "$(sed 1d out)" "None x is torch.float64, expected torch.float32
None x is not contiguous
None x is not aligned to 16 bytes"
sed 's/^/# /' err | tail -5
is "each call launches both kernels on its stream" "$(awk '{print $1, $2, $3, $5}' launched)" \
  "$(printf '%s\n' 'parts 40,1,1 32,1,1 stream=10' 'copy 2,1,1 32,1,1 stream=10' \
  'parts 40,1,1 32,1,1 stream=10' 'copy 2,1,1 32,1,1 stream=10' 'parts 40,1,1 32,1,1 stream=20' \
  'copy 2,1,1 32,1,1 stream=20')"
is "the second launch takes what the first gives" "$(awk '$1 == "parts" {print $7}' launched)" \
    "$(awk '$1 == "copy" {print $6}' launched)"

# Op lines run between the launches by Python's own functions, whose results the kernels take.
cat >lines.py <<'END'
import torch

torch.Tensor.get_device = lambda self: 0
torch._C._cuda_getDevice, torch._C._cuda_getCurrentRawStream = (lambda: 0), (lambda index: 0x10)
import layer.driver, layer.graph, layer.torch_op as t

t.Package._cubin = lambda self, device: open("layer/" + self.json["binaries"][-1]["file"], "rb").read()
layer.driver.Driver.__init__.__defaults__ = ("./libcuda.so",)
layer._package.device_type = "cpu"
x, w, b, s = torch.randn(8, 96), torch.randn(160, 96), torch.randn(160), torch.randn(160)
print(*[list(layer.op(x, w, b, s).shape) for _ in range(2)])
run = layer.graph.function_of(
    ["i, lambda = aten.topk(x, 2)", "v = aten.view(i, [16])", "f = aten.full([2], 0.5)",
     "m = aten.max.dim(x, -1)", "y = aten.add.Tensor(v, inf)"],
    ["x"], ["v", "lambda", "f", "m", "y"], {}, "cpu")
for _ in range(2):
    v, index, f, m, y = run(x)
print(torch.equal(v, x.topk(2)[0].view(16)), index.dtype, f.tolist(), torch.equal(m, x.max(-1)[0]),
      y[0].item())
print(*sorted({type(f).__name__ for name, f in run.__globals__.items() if name.startswith("_q_line")}))
END
LAUNCHES=$tmp/lines SIZES="rest:8,8,8,4,4" "$python" -W ignore lines.py >out 2>err
is "op lines are written out with the launches" "$(sed 2d out)" "[8, 160] [8, 160]
builtin_function_or_method method_descriptor"
is "their results are PyTorch's" "$(sed -n 2p out)" "True torch.int64 [0.5, 0.5] True inf"
is "each call launches the kernel" "$(awk '{print $1, $2, $3}' lines | uniq -c | xargs)" \
  "2 rest 5,1,1 256,1,1"
sed 's/^/# /' err | tail -5

# The second call has no views of PyTorch and one allocation for buffers of a type; where an operator's result
# lies in another way than in the first call, it runs as the first.
cat >views.py <<'END'
import ctypes
import types
import torch
import layer.driver, layer.lines, layer.torch_op

driver = layer.driver.Driver("./libcuda.so")
binary = open("layer/" + layer._package.json["binaries"][-1]["file"], "rb").read()
kernels = layer.driver.Kernels(driver, binary, layer._package.json["kernels"])
ones = (1, 1, 1)
copy = lambda source, to: (0, ones, ones, 0, [("pointer", source, 0), ("pointer", to, 0)], False)
steps = ["h = aten.linear(x, w)", copy("h", "a"), "rows = aten.view(a, [4, 8])",
         "p, q = aten.chunk(h, 2, -1)", "u = aten.unflatten.int(q, -1, sizes=[2, -1])",
         "v = aten.transpose.int(u, 0, 1)", copy("v", "b"), "turned = aten.view(b, [2, 4, 2])",
         "low = aten.slice.Tensor(rows, 0, 2, 4)", copy("low", "c"), "one = aten.slice.Tensor(c, 0, 1, 9)",
         copy("one", "d"), "y = aten.add.Tensor(rows, v_sum)", "z = aten.mul.Tensor(turned, v)"]
steps.insert(6, "v_sum = aten.sum(v)")
f = torch.float32
memory = [("d", (8,), f), ("a", (32,), f), ("b", (16,), f), ("c", (16,), f), ("0", (8,), torch.uint8)]
package = types.SimpleNamespace(inputs=["x", "w"], out_names=["y", "z", "d"])
sizes = {"h": 128, "v": 64, "low": 64, "one": 32}
writer = layer.lines.Writer(package, kernels, steps, memory, {}, torch.device("cpu"))
moved = [sizes[step[4][0][1]] for step in steps if not isinstance(step, str)]
call = writer.call()

def launch(config, function, table, extra):
    cells = (ctypes.c_void_p * 2).from_address(table.value)
    source, to = (ctypes.c_uint64.from_address(cell).value for cell in cells)
    assert source % 16 == 0 and to % 16 == 0, "not aligned"
    ctypes.memmove(to, source, moved[launches.setdefault(table.value, len(launches) % len(moved))])
    return 0

writer.scope["_q_launch"], launches = launch, {}
x, w = torch.randn(4, 6), torch.randn(8, 6)

def right():
    h = torch.nn.functional.linear(x, w)
    v = h[:, 4:].reshape(4, 2, 2).transpose(0, 1)
    y, z, d = call([x, w], [x.data_ptr(), w.data_ptr()], 0x10)
    near = torch.allclose(y, h + v.sum(), atol=1e-5)
    return near and torch.equal(z, v * v) and torch.equal(d, h[2:].flatten()[1:9])

names = lambda: {n for n in call.__code__.co_names if n in ("_q_view", "_q_first", "_q_learn")}
print(*names(), right(), *sorted(names()))
print(right(), right(), sum(n.startswith("_q_line") for n in call.__code__.co_names))
name = next(n for n in call.__code__.co_names if n.startswith("_q_line"))
own = writer.scope[name]
writer.scope[name] = lambda x, w: own(x, w).t().contiguous().t()
print(right())
writer.scope[name] = own
print(right())

# The call of a module: what it keeps is made once for a stream, and not taken while a graph is captured.
import layer.held
stored, capturing, made = layer.held.Store(), [False], []
layer.held.capturing = lambda: capturing[0]
empty = writer.scope["_q_empty"]
writer.scope["_q_empty"] = lambda shape, *more: made.append(shape) or empty(shape, *more)
turned = x.t().contiguous().t()
casts = [(torch.float64, None), (None, None), (None, None)]
results = layer.held.Results(casts, "r0, tensors[0], r1, r2", {})
cases = [(layer.held.held(stored, call, [x, w], (), None), x),
         (layer.held.held(stored, call, [turned, w], (0,), results.function()), turned)]
for held, x in cases:
    for stream in (1, 1, 2, 1):
        del made[:]
        got = held(x, w, stream)
        y, z, d = got[0], *got[-2:]
        h = torch.nn.functional.linear(x, w)
        v = h[:, 4:].reshape(4, 2, 2).transpose(0, 1)
        near = lambda a, b: torch.allclose(a, b.to(a.dtype), atol=1e-5)
        print(len(made), near(y, h + v.sum()), near(z, v * v), near(d, h[2:].flatten()[1:9]), y.dtype,
              len(got) == 3 or got[1] is x)
capturing[0] = True
print(held(x, w, 1) is layer.held.REFUSED, len(stored.kept))
stored.MOST = 1000
launches.clear()
print(len(layer.held.held(stored, call, [turned, w], (0,), None)(turned, w, 3)))
capturing[0] = False
print(len(stored.kept), stored.size, held.__globals__["_q_local"].states == {})

# Memory that kernels alone take has no other owner than what is kept.
import weakref
copies = types.SimpleNamespace(inputs=["x"], out_names=["y"])
kept = layer.lines.Writer(copies, kernels, [copy("x", "k"), copy("k", "y")],
                          [("y", (4, 6), f), ("k", (4, 6), f)], {}, torch.device("cpu"))
own, alive = kept.scope["_q_empty"], []

def noted_as(*given):
    made = own(*given)
    alive.append(weakref.ref(made))
    return made

kept.scope["_q_empty"] = noted_as
kept.scope["_q_launch"] = lambda *given: 0
held = layer.held.held(layer.held.Store(), kept.call(), [x], (), None)
held(x, 1)
print(*(made() is not None for made in alive))

# Two results of a type that are cast, and two small ones, which are made for several calls at once.
two = types.SimpleNamespace(inputs=["x"], out_names=["y", "z"])
two = layer.lines.Writer(two, kernels, [copy("x", "y"), copy("x", "z")], [("y", (2,), f), ("z", (2,), f)], {},
                         torch.device("cpu"))
two.scope["_q_launch"], launches, moved = launch, {}, [8, 8]
call, x = two.call(), torch.randn(2)
least, layer.held._LEAST_IN_A_GRAPH = layer.held._LEAST_IN_A_GRAPH, 3
both = layer.held.Results([(torch.float64, None)] * 2, "r0, r1", {}).function()
for put in None, both:
    held = layer.held.held(layer.held.Store(), call, [x], (), put)
    with torch.inference_mode():
        got = [t for _ in range(40) for t in held(x, 1)]
        right = all(torch.equal(t, x.to(t.dtype)) for t in got)
        got[0].zero_()
    print(right, got[1].tolist() == x.tolist(), got[0].dtype, len({t.data_ptr() for t in got}),
          len({t.untyped_storage()._cdata for t in got}), got[2]._base, got[2].is_inference())
    capturing[0] = True
    print(held(x, 1) is layer.held.REFUSED)
    capturing[0] = False
END
cat >>views.py <<'END'

# Four launches behind one another are one graph, whose nodes change where an input or result lies elsewhere.
layer.held._LEAST_IN_A_GRAPH = least
chain = [copy("x", "a"), copy("a", "b"), copy("b", "c"), copy("c", "y")]
memory = [(name, (64,), f) for name in ("y", "a", "b", "c")]
row = layer.lines.Writer(copies, kernels, chain, memory, {}, torch.device("cpu"))
held, given = layer.held.held(layer.held.Store(), row.call(), [x], (), None), torch.randn(64)
got = [held(t, 0x30) for t in (given, given, torch.randn(64))]
import os
with open(os.environ["LAUNCHES"]) as text:
    ran = [line.split() for line in text if line.startswith("graph stream=30")]
at = lambda i, k: int(ran[i][6 + k], 16)
print(len(ran), {line[1] for line in ran}, len({at(i, 0) for i in (0, 4)}), at(8, 0) != at(0, 0))
print([at(4 * i + 3, 1) == y.data_ptr() for i, y in enumerate(got)],
      [len({at(4 * i + k, j) for i in range(3)}) for k, j in ((0, 1), (1, 0), (2, 1), (3, 0))],
      all(at(i, 1) == at(i + 1, 0) for i in range(12) if i % 4 < 3))
capturing[0] = True
print(held(given, 0x30) is layer.held.REFUSED, held(given, 0x31) is layer.held.REFUSED,
      list(held.__globals__["_q_local"].states))
END
sizes=$(sed -n 's/.*__global__ void.* \([a-z_0-9]*\)(.*/\1:8,8/p' layer/*.cu | tr '\n' ' ')
LAUNCHES=$tmp/rows SIZES=$sizes "$python" -W ignore views.py >out 2>err
is "both sources of a call give the same, and the second one has no views" "$(head -4 out)" \
  "_q_learn True _q_first _q_view
True True 4
True
True"
is "a module's call keeps its memory for each stream, up to a limit" "$(sed 1,4d out | head -12)" \
  "2 True True True torch.float32 True
1 True True True torch.float32 True
2 True True True torch.float32 True
1 True True True torch.float32 True
3 True True True torch.float64 True
1 True True True torch.float64 True
3 True True True torch.float64 True
1 True True True torch.float64 True
True 4
3
1 0 True
True False"
is "small results of several calls lie in one memory, and are tensors of their own" \
  "$(sed 1,16d out | head -4)" \
  "True True torch.float32 80 4 None False
True
True True torch.float64 80 80 None True
True"
is "launches in a row are one graph, whose nodes take new addresses" "$(sed 1,20d out)" \
  "12 {'stream=30'} 1 True
[True, True, True] [1, 1, 1, 1] True
True True [48]"
sed 's/^/# /' err | tail -5

cat >fixed.py <<'END'
import torch
import layer.graph

line = layer.graph.Line("y = aten.index.Tensor(x, [i])", ["x", "i"], {}, torch.device("cpu"), {})
x, mask = torch.randn(4, 4), torch.ones(4, dtype=torch.bool)
print(*(line.fixed({"t_x": x, "t_i": i}) for i in (torch.tensor([2, 1]), mask)))
END
"$python" -W ignore fixed.py >out 2>err
is "an index of integers has the size that they have, and one of a mask has another" "$(cat out)" "True False"

# A result shares no memory with an input or another result: who changes one in place changes that alone.
cat >own.py <<'END'
import types
import torch
import layer.driver, layer.lines, layer.torch_op

driver = layer.driver.Driver("./libcuda.so")
binary = open("layer/" + layer._package.json["binaries"][-1]["file"], "rb").read()
kernels = layer.driver.Kernels(driver, binary, layer._package.json["kernels"])
x = torch.randn(4, 6)

def changed(steps, outputs):
    package = types.SimpleNamespace(inputs=["x"], out_names=outputs)
    call = layer.lines.Writer(package, kernels, steps, [], {}, torch.device("cpu")).call()
    for _ in range(2):
        results = call([x], [x.data_ptr()], 0x10)
        results = [results] if isinstance(results, torch.Tensor) else results
        for r in results:
            others = [t.clone() for t in [x, *results] if t is not r]
            r.add_(1)
            yield any(not torch.equal(t, o) for t, o in zip((t for t in [x, *results] if t is not r), others))

for line in "y = aten.view(x, [24])", "y = aten.dropout(x, 0.5, False)":
    print(any(changed([line], ["y"])))
views = ["h = aten.relu(x)", "y = aten.view(h, [24])", "z = aten.slice.Tensor(h, 0, 1, 3)"]
print(any(changed(views, ["y", "z"])))
halves = types.SimpleNamespace(inputs=["x"], out_names=["y", "z"])
call = layer.lines.Writer(halves, kernels, ["h = aten.relu(x)", "y, z = aten.chunk(h, 2, 0)"], [], {},
                          torch.device("cpu")).call()
print(*[len({t.untyped_storage()._cdata for t in call([x], [x.data_ptr()], 0x10)}) for _ in range(2)])
layer._package.json.update(graph=["h = aten.relu(x)", "y = aten.view(h, [-1])", "z = aten.t(y)"])
layer._package.out_names = ["y", "z"]
layer._package.inputs, layer._package.json["axes"] = ["x"], {}
layer._package.json["inputs"] = []
print(len({t.untyped_storage()._cdata for t in layer._package._original(x)}))
END
"$python" -W ignore own.py >out 2>err
is "results share no memory" "$(cat out)" "False
False
False
1 1
2"
sed 's/^/# /' err | tail -5

# Tensor maps between lines are made of where the tensors lie in this call.
cat >mapped.py <<'END'
import ctypes
import types
import torch
import layer.driver, layer.lines, layer.torch_op

driver = layer.driver.Driver("./libcuda.so")
binary = open("layer/" + layer._package.json["binaries"][-1]["file"], "rb").read()
kernels = layer.driver.Kernels(driver, binary, layer._package.json["kernels"])
what, ones, f, seen = (7, 0, (8,), (), (4,)), (1, 1, 1), torch.float32, []
take = lambda of, inside: (0, ones, ones, 0, [("map", of, (inside, what)), ("pointer", "y", 0)], False)
steps = [take("x", 0), "h = aten.relu(x)", take("h", 16), take("h", 0), take("a", 16)]
package = types.SimpleNamespace(inputs=["x"], out_names=["y"])
memory = [("y", (8,), f), ("a", (32,), f)]
writer = layer.lines.Writer(package, kernels, steps, memory, {}, torch.device("cpu"))
call = writer.call()

def launch(config, function, table, extra):
    maps = (ctypes.c_void_p * 2).from_address(table.value)
    at = ctypes.c_uint64.from_address(maps[0]).value
    seen.append((at, ctypes.c_float.from_address(at).value, maps[0] % 64))
    return 0

writer.scope["_q_launch"] = launch
for i in range(3):
    x, kept = torch.randn(8), torch.empty(i)
    del seen[:]
    call([x], [x.data_ptr()], 0x10)
    h = torch.relu(x)
    want = [x[0], h[4], h[0]]
    print(seen[0][0] == x.data_ptr(), seen[1][0] - seen[2][0],
          [s[1] for s in seen[:3]] == [float(w) for w in want], {s[2] for s in seen})
END
LAUNCHES=$tmp/mapped "$python" -W ignore mapped.py >out 2>err
is "maps are made between lines" "$(sort -u out)" "True 16 True {0}"
sed 's/^/# /' err | tail -5

# Buffers that kernels alone take lie in one; transforms of pairs run between launches.
cat >spectrum.json <<'END'
{"name": "spectrum", "axes": {"rows": {"size": 64}}, "outputs": {"y": {}},
 "inputs": {"x": {"dtype": "float32", "shape": ["rows", "64"]},
            "g": {"dtype": "float32", "shape": ["33", "2"]}},
 "graph": ["a = aten.mul.Tensor(x, 0.125)", "p = aten._fft_r2c.pairs(a, 0, True)",
           "m = aten.mul.Tensor(p, g)", "b = aten._fft_c2r.pairs(m, 0, 64)", "y = aten.relu(b)"]}
END
run quern-derive spectrum.json -o drafts
"$BIN/quern-kernel" --task spectrum --task-root drafts >spectrum.cu
run quern-export --task spectrum --task-root drafts --to torch --name spectrum -o spectrum spectrum.cu
ok $? "a package with Fourier transforms is written"
cat >spectrum.py <<'END'
import torch

torch.Tensor.get_device = lambda self: 0
torch._C._cuda_getDevice, torch._C._cuda_getCurrentRawStream = (lambda: 0), (lambda index: 0x10)
import spectrum.driver, spectrum.plan, spectrum.torch_op as t

t.Package._cubin = lambda self, device: open("spectrum/" + self.json["binaries"][-1]["file"], "rb").read()
spectrum.driver.Driver.__init__.__defaults__ = ("./libcuda.so",)
x, g = torch.randn(4, 64), torch.randn(33, 2)
pairs = torch.view_as_real(torch.fft.rfft(x * 0.125)) * g
want = torch.relu(torch.fft.irfft(torch.view_as_complex(pairs), norm="forward"))
print(torch.allclose(spectrum._package._original(x, g), want, atol=1e-4))
spectrum._package.device_type = "cpu"
print(*[list(spectrum.op(x, g).shape) for _ in range(2)])
pointers = [("pointer", "a", 8), ("pointer", "b", 0), ("integer", 3, 4)]
launch = (0, (1, 1, 1), (32, 1, 1), 0, pointers, False)
memory = [("y", 0), ("a", 100), ("b", 300), ("c", 8)]
print(spectrum.plan.one_workspace(memory, 1, [launch, "z = aten.relu(c)"]))
END
LAUNCHES=$tmp/spectrum.txt SIZES="kernel_1:8,8,4 kernel_2:8,8,8,4 kernel_3:8,8,4" \
    "$python" -W ignore spectrum.py >out 2>err
is "its graph has PyTorch's transforms" "$(sed -n 1p out)" True
is "it runs lines and launches" "$(sed -n 2p out) $(awk '{print $1}' spectrum.txt | xargs)" \
  "[4, 64] [4, 64] kernel_1 kernel_2 kernel_3 kernel_1 kernel_2 kernel_3"
is "a kernel takes what a transform gives" "$(awk '{print $6}' spectrum.txt | grep -c 0x0$)" 0
is "buffers of kernels alone lie in one" "$(sed -n 3p out)" "([('y', 0), ('c', 8), ('0', 768)], \
[(0, (1, 1, 1), (32, 1, 1), 0, \
[('pointer', '0', 8), ('pointer', '0', 256), ('integer', 3, 4)], False), 'z = aten.relu(c)'])"
sed 's/^/# /' err | tail -5

# The entry point of a FlashInfer-Bench solution, over the stand-in.
task=k1_19_relu level=$root/tasks/kernelbench/level1
"$BIN/quern-kernel" --task $task --task-root "$level" >point.cu
run quern-export --task $task --task-root "$level" --to flashinfer --name point -o bench point.cu
ok $? "$task is exported"
cat >bench.py <<'END'
import contextlib, json, os, torch
os.makedirs("solved")
for source in json.load(open("bench/solution.json"))["sources"]:
    open(os.path.join("solved", source["path"]), "w").write(source["content"])
torch.cuda.get_device_capability = lambda device: (9, 0)
torch.cuda.device = lambda device: contextlib.nullcontext()
torch.cuda.current_stream = lambda device: type("Stream", (), {"cuda_stream": 0x10})
import solved.driver
solved.driver.Driver.__init__.__defaults__ = ("./libcuda.so",)
from solved.main import run
for _ in range(2):
    run(torch.zeros(64, 64), torch.zeros(64, 64))
END
LAUNCHES=$tmp/solved.txt SIZES="kernel_1:8,8,4" "$python" -W ignore bench.py >out 2>err
is "a FlashInfer-Bench solution launches its kernel" "$(awk '{print $1}' solved.txt | xargs)" \
  "kernel_1 kernel_1"
sed 's/^/# /' err | tail -5

# FlashInfer-Bench's own models take the three files.
if "$python" -c 'import flashinfer_bench' 2>/dev/null; then
  "$python" -c '
import json
from flashinfer_bench.data import Definition, Solution, Trace
for model, name in (Definition, "definition"), (Solution, "solution"), (Trace, "trace"):
    model.model_validate(json.load(open(f"bench/{name}.json")))' 2>err
  ok $? "FlashInfer-Bench takes definition, solution and trace"; head -5 err | sed 's/^/# /'
else ok 0 "FlashInfer-Bench takes definition, solution and trace # SKIP it is not installed"; fi
done_testing
