#!/bin/bash
# tools/export.py: what it writes is imported, and what cannot be a task is refused with one sentence that
# names the line. Skipped where Python has no torch; QUERN_PYTHON names another Python. TAP on stdout.
. "$(dirname "$0")/tap.sh"
python=${QUERN_PYTHON:-python3}
"$python" -c 'import torch' 2>/dev/null || skip_all "no torch in $python"
export PYTHONDONTWRITEBYTECODE=1

# module NAME: the lines of forward(self, x) from stdin, and in $init those of __init__.
module() {
    { echo "import torch"; echo "class Model(torch.nn.Module):"
      [ -z "${init:-}" ] || printf '    def __init__(self):\n        super().__init__()\n        %s\n' "$init"
      echo "    def forward(self, x):"; sed 's/^/        /'
      printf 'def get_inputs():\n    return [%s]\n' "${inputs:-torch.rand(6, 8)}"; } >"$1.py"
}
# One Python answers all: it imports torch once, and a child of it is tools/export.py.
cat >exporter.py <<'END'
import os, shlex, sys
sys.path.insert(0, sys.argv[1])
import torch, export
torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
for line in sys.stdin:
    child = os.fork()
    if not child:
        for name, to in ("/dev/null", 0), ("out", 1), ("err", 2):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644), to)
        sys.argv = ["export.py", *shlex.split(line)]
        try:
            rc = export.main()
        except SystemExit as e:
            rc = e.code
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(rc)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
END
coproc exporter { OMP_NUM_THREADS=1 "$python" exporter.py "$root/tools"; }
export_args() { # ARGUMENT... without blanks
    echo "$@" >&"${exporter[1]}" && read -r rc <&"${exporter[0]}"
}
export_it() { # NAME [FLAG...]
    export_args "$1.py" -o "$1.pt2" "${@:2}"
}
refused() { # NAME WORDS
    export_it "$1"
    [ $rc = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q "^export: " err && grep -q -- "$2" err &&
        [ ! -e "$1.pt2" ]
    ok $? "refused: $1"
}
imported() { # NAME WORDS of its graph; what the export said is in err2
    export_it "$1" && [ $rc = 0 ]; ok $rc "$1 is exported"
    mv err err2
    run quern-import "$1.pt2" -o tasks && grep -qF -- "$2" "tasks/$1/task.json"; ok $? "$1 is imported"
}

module prints <<<'print(x.shape)
return x * 2'
refused prints 'prints.py, line 4 (`print(x.shape)`) prints when it is called'
module reads <<<'open("/etc/hostname").read()
return x * 2'
refused reads 'line 4 .* opens a file'
module connects <<<'import socket
socket.socket()
return x * 2'
refused connects 'line 5 .* opens a socket'
module number <<<'return [3, None]'
refused number 'Model returns a list without a tensor'
module random <<<'return x + torch.randn_like(x)'
refused random 'line 4 (`return x + torch.randn_like(x)`): aten.randn_like.default draws random numbers'
module unused <<<'torch.rand([], device=x.device)
return x * 2'
imported unused 'aten.mul.Tensor(x, 2)'
module branch <<<'if x.sum() > 0:
    return x
return x * 2'
refused branch 'line 4 (`if x.sum() > 0:`): .*contents of a tensor decide'
module checked <<<'if torch.any(x < 0):
    raise ValueError("negative")
mask = torch.ones(8, 8, device=x.device).triu(1) > 0
if not bool((mask == mask.new_ones(8, 8).triu(1)).all()):
    return x
return (x @ x.T.new_ones(8, 8).masked_fill(mask, 0)).sqrt()'
imported checked 'aten.sqrt'
init='self.window = 4' module keeps <<<'if not isinstance(x.shape[0], int):
    self.window = x.shape[0]
    raise RuntimeError("a free size")
return x * self.window'
imported keeps 'aten.mul.Tensor(x, 4)'
(cd "$root/tools" && "$python" -c 'import export_trace
try:
    with export_trace.in_time(0.05):
        while True:
            pass
except export_trace.Late as e:
    print(e)') >out 2>err
is "a trace ends in time" "$(cat out)" "a trace with free sizes takes more than 0.05 s"
init='self.table = torch.rand(24, 8)' module detached <<<'return x + self.table.detach()[: x.shape[0]]'
imported detached '"parameter": "table"'
module item <<<'return x * x.sum().item()'
refused item 'contents of a tensor decide'
module cut <<<'y = torch.relu(x) * 2 + 1
n = int((x[:, 0] > 0).sum().item())
return y[:n].softmax(0)'
imported cut 'aten.relu(x)'
grep -q '^export: note: cut.py, line 5 (`n = .*contents of a tensor decide.*: the task ends' err2 &&
    grep -q '"cut"' tasks/cut/task.json && ! grep -q softmax tasks/cut/task.json
ok $? "a task ends before .item()"
inputs='torch.rand(40, 8)' module formulas <<<'q = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15)
y = torch.nn.functional.bilinear(q, x, torch.ones(4, 8, 8, device=x.device))
return torch.nn.functional.gaussian_nll_loss(y, q[:, :4], x[:, :4])'
imported formulas 'aten.clamp'
inputs='torch.rand(40, 8)' module expanded <<<'d = torch.cdist(x, x)
d.fill_diagonal_(1)
return torch.distributions.Normal(d, 1 + d).log_prob(d)'
imported expanded 'aten.fill_'
grep -q 'aten.clamp_min' tasks/expanded/task.json && grep -q 'aten.diagonal' tasks/expanded/task.json
ok $? "distances, a diagonal and a distribution are what they launch"
inputs='torch.randint(-9, 9, (6, 8), dtype=torch.int8), torch.rand(8, 8).to(torch.float8_e4m3fn)' \
    module small <<<'return x.float() @ w.to(torch.float32)'
sed -i 's/def forward(self, x)/def forward(self, x, w)/' small.py
imported small '"float8_e4m3fn"'
inputs='torch.rand(6, 8) * 7' module classes <<<'return torch.nn.functional.cross_entropy(x, x[:, 0].long())'
imported classes '"fixed": true' # or a class would be negative
not_imported() { # NAME WORDS
    export_it "$1"; run quern-import "$1.pt2" -o tasks; [ $rc = 1 ] && grep -q -- "$2" err
    ok $? "not imported: $1"
}
module masked <<<'y = x[x > 3]
return y * 2'
not_imported masked 'line 4 (`y = x\[x > 3\]`): aten.index.Tensor: the contents .* decide the size'
module places <<<'i, j = torch.where(x > 0)
return x[i, j]'
not_imported places 'line 4 (`i, j = .*`): aten.where.default: the contents of a tensor decide the size'
module looped <<<'y = torch.relu(x)
for i in (x.sum(1) > 0).nonzero():
    y = y.index_add(0, i, x[i])
return y'
refused looped 'line 5 (`for i in .*: the contents of a tensor decide what is computed'
module autocast <<<'with torch.autocast(x.device.type, dtype=torch.bfloat16):
    y = x @ x.T
    with torch.autocast("cuda", enabled=False):
        z = (y * 2).float() @ x
return torch.nn.functional.softmax(z, 1), y.float()'
imported autocast 'aten.to.dtype(x, torch.bfloat16)'
grep -q 'aten.matmul(to_[0-9]*, x)' tasks/autocast/task.json
ok $? "a region within that turns autocast off computes in float32"
module autocast_off <<<'with torch.autocast("cuda", enabled=False):
    x = x.float() @ x.T
return x * 2'
imported autocast_off 'aten.matmul(x, numpy_t)'
cat >both.py <<'END'
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(8))
    def forward(self, *parts, **named):
        return sum(parts) * self.w + named["bias"]
def get_model():
    return Model().to(torch.bfloat16)
def get_inputs():
    x = torch.rand(6, 8, dtype=torch.bfloat16)
    return [x, x], {"bias": x}
END
imported both 'aten.mul.Tensor('
types=$(grep -o '"dtype": "[^"]*"' tasks/both/task.json | sort -u)
grep -q 'found get_model and' err2 && [ "$types" = '"dtype": "bfloat16"' ]
ok $? "a factory goes before the class that it makes, and arguments may be *parts and **named"
cat >decorated.py <<'END'
import torch
class Model(torch.nn.Module):
    @torch.autocast("cuda", dtype=torch.bfloat16)
    def forward(self, x):
        return (x @ x.T).float()
def get_inputs():
    return [torch.rand(6, 8)]
END
imported decorated 'aten.to.dtype(x, torch.bfloat16)'
module unfilled <<<'y, z = torch.relu(x) * 2, torch.zeros(6, 8, device=x.device)
if x.sum() > 0:
    z = y
return z'
imported unfilled 'aten.relu(x)'
! grep -q zeros tasks/unfilled/task.json; ok $? "what a line fills is no result of a part"
module weighted <<<'return x * x.new_tensor([1, 1, 2, 2, 2, 3, 3, 4.])'
imported weighted 'aten.cat([filled, filled_1, filled_2, filled_3])'
init='self.c = torch.nn.Parameter(torch.rand(16))' module coded <<<'return self.c[(x.sigmoid() * 15).long()]'
imported coded '"shape": ["16"]'
grep -q "has the parameters' sizes of the example alone" err && grep -q '"rows"' tasks/coded/task.json
ok $? "a table keeps its size where numbers of the module index it, and inputs have other sizes"
init='self.register_buffer("s", torch.tensor(0.0005))' module scaled_down <<<'return x * self.s'
imported scaled_down '"low": 0.00025'
inputs='torch.randn(6, 8), torch.randint(0, 8, (6,))' module ahead \
    <<<'return torch.nn.functional.cross_entropy(x, torch.nn.functional.pad(y, (0, 1), value=-100)[1:])'
sed -i 's/def forward(self, x)/def forward(self, x, y)/' ahead.py
imported ahead '"high": "cols - 1"'
inputs='torch.rand(0, 8)' module empty <<<'return x * 2'
refused empty 'has no element'
init='self.w = undefined' module broken <<<'return x * 2'
refused broken 'line 5 (`self.w = undefined`): the module cannot be built: NameError'
echo 'x = (' >syntax.py
refused syntax 'syntax.py, line 1 (`x = (`) is no Python'
echo 'x = 1' >none.py
refused none 'has no Model'
printf 'import torch\nclass A(torch.nn.Module):\n    pass\nclass B(torch.nn.Module):\n    pass\n' >several.py
refused several 'several.py has several modules, A, B: name one, several.py:B'

inputs='torch.rand(6, 8, dtype=torch.float64)' module wide <<<'return x.exp() * 2'
not_imported wide 'line 4 (`.*`): aten.exp.default: input x: it has the type float64; convert it to float32'

# ---- where a module is found ----
cat >made.py <<'END'
import dataclasses, torch
@dataclasses.dataclass
class Result:
    hidden: tuple
    loss: torch.Tensor = None
class Block(torch.nn.Module):
    def forward(self, x, batch, *, scale=None, bias=None):
        y = x * batch["left"] + batch["rest"][1] * scale
        return Result(hidden=(y, {"third": x - 1, "what": 3}))
def get_model():
    return Block()
def scaled(x, w, eps=1e-6):
    return x * torch.rsqrt(x * x + eps) * w
def get_inputs():
    x = torch.rand(6, 8)
    return [x, {"left": x, "rest": (None, x)}], {"scale": x, "bias": None}
END
imported made 'aten.mul.Tensor(x, batch_left)'
grep -q '^export: note: found get_model and get_inputs in made.py$' err2; ok $? "it is told what was found"
grep -q 'aten.mul.Tensor(batch_rest_1, scale)' tasks/made/task.json &&
    grep -q 'aten.sub.Tensor(x, 1)' tasks/made/task.json
ok $? "arguments by name, in dicts and in tuples, and results in a dataclass are flat"
"$python" -c '
import json
call = json.load(open("tasks/made/task.json"))["call"]
t = {"tensor": True}
rest = {"type": "tuple", "items": [["0", None], ["1", t]]}
batch = {"type": "dict", "keys": [["left", t], ["rest", rest]]}
assert call == {"x": t, "batch": batch, "scale": t, "bias": None}'
ok $? "the call is in the task, for packages"
export_args made.py:sealed -o sealed.pt2
[ $rc = 1 ] && grep -q '^export: made.py has no sealed; is scaled meant' err
ok $? "a wrong name is refused with one like it" "$(cat err)"
export_args made.py:other -o other.pt2
[ $rc = 1 ] && grep -q '^export: made.py has no other; it has .*scaled' err
ok $? "a wrong name is refused with those that are there" "$(cat err)"
export_args made.py:scaled --input 'float32[6,8]' --input 'float32[8]' -o scaled.pt2
run quern-import scaled.pt2 -o tasks && grep -q 'aten.rsqrt' tasks/scaled/task.json
ok $? "a function that is named is exported"

init='self.d = torch.nn.Dropout(0.5)' module drop <<<'return self.d(x) * 2'
imported drop 'aten.mul.Tensor(x, 2)'
grep -q '^export: note: in evaluation mode: Dropout left out$' err2
ok $? "what evaluation leaves out is told"
inputs='torch.rand(2, 4, 6, 6).to(memory_format=torch.channels_last)' module last <<<'return x * 2'
imported last 'aten.mul.Tensor(x, 2)'
grep -q '^export: note: x is in channels_last: it is judged' err2 &&
    grep -q '"x": .*"format": "channels_last"' tasks/last/task.json; ok $? "another memory format is told"
inputs='torch.rand(6, 8), torch.rand(6, 8), torch.rand(3)' module passes <<<'y = x * mask
return y, (mask, state), y'
sed -i 's/def forward(self, x)/def forward(self, x, mask, state)/' passes.py
imported passes '"results": [0,"mask","state",0]'
grep -q '"state": .*"unused": true' tasks/passes/task.json && ! grep -q degenerate tasks/passes/task.json
ok $? "results that are inputs are no outputs"
module spectrum <<<'f = torch.fft.rfft(x) * torch.exp(0.5j * x[:, :5])
f[:, 1:3] = 2 - f[:, 1:3] / (1 + f[:, :2])
return f.abs(), torch.fft.fft2(torch.fft.ifft(f, 7, norm="ortho"), dim=(0, 1)).imag'
imported spectrum 'aten._fft_c2c.pairs(stack, 1, forward=False)'
init='self.w = torch.nn.Parameter(torch.rand(4, 2))' module filter <<<'w = torch.view_as_complex(self.w)
f = torch.einsum("nk,k->nk", torch.fft.rfft(x, norm="forward")[:, :4], w)
out = torch.zeros(x.shape[0], 5, dtype=torch.cfloat)
out[:, :4] = f * f.conj() + torch.complex(x[:, :4], x[:, 4:])
return torch.fft.irfft(out, n=8, norm="ortho"), torch.fft.irfft2(out, s=(6, 8)), f.real'
imported filter "aten.einsum('nk,k->nk', [slice_2, select])"
cat >same.py <<'END'
import sys
sys.path.pop(0)  # modules of this test have names of Python's own
import importlib, json, runpy, types
import torch
package = types.ModuleType("package")
package.__path__, sys.modules["package"] = [sys.argv[1]], package
graph = importlib.import_module("package.graph")
for name in "spectrum", "filter":
    task, model = json.load(open(f"tasks/{name}/task.json")), runpy.run_path(f"{name}.py")["Model"]()
    weights, axes = dict(model.named_parameters()), {}
    tensors = [weights.get(n, torch.rand(6, 8)) for n in task["inputs"]]
    for x, t in zip(task["inputs"].values(), tensors):
        axes.update({a: n for a, n in zip(x["shape"], t.shape) if a.isidentifier()})
    run = graph.module_of(task["graph"], list(task["inputs"]), list(task["outputs"]), axes, "cpu")
    want = model(next(t for t in tensors if t.shape == (6, 8)))
    assert len(want) == len(task["outputs"])
    for got, right in zip(run(*tensors), want):
        torch.testing.assert_close(got, right, atol=1e-5, rtol=1e-5)
END
"$python" -W ignore same.py "$root/share/export/torch" 2>err
ok $? "pairs give what complex tensors give"
sed 's/^/# /' err | tail -3
module complex_result <<<'return torch.fft.rfft(x)'
not_imported complex_result 'line 4 (`return torch.fft.rfft(x)`): aten.fft_rfft.default: .* complex64'
inputs='torch.rand(6, 8, dtype=torch.cfloat)' module phases <<<'return (x * x.conj()).real.sqrt()'
not_imported phases 'phases.py, line 4 (`.*`): aten._conj.default: input x: .* complex64, which Quern has not'
module functional <<<'return torch.nn.functional.dropout(x, 0.5, self.training) * 2'
imported functional 'aten.mul.Tensor(x, 2)'
grep -q '^export: note: in evaluation mode: dropout left out$' err2
ok $? "what a function leaves out in evaluation is told"
rm drop.pt2
export_it drop --mode train; [ $rc = 1 ] && grep -q 'is active in training mode' err
ok $? "active dropout is refused"
module tuple <<<'return x + 1, torch.argmax(x, 1)'
imported tuple 'aten.argmax(x, 1)'
inputs='torch.rand(6, 8), 3.5' module scalar <<<'return x * 2'
sed -i 's/def forward(self, x)/def forward(self, x, s)/; s/x \* 2/x * s/' scalar.py
imported scalar 'aten.mul.Tensor(x, 3.5)'
inputs='torch.randint(0, 5, (6, 8)), torch.rand(6, 8) > 0.5' module integers <<<'return x * m * 0.5'
sed -i 's/def forward(self, x)/def forward(self, x, m)/' integers.py
export_it integers; run quern-import integers.pt2 -o tasks && grep -q '"int64"' tasks/integers/task.json &&
    grep -q '"bool"' tasks/integers/task.json
ok $? "a module with integer and bool inputs is exported"
inputs='torch.randn(6, 8), torch.randint(0, 8, (6,))' module losses \
    <<<'return (torch.nn.functional.cross_entropy(x, y, reduction="none") ** 2).mean()'
sed -i 's/def forward(self, x)/def forward(self, x, y)/' losses.py
imported losses 'aten.cross_entropy_loss(x, y, weight=None, reduction=0)'
inputs='torch.rand(6, 80000)'
init='self.w = torch.nn.Parameter(torch.empty(80000, 80000))' module large <<<'return x @ self.w'; inputs=
imported large 'aten.matmul(x, w)'
inputs='torch.rand(3, 500, 8)'
init='self.l = torch.nn.LSTM(8, 4, 6, batch_first=True)' module recurrent <<<'return self.l(x)[0]'; inputs=
start=$SECONDS; imported recurrent 'aten.lstm.input'
[ $((SECONDS - start)) -lt 120 ]; ok $? "500 steps of 6 layers are not run to be exported"

code='import torch\n\ndef run(x, w):\n    h = x.float()\n'
code+='    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * w.float()).half()\n'
cat >definition.json <<END
{"name": "rms", "axes": {"rows": {"type": "var"}, "hidden": {"type": "const", "value": 96}},
 "inputs": {"x": {"shape": ["rows", "hidden"], "dtype": "float16"},
            "w": {"shape": ["hidden"], "dtype": "float16"}},
 "outputs": {"y": {"shape": ["rows", "hidden"], "dtype": "float16"}},
 "reference": "$code"}
END
"$python" "$root/tools/export.py" definition.json --axes rows=48 -o rms.pt2 2>err
run quern-import rms.pt2 -o tasks && grep -q 'aten.rsqrt' tasks/rms/task.json
ok $? "a FlashInfer-Bench definition is exported"
export_args torch.nn:Linear --init '[24,12]' --input 'float32[10,24]' -o linear.pt2
run quern-import linear.pt2 -o tasks &&
    grep -q 'aten.linear(input, weight, bias)' tasks/linear/task.json
ok $? "a class of a package is exported"
mkdir -p net/blocks; touch net/__init__.py net/blocks/__init__.py; echo 'SCALE = 3.0' >net/sizes.py
init='self.register_buffer("mask", torch.ones(8).cuda())' inputs='torch.rand(6, 8, device="cuda")' \
    module net/blocks/gate <<<'from ..sizes import SCALE
i = torch.arange(8, device="cuda:0").to("cuda", torch.float32)
return x * self.mask * SCALE + i'
export_args net/blocks/gate.py -o gate.pt2; ok $rc "a file of a package may import from the package"
run quern-import gate.pt2 -o tasks && grep -q 'aten.arange' tasks/gate/task.json
ok $? "what a module places on a GPU is traced where there is none"
inputs='torch.rand(16, 8) * 0.9 + 0.05' module odds <<<'return (x / (1 - x)).log()'
export_args odds.py -o odds.pt2
run quern-import odds.pt2 -o tasks &&
    grep -q '"draw": "uniform", "low": 0.0[0-9]*, "high": 0.9[0-9]*, "fixed": true' tasks/odds/task.json
ok $? "odds are drawn within the range of their example"
inputs='torch.randn(8, 8)' module places <<<'at = torch.linspace(7, 0, 3).long()
w = torch.hann_window(8, device=x.device)
i, j = torch.triu_indices(2, 2, device=x.device)
x = x.clone()
x[0, 0:] = x.shape[0] - 1
return x[:, [-2]] * w[at[1]] + x[:2, :2][i, j].sum()'
export_args places.py -o places.pt2
run quern-import places.pt2 -o tasks && ! grep -q '"cut"' tasks/places/task.json &&
    grep -q aten.cos tasks/places/task.json
ok $? "windows, corners, sizes that are assigned, and places in tensors and lists are followed"
init='self.lin = torch.nn.Linear(8, 8)' module selected <<<'y = self.lin(x)
return y[x > 0.5].mean(0) + y.mean()'
export_args selected.py -o selected.pt2
run quern-import selected.pt2 -o tasks && [ "$(grep -c 'the task ends before it' err)" = 1 ] &&
    grep -q '"degenerate"' tasks/selected/task.json
ok $? "a task that is tried with other sizes is told of once"
module counts <<<'return {"loss": x.square().sum(), "rows": x.shape[0], "mean": x.mean().item()}'
export_args counts.py -o counts.pt2
mv err err2
run quern-import counts.pt2 -o tasks && grep -q '"cut"' tasks/counts/task.json &&
    grep -q 'returns mean, a number that the contents' err2
ok $? "a number that contents decide is no result of a kernel"
module fixed <<<'return torch.nn.functional.dropout(x, 0.1, training=True)'
refused fixed 'line 4 .* its mode is fixed there'
echo 'def x(: pass' >typo.py
refused typo 'typo.py, line 1 (`def x(: pass`) is no Python'
echo 'import not_there' >lacks.py
refused lacks 'has no module not_there: install it there'
printf '%s\n' 'import torch' 'class Model(torch.nn.Module):' '    def __init__(self, n): pass' \
    'def get_inputs(): return []' >sized.py
refused sized "missing a required argument: 'n'; get_init_inputs() returns a list of them"
echo 'import sys; sys.exit(5)' >leaves.py
refused leaves 'it ends Python (SystemExit: 5)'
[ "$(ls -- *.tmp* 2>/dev/null)" = '' ]; ok $? "no temporary file stays"
printf '%s\n' 'import torch' 'from torch import nn' 'class Model(nn.Module):' '    def forward(self, x, y):' \
    '        return x * y' 'def get_inputs():' '    return [torch.rand(4), torch.rand(4)]' >timed.py
OMP_NUM_THREADS=1 "$python" "$root/tools/rival.py" timed.py --device cpu --ways eager --span 0.01 --jobs 1 \
    --output timed.tsv 2>err
[ "$(awk -F '\t' 'NR == 2 { print $1, $6, ($7 > 0), $14 }' timed.tsv)" = 'timed eager 1 ' ]
ok $? "tools/rival.py times a file's module"; head -5 err timed.tsv | sed 's/^/# /'
done_testing
