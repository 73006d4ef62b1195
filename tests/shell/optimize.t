#!/bin/bash
# make optimize: mistakes; a search from an archive to a package, the same command again, Ctrl-C; a training
# after the search. TAP on stdout.
# limit: 900
. "$(dirname "$0")/tap.sh"
export QUERN_LOG=info
optimize() { "$root/mk/optimize" optimize "$BUILD" - make "$@" >out 2>err; rc=$?; }
small=(PROFILE=smoke CLASSES=sim:h100 DEVICES=sim:h100 'COLLECT=--trials 24 --keep 16'
  'SELFSUP_PROMPTS=--groups 1 --plain 1 --copies 2' 'PROMPTS=--groups 1 --plain 1 --copies 2'
  REPORT_SAMPLES=2 'SAMPLE=--max-new 40 --batch 64' SELFSUP_ROUNDS=1 ROUNDS=1
  "SFT=--plain-epochs 1 --epochs 1 --batch 8 --lr 1e-3" RUNS=runs)
op=$root/tests/fixtures/op_lines/tasks/op_layer
here=(DEVICES=sim:h100 RUNS=runs)

optimize; [ $rc = 2 ] && grep -q '^quern optimize: OP is required' err; ok $? "OP is required"
optimize OP=none.py; [ $rc = 2 ] && grep -q 'cannot open none.py' err; ok $? "a missing file is named"
optimize OP="$op" TO=rust; [ $rc = 2 ] && grep -q 'TO is torch, c or flashinfer' err
ok $? "an unknown form is refused"
for budget in h soon 1.5m 0s; do
  optimize OP="$op" BUDGET=$budget; [ $rc = 2 ] && grep -q "BUDGET is a time .* found \"$budget\"" err
  ok $? "a budget that is no time is refused: $budget"
done
optimize OP="$op" TASKS=relu; [ $rc = 2 ] && grep -q 'TASKS follows from OP' err
ok $? "TASKS follows from OP"
echo 'a note' >notes.txt; optimize OP=notes.txt; [ $rc = 2 ] && grep -q 'notes.txt: expected model.py' err
ok $? "another kind of file is refused"
head -c 1000 "$root/tests/fixtures/import/row.pt2" >cut.pt2; optimize OP=cut.pt2 RUNS=runs
[ $rc = 1 ] && grep -q '^quern-import: cut.pt2' err
ok $? "a damaged archive is refused"
printf '#!/bin/sh\nexit 1\n' >no-torch; chmod +x no-torch; touch model.py
optimize OP=model.py PYTHON=./no-torch "${here[@]}"; [ $rc = 2 ] && grep -q './no-torch has no PyTorch' err
ok $? "a Python without PyTorch is named"
PYTHON=./no-torch optimize OP=model.py "${here[@]}"; [ $rc = 2 ] && grep -q './no-torch has no PyTorch' err
ok $? "the environment may name Python, too"
[ -n "$("$BUILD/bin/quern-devices" --gpus 2>/dev/null)" ] ||
  { optimize OP=model.py PYTHON=./no-torch RUNS=runs; grep -q 'no GPU is here: times are predicted' err; }
ok $? "where there is no GPU, a simulator is named"
printf '#!/bin/sh\n[ "$1" = -c ] || kill -INT $$\n' >stopped; chmod +x stopped
optimize OP=model.py PYTHON=./stopped "${here[@]}"
[ $rc = 130 ] && grep -q 'stopped; the same command goes on' err && [ ! -e runs/model/operator ]
ok $? "an export that is interrupted is no refusal"
printf '#!/bin/sh\n[ "$1" = %s ] || exit 0\ntouch begun; exec sleep 100\n' -c >probes
printf '#!/bin/sh\n[ "$1" != %s ] || exit 0\ntouch begun; exec sleep 100\n' -c >exports
chmod +x probes exports
stops='quern optimize: stopped; the same command goes on'
reads='quern optimize: PyTorch reads model.py'
set -m # Ctrl-C reaches a whole group of processes
for python in probes exports; do
  rm -f begun
  [ $python = probes ] && says=$stops || says=$reads$'\n'$stops
  "$root/mk/optimize" optimize "$BUILD" - make OP=model.py PYTHON=./$python "${here[@]}" >out 2>err &
  wait_for "[ -e begun ]"
  kill -INT -- -$!; wait $!; rc=$?
  [ $rc = 130 ] && [ "$(cat err)" = "$says" ]
  ok $? "Ctrl-C in what ./$python does has one sentence"
done
set +m
printf '#!/bin/sh\n[ "$1" = -c ] || { printf "<%%s>" "$@" >given; exit 1; }\n' >writes; chmod +x writes
optimize OP=a.b:Class INPUT='float32[8,4] float32[4]' INIT='[4]' AXES=M=8 PYTHON=./writes "${here[@]}"
[ $rc = 1 ] && grep -q 'a.b:Class cannot be exported: Python ended with status 1' err &&
  grep -qF '<a.b:Class><--input><float32[8,4]><--input><float32[4]><--init><[4]><--axes><M=8><-o>' given
