#!/bin/bash
# quern-import: archives of PyTorch become tasks that the gate accepts; archives that are damaged, too large
# or malicious are refused with one sentence and leave nothing behind. TAP on stdout.
. "$(dirname "$0")/tap.sh"
need python3
fixtures=$root/tests/fixtures/import

for name in row several causal assigned cells composed contracted rewritten guarded joined diagonal \
    spectral untrained buckets; do
    run quern-import "$fixtures/$name.pt2" -o tasks; ok $? "$name is imported"
    [ "$(cat out)" = "tasks/$name" ]; ok $? "the folder of an imported task is told"
    run quern-task gate "$name" --task-root tasks; ok $? "the gate accepts an imported task"
done
run quern-import "$fixtures/row.pt2" -o again && cmp -s tasks/row/task.json again/row/task.json
ok $? "the same archive gives the same bytes"
grep -q '"shape": \["12", "channels"\]' tasks/buckets/task.json
ok $? "a table has a row for each bucket of the graph"
grep -q 'aten.index_select(flat, 2, at_2)' tasks/buckets/task.json; ok $? "indices side by side are one"
grep -q '"linear = aten.linear(x, up_weight, up_bias)"' tasks/row/task.json; ok $? "operators are lines"
! grep -q dropout tasks/row/task.json; ok $? "dropout is removed in evaluation"
grep -q '"features % 4 == 0"' tasks/row/task.json; ok $? "a guard is a constraint"
grep -q '"parameter": "up.weight"' tasks/row/task.json; ok $? "a parameter has its name in the module"
grep -q '"shape": \["features", "cols"\]' tasks/row/task.json; ok $? "a parameter's sizes are free"
grep -q 'aten.full(\[\], 0.5' tasks/row/task.json; ok $? "a number of a tensor is a line"
grep -q 'aten.to.dtype(getitem_1, torch.int32)' tasks/several/task.json; ok $? "indices become int32"
grep -q 'aten.tril' tasks/causal/task.json; ok $? "a triangular buffer is a line"
grep -q 'aten.div.Tensor(matmul, 2.8284271247461903)' tasks/causal/task.json
ok $? "a factor that follows from a size fixes it"
grep -q 'stacked_1 = aten.stack(\[mul_64, .*mul_69\], 1)' tasks/rewritten/task.json &&
    grep -q 'aten.cat(\[stacked, stacked_1\], 1)' tasks/rewritten/task.json
ok $? "a stack of 70 tensors is two that are joined"
grep -q "aten.einsum('rsc,rc->rs', \[mul_70, copy_\])" tasks/rewritten/task.json &&
    grep -q "aten.einsum('rs,rk->sk', \[paired, x\])" tasks/rewritten/task.json
ok $? "an einsum of three tensors is two of two"
grep -q 'aten.copy_(slice_4, slice_2)' tasks/assigned/task.json &&
    grep -q 'aten.fill_.Scalar(select, 1.5)' tasks/assigned/task.json &&
    ! grep -q degenerate tasks/assigned/task.json
ok $? "what is written through a view of a result is kept"
grep -q 'aten.gru.input(step, state, \[gru_weight_ih, .*\], True, 1, 0.0' tasks/cells/task.json &&
    grep -q 'aten.lstm.input(step_1, \[state_1, state_2\]' tasks/cells/task.json
ok $? "a cell is one step of a network"
grep -q '\[2 \* height, 2 \* width\], False, scales_h=2.0' tasks/cells/task.json
ok $? "the size of an image follows from a factor"
grep -q 'aten.index_select(slice_2, 2, at)' tasks/cells/task.json &&
    grep -q 'aten.index_copy_(.*, 2, at, placed)' tasks/cells/task.json
ok $? "indices beside None are of one dimension"
grep -q 'getitem, getitem_1 = aten.var_mean.dim(h, \[1\]' tasks/cells/task.json &&
    ! grep -q '= aten.mean' tasks/cells/task.json
