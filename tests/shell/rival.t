#!/bin/bash
# The driver of tools/rival.py, with a worker that is no PyTorch: one that fails, dies or hangs costs its rows
# alone, one at a time has the GPU, and the same call goes on where the table ends. TAP on stdout.
. "$(dirname "$0")/tap.sh"
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tools
cat >worker.py <<'END'
import json, os, sys, time
def say(what):
    print(json.dumps(what), flush=True)
say({"gpu": "none", "torch": "0"})
for line in sys.stdin:
    q = json.loads(line)
    name, ways = q["task"], q["ways"]
    with open("asked", "a") as log:
        print(name, ",".join(w for _, w in ways), q["given"], file=log)
    compiled = any(w == "compile" for _, w in ways)
    if name == "hangs" and compiled:
        time.sleep(600)
    if name == "dies" and compiled:
        os._exit(3)
    say({"want": 1})
    sys.stdin.readline()
    try:
        os.mkdir("gpu")
    except FileExistsError:
        open("shared", "w")  # another worker has it
    time.sleep(0.05)
    error = "out of time\tand\nmore" if name == "fails" else None
    if name == "large" and not os.path.exists("crowded"):
        open("crowded", "w")
        error = "CUDA out of memory"
    os.path.isdir("gpu") and os.rmdir("gpu")
    say({"done": 1})
    say({"rows": [{"precision": p, "way": w, "error": error} if error else
                  {"precision": p, "way": w, "us": 1.5, "runs": 9} for p, w in ways]})
END
cat >rows.py <<'END'
import sys, types
import rival_rows
ways = [("default", w) for w in sys.argv[2].split(",")]
given = types.SimpleNamespace(output="rows", again="again" in sys.argv, jobs=3,
    seconds=-1 if "late" in sys.argv else 600, limit=6)
subjects = [rival_rows.Subject(n, {"n": 4}, {"of": n}, ways) for n in sys.argv[1].split(",")]
print(rival_rows.Driver([sys.executable, "worker.py"], subjects, given).run())
END
row() { # TASK WAY REST, a Perl pattern: the table has one such row
  [ "$(grep -cP "^$1\t\\{\"n\":4\\}\tnone\t0\tdefault\t$2\t$3\$" rows)" = 1 ]
}
time='1.5\t\t\t\t\t\t9\t' none='\t\t\t\t\t\t\t'

python3 rows.py a,hangs,dies,fails,large,b eager,compile >out 2>err
[ "$(cat out)" = 0 ] && [ "$(wc -l <rows)" = 13 ]
ok $? "each subject has a row for each way" "$(cat err rows)"
row a eager "$time" && row a compile "$time" && row b compile "$time"; ok $? "what works has a time"
row hangs eager "$time" && row hangs compile "${none}took over 6 s"
ok $? "what is compiled too long is timed without compilation" "$(cat rows)"
row dies eager "$time" && row dies compile "${none}the process ended with status 3"
ok $? "what ends its process is timed without compilation" "$(cat rows)"
row fails eager "${none}out of time and more"; ok $? "an error is one field of its row" "$(cat rows)"
row large eager "$time" && row large compile "$time"
ok $? "what does not fit beside others is measured alone" "$(cat rows)"
[ ! -e shared ]; ok $? "one worker at a time has the GPU"
: >asked; python3 rows.py a,hangs,c eager,compile >out
[ "$(cat asked)" = "c eager,compile {'of': 'c'}" ] && [ "$(wc -l <rows)" = 15 ]
ok $? "a second call measures what has no row" "$(cat asked)"
: >asked; python3 rows.py a eager,max-autotune >out
[ "$(cat asked)" = "a max-autotune {'of': 'a'}" ] && row a max-autotune "$time"
ok $? "a way that is new is measured" "$(cat asked)"
printf 'd\t{"n":4}\tnone\t0\tdef' >>rows; : >asked; python3 rows.py c,d eager >out
row d eager "$time" && [ "$(wc -l <asked)" = 1 ]; ok $? "a torn row is measured again" "$(cat rows)"
: >asked; python3 rows.py a,fails eager again >out; [ "$(cat asked)" = "fails eager {'of': 'fails'}" ]
ok $? "errors are measured again where that is asked for" "$(cat asked)"
: >asked; python3 rows.py e,f eager late >out; [ "$(cat out)" = 2 ] && [ ! -s asked ]
ok $? "nothing is begun when the time is over"
printf 'import sys\nsys.exit("no GPU")\n' >worker.py
! python3 rows.py e eager >out 2>err && grep -q 'no worker starts' err && grep -q 'no GPU' err
ok $? "a worker that cannot start ends the call"
echo other >rows; ! python3 rows.py e eager >out 2>err && grep -q 'begins with other columns' err
ok $? "a file that is no such table is refused"

# ---- tasks as functions of PyTorch ----
if python3 -c 'import torch' 2>/dev/null; then
    python3 - "$root" >out 2>err <<'END'
import json, sys
import torch
import rival_tasks
for name in "level1/k1_36_rmsnorm", "level2/k2_12_gemm_multiply_leakyrelu":
    task = json.load(open(f"{sys.argv[1]}/tasks/kernelbench/{name}/task.json"))
    axes = task["workloads"][0]["axes"]
    with torch.no_grad():
        results = rival_tasks.function(task, axes, "cpu")(*rival_tasks.draw(task, axes, "cpu"))
    print(all(bool(torch.isfinite(r).all()) for r in results))
END
    [ "$(cat out)" = "True
True" ]; ok $? 'the graph of a task runs in PyTorch' "$(tail -1 err)"
fi
# ---- a task's graph, with a PyTorch that only doubles ----
mkdir -p torch/nn && : >torch/nn/__init__.py && : >torch/nn/functional.py
cat >torch/__init__.py <<'END'
import types
Tensor = int
_C = types.SimpleNamespace()
class TensorType:
    pass
def tensor(x):
    return x
def twice(x, times=1):
    return 2 * times * x
twice._schema = types.SimpleNamespace(returns=[types.SimpleNamespace(type=TensorType())], arguments=[])
ops = types.SimpleNamespace(aten=types.SimpleNamespace(twice=twice))
END
cat >graph.py <<'END'
import rival_tasks
lines = ["a = aten.twice(x)", "y = aten.twice(a, times=n)"]
task = {"inputs": {"x": {}}, "outputs": {"y": {}}, "graph": lines}
print(rival_tasks.graph_function(task, {"n": 5}, None)(3))
END
[ "$(python3 graph.py 2>err)" = '[60]' ]; ok $? "a graph is a function" "$(cat err)"
done_testing