ok $? "INPUT, INIT and AXES reach the export"
printf '#!/bin/sh\n[ "$1" = -c ] && exit\n%s\n' \
  'echo "a warning" >&2; echo "export: line 3 has none; give --input X" >&2; exit 1' >refuses
chmod +x refuses
optimize OP=model.py PYTHON=./refuses "${here[@]}"
says=$reads$'\n''quern optimize: model.py cannot be exported: line 3 has none; give INPUT=X'
[ $rc = 1 ] && [ "$(cat err)" = "$says" ] && grep -q 'a warning' runs/model/export.err
ok $? "a refusal of the export is one sentence, in the words of make optimize"
printf '#!/bin/sh\n[ "$1" = -c ] && exit\nkill -ABRT $$\n' >aborts; chmod +x aborts
optimize OP=model.py PYTHON=./aborts "${here[@]}"
[ $rc = 1 ] && [ "$(wc -l <err)" = 2 ] && grep -q 'exported: Python ended with status 134' err
ok $? "so is a signal that ends Python"
printf '#!/bin/sh\n[ "$1" = -c ] && exit\n%s\n' \
  'echo "a warning" >&2; echo "export: note: found Block in m.py" >&2; echo x >"$4"' >finds
chmod +x finds; touch m.py
optimize OP=m.py:Block PYTHON=./finds "${here[@]}"
[ $rc = 1 ] && [ "$(sed -n 2p err)" = 'quern optimize: found Block in m.py' ] && [ -e runs/Block/Block.pt2 ]
ok $? "what the export found is told"
mkdir empty; optimize OP=empty/; [ $rc = 2 ] && grep -q 'has no task.json' err
ok $? "a folder without a task is refused"

optimize OP="$op" ROUNDS=2; [ $rc = 2 ] && grep -q 'ROUNDS is a setting of a model' err
ok $? "a setting of the training needs TRAIN=1"
says='quern optimize: BUDGTE: there is no such variable; did you mean BUDGET?'
for train in '' 1; do
  optimize OP="$op" BUDGTE=2m TRAIN=$train; [ $rc = 2 ] && [ "$(cat err)" = "$says" ]
  ok $? "a misspelt name is no setting of the training: TRAIN=$train"
done
optimize OP="$op" TOLERANCE=lots RUNS=runs
[ $rc != 0 ] && grep -q 'TOLERANCE: expected default' err
ok $? "a tolerance is a setting of the search"
optimize OP="$op" TRAIN=yes; [ $rc = 2 ] && grep -q 'TRAIN is 1 or nothing' err
ok $? "TRAIN is 1 or nothing"
optimize OP=model.py DEVICES=cuda:77 RUNS=runs
[ $rc = 2 ] && grep -q '^quern optimize: DEVICES=cuda:77: there is no cuda:77 here, but .*sim:h100 ' err &&
  [ "$(wc -l <err)" = 1 ]
ok $? "a device that is not there is named, before the module is read"
optimize OP=model.py DEVICES=sim:h100,sim:h1 RUNS=runs
[ $rc = 2 ] && grep -q 'there is no sim:h1 here, but ' err && [ "$(wc -l <err)" = 1 ]
ok $? "so is a simulator"
optimize OP="$op" DEVICE=cuda:77 RUNS=runs; [ $rc = 2 ] && grep -q 'there is no cuda:77 here' err
ok $? "DEVICE is DEVICES"

# ---- the search ----
cp "$root/tests/fixtures/import/row.pt2" row.pt2
row=(OP=row.pt2 SHAPES=rows=4096) # so many that a library keeps the product
optimize "${row[@]}" "${here[@]}" BUDGET=9m
[ $rc = 0 ] && [ -s runs/row/row/package.json ] && grep -q '^package: runs/row/row$' out
ok $? "a search ends in a package"
says='relu, group_norm, mul become 1 kernel; a library keeps linear, .* the bound is [.0-9]* us (the model'
head -1 err | grep -q "$says"
ok $? "the first line says what becomes a kernel, what stays a library's, and the bound"
grep -q 's: [1-9][.0-9]*x eager, torch.compile was not measured' err; ok $? "a rise is said beside eager"
[ "$(grep -c ' become 1 kernel' err)" = 1 ]; ok $? "the module is described once"
head -1 runs/row/search/report.txt | grep -q '^row on sim:h100: [1-9][.0-9]*x eager'
ok $? "the report begins with the operator and its best kernel"
[ "$(grep -c '	ok	' runs/row/search/verdicts.tsv)" -ge 8 ] &&
  grep -q '//@ schedule mul_1 .*;' runs/row/search/verdicts.tsv