ok $? "a variance and its mean are one operator"
grep -q 'aten.matmul(sides, turned)' tasks/composed/task.json &&
    grep -q 'cdist = aten.sqrt_(positive)' tasks/composed/task.json &&
    grep -q 'aten.linspace(-1' tasks/composed/task.json &&
    grep -q 'aten.expand(line_1, \[5, 6\])' tasks/composed/task.json
ok $? "a distance and a grid are compositions"
grep -q 'aten.mul.Tensor(at, at)' tasks/composed/task.json; ok $? "a square of whole numbers is a product"
grep -q 'aten.index_copy_(clone, 0, at, placed)' tasks/composed/task.json
ok $? "an assignment at indices is a copy to them"
"$BIN/quern-task" show composed --task-root tasks 2>err | grep '^//@' >composed.cu
run quern-eval --task composed --task-root tasks --device sim:h100 --json composed.cu &&
    grep -q '"outcome":"ok"' out
ok $? "kernels of an imported graph compile and are right, a remainder of whole numbers among them"
grep -q 'aten._fft_r2c.pairs(x, 1, onesided=True)' tasks/spectral/task.json &&
    grep -q 'aten._fft_c2c.pairs(stack_1, 1, forward=False)' tasks/spectral/task.json &&
    grep -q 'aten._fft_c2r.pairs(stack_3, 2, last_dim_size=2 \* cols_1)' tasks/spectral/task.json &&
    ! grep -q complex tasks/spectral/task.json
ok $? "transforms are lines, and complex numbers pairs"
grep -q 'aten.permute(x, \[0, 1, 2\])' tasks/contracted/task.json &&
    grep -q 'aten.permute(y, \[2, 0, 1\])' tasks/contracted/task.json &&
    grep -q 'product = aten.mm(flat, flat_1)' tasks/contracted/task.json
ok $? "a contraction is a product of matrices"
grep -q 'aten.sub.Tensor(' tasks/contracted/task.json; ok $? "another name of an operator is its own"
grep -q 'aten.cat(\[where, getitem_1\], 0)' tasks/contracted/task.json
ok $? "tensors below each other are joined"
grep -q '\[3 \* height / 2, 3 \* width / 2\], False, scales_h=1.5' tasks/contracted/task.json
ok $? "a fraction of a size is one of integers"
grep -q '"kept": {.*"draw": "uniform", "low": [0-9.e-]*, "high": 0.9999' tasks/guarded/task.json
ok $? "a buffer is drawn within its range"
grep -q '"target": {.*"low": 0, "high": "[a-z_0-9]* - 1"' tasks/guarded/task.json
ok $? "a target that is shifted is within the classes"
! grep -q degenerate tasks/guarded/task.json
ok $? "a bias that a softmax cancels makes nothing degenerate"
grep -q 'joined = aten.cat(\[sub, at\], -1)' tasks/joined/task.json &&
    grep -q 'aten.to.dtype(ne, torch.float32)' tasks/joined/task.json &&
    grep -q 'aten.fill_.Scalar(diagonal, 1)' tasks/joined/task.json
ok $? "differences behind a tensor, a device and an identity are other operators"
grep -q 'diag = aten.tril(upper)' tasks/diagonal/task.json &&
    grep -q 'diag_embed = aten.tril(upper_1)' tasks/diagonal/task.json
ok $? "a diagonal matrix is a triangle of a triangle"
! grep -q degenerate tasks/joined/task.json
ok $? "a bias that a norm cancels and a parameter near zero make nothing degenerate"
"$BIN/quern-task" show joined --task-root tasks 2>err | grep '^//@' >joined.cu
run quern-eval --task joined --task-root tasks --device sim:h100 --json joined.cu &&
    grep -q '"outcome":"ok"' out
ok $? "sizes leave all that positions name in two tables"
grep -q '"kind": {.*"high": "features[_0-9]* - 1"' tasks/untrained/task.json &&
    grep -q '"place": {.*"high": "min(inner[_0-9]* - 1, features[_0-9]* - 1)"' tasks/untrained/task.json
ok $? "indices are within all that they and what they choose index"
! grep -q '/ 6 ==' tasks/untrained/task.json &&
    grep -q '"two_weight": {.*"shape": \["features", ' tasks/untrained/task.json
