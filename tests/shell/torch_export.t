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
export_it() { # NAME [FLAG...]
    "$python" "$root/tools/export.py" "$1.py" -o "$1.pt2" "${@:2}" >out 2>err </dev/null
    rc=$?
}
refused() { # NAME WORDS
    export_it "$1"
    [ $rc = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q "^export: " err && grep -q -- "$2" err &&
        [ ! -e "$1.pt2" ]
    ok $? "refused: $1"
}
imported() { # NAME WORDS of its graph
    export_it "$1" && [ $rc = 0 ]; ok $rc "$1 is exported"
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
module dict <<<'return {"y": x * 2}'
refused dict 'Model returns a dict'
module number <<<'return x * 2, 3'
refused number 'Model returns a Python number'
module random <<<'return x + torch.randn_like(x)'
refused random 'line 4 (`return x + torch.randn_like(x)`): aten.randn_like.default draws random numbers'
module branch <<<'if x.sum() > 0:
    return x
return x * 2'
refused branch 'line 4 (`if x.sum() > 0:`): .*contents of a tensor decide'
module item <<<'return x * x.sum().item()'
refused item 'contents of a tensor decide'
module masked <<<'y = x[x.sum(1) > 3]
return y * 2'
refused masked 'line 4 (`y = x\[x.sum(1) > 3\]`): aten.index.Tensor: the contents of a tensor decide the size'
module places <<<'i, j = torch.where(x > 0)
return x[i, j]'
refused places 'line 4 (`i, j = .*`): aten.where.default: the contents of a tensor decide the size'
module autocast <<<'with torch.autocast("cuda", dtype=torch.bfloat16):
    x = x @ x.T
return x.float()'
refused autocast 'line 5 (`x = x @ x.T`): torch.autocast chooses an element type'
module autocast_off <<<'with torch.autocast("cuda", enabled=False):
    x = x.float() @ x.T
return x * 2'
imported autocast_off 'aten.matmul(x, numpy_t)'
inputs='torch.rand(0, 8)' module empty <<<'return x * 2'
refused empty 'has no element'
init='self.w = undefined' module broken <<<'return x * 2'
refused broken 'line 5 (`self.w = undefined`): the module cannot be built: NameError'
echo 'x = (' >syntax.py
refused syntax 'SyntaxError'
echo 'x = 1' >none.py
refused none 'has no Model'

init='self.d = torch.nn.Dropout(0.5)' module drop <<<'return self.d(x) * 2'
imported drop 'aten.mul.Tensor(x, 2)'
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
"$python" "$root/tools/export.py" torch.nn:Linear --init '[24, 12]' --input 'float32[10,24]' -o linear.pt2 \
    2>err; run quern-import linear.pt2 -o tasks &&
    grep -q 'aten.linear(input, weight, bias)' tasks/linear/task.json
ok $? "a class of a package is exported"
[ "$(ls -- *.tmp* 2>/dev/null)" = '' ]; ok $? "no temporary file stays"
done_testing