ok $? "all verdicts are kept, with their schedules"
"$BUILD/bin/quern-kernel" --task row --task-root runs/row/tasks --schedule runs/row/search/best.cu |
  cmp - runs/row/search/best.cu && cmp runs/row/search/best.cu runs/row/row/kernel.cu
ok $? "the best kernel follows from its schedule, and is the package's"
mkdir ranked
QUERN_TASKS=$PWD/runs/row/tasks "$BUILD/bin/quern-fleet" run --dir runs/row/queue \
  --devices sim:h200,sim:h100 -- "$BUILD/bin/quern-tune" --task row \
  --task-root runs/row/tasks --device sim:h100 --ranks sim:h200 --most 12 \
  --output ranked >out 2>err && grep -q '^  12 kernels were ranked by sim:h200 first' ranked/report.txt &&
  [ "$(grep -c '	ok	' ranked/verdicts.tsv)" -ge 9 ]
ok $? "the first kernel and those that a simulator predicts to be the fastest are judged"
cp runs/row/search/best.cu before.cu; cp runs/row/search/verdicts.tsv before.tsv
inode=$(stat -c %i runs/row/row)
optimize "${row[@]}" "${here[@]}" BUDGET=9m
[ $rc = 0 ] && cmp before.cu runs/row/search/best.cu && cmp before.tsv runs/row/search/verdicts.tsv &&
  [ "$inode" = "$(stat -c %i runs/row/row)" ] && ! grep -q '^task: runs/row/tasks/row' out
ok $? "the same command finds the same, and makes nothing again"
optimize "${row[@]}" TO=c "${here[@]}" BUDGET=9m; [ $rc = 1 ] &&
  grep -q 'the first kernel is no package: .* runs aten.linear.default: only a torch package' err &&
  grep -q 'not confirmed: .* runs aten.linear.default: only a torch package' err &&
  grep -q 'the fastest kernel, .*best.cu, is no package; ' err
ok $? "a package that a kernel cannot have is named"
optimize "${row[@]}" "${here[@]}" TO=torch RUN=other BUDGET=1s
[ $rc = 0 ] && [ -s runs/other/row/package.json ] && grep -q '^package: runs/other/row$' out
ok $? "a budget of a second ends with a package of the first kernel"
begins=$(head -1 runs/other/search/report.txt)
[[ $begins =~ ^row\ on\ .*[0-9]x\ eager ]]; ok $? "its report begins with what the package is worth" "$begins"
long=gate_norm_silu_bf16 # with many schedules
set -m # without it, what runs in the background ignores the signal
"$root/mk/optimize" optimize "$BUILD" - make OP="$root/tasks/composed/$long" "${here[@]}" \
  RUN=broken >out 2>err &
wait_for "[ -e runs/broken/$long/package.json ] && [ -e runs/broken/search/best.cu ]"
kill -INT -- -$!; wait $!; rc=$?
set +m
[ $rc = 0 ] && grep -q "^package: runs/broken/$long$" out && grep -q 'search ended: it was stopped' err &&
  cmp runs/broken/packaged.cu runs/broken/$long/kernel.cu
ok $? "Ctrl-C ends the search with the best kernel so far"
optimize OP="$root/tasks/relu" RUN=row "${here[@]}"
[ $rc = 2 ] && grep -q 'the run runs/row is of .*row.pt2; choose another name' err
ok $? "another operator does not take the run"
cp "$root/tests/fixtures/import/causal.pt2" row.pt2
optimize OP=row.pt2 "${here[@]}" BUDGET=1s; grep -q '^task: runs/row/tasks/row' out &&
  grep -q tril runs/row/tasks/row/task.json
ok $? "a changed archive is imported again"
optimize OP="$root/tasks/kernelbench/level1/k1_97_scaleddotproductattention" "${here[@]}"
[ $rc = 1 ] && [ "$(wc -l <err)" = 1 ] && [ ! -e runs/k1_97*/search/verdicts.tsv ] &&
  grep -q 'by library calls: scaled_dot_product_attention, 9.% of the time, at [0-9]*% of the peak of ' err
ok $? "where a library call takes all of the time it says so, and judges nothing"
optimize OP="$root/tasks/row_sum" "${here[@]}"
[ $rc = 1 ] && [ "$(cat err)" = 'quern optimize: task row_sum has no graph' ]
ok $? "a task that the generator cannot write is refused in a sentence"

# ---- a model's training, after the search ----
optimize OP="$root/tests/fixtures/import/row.pt2" RUN=trained "${small[@]}" TRAIN=1 BUDGET=40m
[ $rc = 0 ] && [ -s runs/trained/report.html ] && [ -s runs/trained/collect/pool.qa ] &&
  grep -q '^package: runs/trained/row$' out
ok $? "TRAIN=1 trains a model"
done_testing