ok $? "widths of which the same is asked are one axis"
! grep -q degenerate tasks/untrained/task.json
ok $? "weights that nobody has trained make nothing degenerate"
grep -q 'copy_ = aten.clone(y)' tasks/rewritten/task.json && ! grep -q '"state"' tasks/rewritten/task.json
ok $? "a constant that is overwritten first is no input"

# ---- what is refused ----
cat >make.py <<'END'
import json, struct, sys, zipfile
source, folder = sys.argv[1], sys.argv[2]
z = zipfile.ZipFile(source)
model = next(n for n in z.namelist() if n.endswith("models/model.json"))
notes = next(n for n in z.namelist() if n.endswith("extra/quern.json"))
data = open(source, "rb").read()
text = z.read(model).decode()

def write(name, entries, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(f"{folder}/{name}.pt2", "w", method) as w:
        for path, content in entries:
            w.writestr(zipfile.ZipInfo(path), content, method)

def program(name, change, left_out=""):
    p, said = json.loads(text), json.loads(z.read(notes))
    change(p)
    for x in said["inputs"]:
        x.pop(left_out, None)
    write(name, [("m/models/model.json", json.dumps(p)), ("m/extra/quern.json", json.dumps(said))])

def graph(p):
    return p["graph_module"]["graph"]

open(f"{folder}/empty.pt2", "wb").close()
open(f"{folder}/text.pt2", "w").write("a text\n" * 100)
open(f"{folder}/truncated.pt2", "wb").write(data[: len(data) // 2])
open(f"{folder}/damaged.pt2", "wb").write(data[:200] + bytes(200) + data[400:])
write("none", [("m/other.json", "{}")])
write("two", [("m/models/model.json", text), ("n/models/model.json", text)])
write("absolute", [("/etc/models/model.json", text)])
write("climbs", [("m/../../models/model.json", text)])
write("bomb", [("m/models/model.json", b" " * (65 << 20))], zipfile.ZIP_DEFLATED)
write("old", [("serialized_exported_program.json", text), ("version", "8.5")])
write("json", [("m/models/model.json", text[:-20])])
write("list", [("m/models/model.json", "[1]")])
write("deep", [("m/models/model.json", "[" * 100000)])
program("version", lambda p: p.update(schema_version={"major": 9, "minor": 0}))
program("dangling", lambda p: graph(p)["nodes"][0]["inputs"][0]["arg"]["as_tensor"].update(name="nothing"))
def cyclic(p):
    nodes = graph(p)["nodes"]
    nodes[0]["inputs"][0]["arg"]["as_tensor"]["name"] = nodes[-1]["outputs"][0]["as_tensor"]["name"]
program("cyclic", cyclic)
def twice(p):
    nodes = graph(p)["nodes"]
    nodes[-1]["outputs"][0]["as_tensor"]["name"] = nodes[0]["outputs"][0]["as_tensor"]["name"]
program("twice", twice)
def huge(p):
    for t in graph(p)["tensor_values"].values():
        t["sizes"] = [{"as_int": 2 ** 62} for _ in t["sizes"]]
program("huge", huge)
program("zero", lambda p: [t.update(sizes=[{"as_int": 0} for _ in t["sizes"]])
                           for t in graph(p)["tensor_values"].values()])
program("shape", lambda p: [t["sizes"].reverse() for n, t in graph(p)["tensor_values"].items()
                            if n == "linear"])
program("complex", lambda p: [t.update(dtype=10) for t in graph(p)["tensor_values"].values()])
program("unknown", lambda p: graph(p)["nodes"][0].update(target="torch.ops.aten.lineal.default"))
program("custom", lambda p: graph(p)["nodes"][0].update(target="torch.ops.mine.op.default"))
program("random", lambda p: graph(p)["nodes"][0].update(target="torch.ops.aten.rand_like.default",
    inputs=graph(p)["nodes"][0]["inputs"][:1]))
program("number", lambda p: p["graph_module"]["signature"]["output_specs"].__setitem__(
    0, {"user_output": {"arg": {"as_int": 3}}}))
def unbacked(p):
    for t in graph(p)["tensor_values"].values():
        if t["sizes"] and "as_expr" in t["sizes"][0]:
            t["sizes"][0] = {"as_expr": {"expr_str": "Symbol('u0', integer=True)", "hint": None}}
program("unbacked", unbacked)
def passed(p):
    returned = lambda name: {"user_output": {"arg": {"as_tensor": {"name": name}}}}
    specs = p["graph_module"]["signature"]["output_specs"]
    specs += [returned("inputs_0"), *specs[:1]]
program("passed", passed)
program("late", lambda p: graph(p)["nodes"][-1].update(target="torch.ops.mine.op.default"))
program("bytes", lambda p: graph(p)["tensor_values"]["inputs_0"].update(dtype=31))
def chosen(p):
    size = {"as_expr": {"expr_str": "Symbol('u0', integer=True)", "hint": None}}
    graph(p)["tensor_values"]["linear"]["sizes"][0] = size
    graph(p)["sym_int_values"]["sym_size_int_9"] = size
program("chosen", chosen)
def autocast(p):
    node = graph(p)["nodes"][0]
    inner = {"as_graph": {"name": "submod_1", "graph": {"nodes": [{"metadata": node["metadata"]}]}}}
    node.update(target="torch.ops.higher_order.wrap_with_autocast", metadata={},
                inputs=[{"name": "", "arg": inner, "kind": 1}])
program("autocast", autocast)
source = sys.argv[3]
z = zipfile.ZipFile(source)
text = z.read(next(n for n in z.namelist() if n.endswith("models/model.json"))).decode()
notes = next(n for n in z.namelist() if n.endswith("extra/quern.json"))
def unknown_contents(p):
    copy = next(n for n in graph(p)["nodes"] if "copy_" in n["target"])
    copy["inputs"].reverse()
program("contents", unknown_contents, left_out="values")
def equation(p):
    einsum = next(n for n in graph(p)["nodes"] if "einsum" in n["target"])
    einsum["inputs"][0]["arg"]["as_string"] = "rsc,rc,rk"
program("equation", equation)
def unsorted(p):
    search = next(n for n in graph(p)["nodes"] if "bucketize" in n["target"])
    search["inputs"][1]["arg"] = search["inputs"][0]["arg"]
z = zipfile.ZipFile(sys.argv[4])
notes = next(n for n in z.namelist() if n.endswith("extra/quern.json"))
text = z.read(next(n for n in z.namelist() if n.endswith("models/model.json"))).decode()
program("unsorted", unsorted)
z = zipfile.ZipFile(source.replace("rewritten", "guarded"))
notes = next(n for n in z.namelist() if n.endswith("extra/quern.json"))
text = z.read(next(n for n in z.namelist() if n.endswith("models/model.json"))).decode()
def infinite(p):
    node = next(n for n in graph(p)["nodes"] if "aten.sqrt" in n["target"])
    node.update(target="torch.ops.aten.acos.default")
    one = next(n for n in graph(p)["nodes"] if "aten.rsub" in n["target"])
    one["inputs"][1]["arg"] = {"as_int": 5}
program("infinite", infinite)
END
mkdir bad && python3 make.py "$fixtures/row.pt2" bad "$fixtures/rewritten.pt2" "$fixtures/contracted.pt2"
ok $? "bad archives are made"
refused() { # NAME SENTENCE
    run quern-import "bad/$1.pt2" -o bad/tasks
    [ $rc = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q -- "$2" err && [ ! -e bad/tasks ]; ok $? "refused: $1"
}
refused empty 'expected a .pt2 archive'
refused text 'expected a .pt2 archive'
refused truncated 'expected a .pt2 archive'
refused damaged 'expected a .pt2 archive\|is damaged'
refused none 'no exported program in it'
refused two 'more than one program'
refused absolute 'the entry "/etc/models/model.json" has a path outside'
refused climbs 'has a path outside'
refused bomb 'bytes unpacked, at most 67108864 expected'
refused old 'torch 2.7 or older'
refused json 'not valid JSON'
refused list 'expected the field "schema_version"'
refused deep 'not valid JSON'
refused version 'schema version 9.0, Quern reads version 8'
refused dangling 'modules.py, line .*aten.linear.default.*uses the tensor nothing'
refused cyclic 'uses the tensor mul_1, which nothing before it gives'
refused twice 'two nodes give the tensor linear'
refused huge 'has the size 4611686018427387904'
refused zero 'has the size 0, 1 to'
refused shape 'Quern infers float32\[10, 12\] where PyTorch has float32\[12, 10\]'
refused complex 'element type complex64, which Quern has not'
refused random 'aten.rand_like.default.*random'
refused number 'returns something that is no tensor'
refused unbacked 'does not say how large u0 is'
refused infinite 'modules.py, line .*kept.*aten.acos.default gives the first result that is not finite'
refused contents 'a constant tensor, lifted_tensor_0, of which the archive has no contents'
# ends NAME SENTENCE OUTPUT: the task ends before what cannot be followed.
ends() {
    run quern-import "bad/$1.pt2" -o cut
    [ $rc = 0 ] && [ "$(grep -c -- "$2.*: the task ends before it" err)" = 1 ] &&
        grep -q '"cut"' "cut/$1/task.json" && grep -A2 '"outputs"' "cut/$1/task.json" | grep -q "\"$3\""
    ok $? "cut: $1"
}
# behind NAME SENTENCE: too little comes before it; the task is what comes behind.
behind() {
    run quern-import "bad/$1.pt2" -o behind
    [ $rc = 0 ] && grep -q -- "$2.*: the task begins behind it" err && grep -q '"cut"' "behind/$1/task.json"
    ok $? "a task behind: $1"
}
behind unknown 'modules.py, line .*aten.lineal.default is not in the library'
behind custom 'modules.py, line .*operators of ATen only'
behind chosen 'modules.py, line .*aten.linear.default: the contents of a tensor decide the size'
behind autocast 'modules.py, line .*wrap_with_autocast: torch.autocast chooses an element type'
behind bytes 'modules.py, line .*input x: .*element type float8_e4m3fnuz, which Quern has not'
ends unsorted 'boundaries are not known to be in order' where
ends late 'modules.py, line .*mine.op.default: Quern knows operators of ATen only' group_norm
ends equation 'expected letters for each of 3 tensors and a result, found "rsc,rc,rk"' mul_70
run quern-import bad/passed.pt2 -o passed && grep -q '"results": \[0,"x",0\]' passed/passed/task.json &&
    sentence quern-import 'the module returns its input x unchanged: it is no output'
ok $? "a result that is an input is no output"
for name in idle ignored; do
    mkdir "tasks/$name"
    python3 - "$name" <<'END'
import json, sys
task, name = json.load(open("tasks/row/task.json")), sys.argv[1]
task["inputs"]["idle"] = {"dtype": "float32", "shape": ["cols"], "draw": "normal"}
task["inputs"]["idle"].update({"unused": True} if name == "idle" else {})
with open(f"tasks/{name}/task.json", "w") as f:
    json.dump({**task, "name": name}, f)
END
done
run quern-task gate idle --task-root tasks; ok $? "an input that is said to be unused needs no effect"
run quern-task gate ignored --task-root tasks; [ $rc != 0 ]; ok $? "any other input does"
run quern-import missing.pt2 -o tasks; [ $? = 2 ] && grep -q 'there is no file missing.pt2' err
ok $? "a missing file is status 2"
mkdir tasks/own; touch tasks/own/{task.json,reference.c}
run quern-import "$fixtures/row.pt2" -o tasks --name own; [ $? = 2 ] && [ ! -s tasks/own/task.json ] &&
    sentence quern-import 'tasks/own is a task with files of its own'
ok $? "a task that was written by hand is not overwritten"
run quern-import "$fixtures/row.pt2" -o tasks --name 'a-b'; [ $? = 2 ]
ok $? "a name that is no identifier is status 2"
done_testing
