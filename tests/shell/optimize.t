#!/bin/bash
# make optimize: from a task's folder to a package, the same command again, a budget that is too short, and
# mistakes. TAP on stdout.
# limit: 900
. "$(dirname "$0")/tap.sh"
export QUERN_LOG=info
optimize() { "$root/mk/optimize" optimize "$BUILD" - make "$@" >out 2>err; rc=$?; }
small=(PROFILE=smoke CLASSES=sim:h100 DEVICES=sim:h100 'COLLECT=--trials 24 --keep 16'
  'SELFSUP_PROMPTS=--groups 1 --plain 1 --copies 2' 'PROMPTS=--groups 1 --plain 1 --copies 2'
  REPORT_SAMPLES=2 'SAMPLE=--max-new 40 --batch 64' SELFSUP_ROUNDS=1 ROUNDS=1
  "SFT=--plain-epochs 1 --epochs 1 --batch 8 --lr 1e-3" RUNS=runs)
# One core judges no 48 kernels in a second, however fast it is.
core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
short() {
  taskset -c "$core" "$root/mk/optimize" optimize "$BUILD" - make "$@" "${small[@]}" \
    'COLLECT=--trials 48 --keep 48' BUDGET=1s >out 2>err
  rc=$?
}
op=$root/tests/fixtures/op_lines/tasks/op_layer

optimize; [ $rc = 2 ] && grep -q '^quern optimize: OP is required' err; ok $? "OP is required"
optimize OP=none.py; [ $rc = 2 ] && grep -q 'cannot open none.py' err; ok $? "a missing file is named"
optimize OP="$op" TO=rust; [ $rc = 2 ] && grep -q 'TO is torch, c or flashinfer' err
ok $? "an unknown form is refused"
optimize OP="$op" BUDGET=h; [ $rc = 2 ] && grep -q 'BUDGET is a time' err
ok $? "a budget that is no time is refused"
optimize OP="$op" TASKS=relu; [ $rc = 2 ] && grep -q 'TASKS follows from OP' err
ok $? "TASKS follows from OP"
echo 'a note' >notes.txt; optimize OP=notes.txt; [ $rc = 2 ] && grep -q 'notes.txt: expected model.py' err
ok $? "another kind of file is refused"
head -c 1000 "$root/tests/fixtures/import/row.pt2" >cut.pt2; optimize OP=cut.pt2 RUNS=runs
[ $rc = 1 ] && grep -q '^quern-import: cut.pt2' err
ok $? "a damaged archive is refused"
printf '#!/bin/sh\nexit 1\n' >no-torch; chmod +x no-torch; touch model.py
optimize OP=model.py PYTHON=./no-torch RUNS=runs; [ $rc = 2 ] && grep -q './no-torch has no PyTorch' err
ok $? "a Python without PyTorch is named"
printf '#!/bin/sh\n[ "$1" = -c ] || kill -INT $$\n' >stopped; chmod +x stopped
optimize OP=model.py PYTHON=./stopped RUNS=runs
[ $rc = 130 ] && grep -q 'stopped; the same command goes on' err && [ ! -e runs/model/operator ]
ok $? "an export that is interrupted is no refusal"
printf '#!/bin/sh\n[ "$1" = %s ] || exit 0\ntouch begun; exec sleep 100\n' -c >probes
printf '#!/bin/sh\n[ "$1" != %s ] || exit 0\ntouch begun; exec sleep 100\n' -c >exports
chmod +x probes exports
set -m # Ctrl-C reaches a whole group of processes
for python in probes exports; do
  rm -f begun
  "$root/mk/optimize" optimize "$BUILD" - make OP=model.py PYTHON=./$python RUNS=runs >out 2>err &
  wait_for "[ -e begun ]"
  kill -INT -- -$!; wait $!; rc=$?
  [ $rc = 130 ] && [ "$(cat err)" = 'quern optimize: stopped; the same command goes on' ]
  ok $? "Ctrl-C in what ./$python does has one sentence"
done
set +m
printf '#!/bin/sh\n[ "$1" = -c ] || { printf "<%%s>" "$@" >given; exit 1; }\n' >writes; chmod +x writes
optimize OP=a.b:Class INPUT='float32[8,4] float32[4]' INIT='[4]' AXES=M=8 PYTHON=./writes RUNS=runs
[ $rc = 1 ] && grep -q 'a.b:Class cannot be exported: Python ended with status 1' err &&
  grep -qF '<a.b:Class><--input><float32[8,4]><--input><float32[4]><--init><[4]><--axes><M=8><-o>' given
ok $? "INPUT, INIT and AXES reach the export"
printf '#!/bin/sh\n[ "$1" = -c ] && exit\n%s\n' \
  'echo "a warning" >&2; echo "export: line 3 returns a dict" >&2; exit 1' >refuses
chmod +x refuses
optimize OP=model.py PYTHON=./refuses RUNS=runs
[ $rc = 1 ] && [ "$(cat err)" = 'quern optimize: model.py cannot be exported: line 3 returns a dict' ] &&
  grep -q 'a warning' runs/model/export.err
ok $? "a refusal of the export is one sentence"
printf '#!/bin/sh\n[ "$1" = -c ] && exit\n%s\n' \
  'echo "a warning" >&2; echo "export: note: found Block in m.py" >&2; echo x >"$4"' >finds
chmod +x finds; touch m.py
optimize OP=m.py:Block PYTHON=./finds RUNS=runs
[ $rc = 1 ] && [ "$(head -1 err)" = 'quern optimize: found Block in m.py' ] && [ -e runs/Block/Block.pt2 ]
ok $? "what the export found is told"
mkdir empty; optimize OP=empty/; [ $rc = 2 ] && grep -q 'has no task.json' err
ok $? "a folder without a task is refused"

short OP="$root/tasks/residual_rmsnorm/"
[ $rc = 1 ] && grep -q 'no kernel was judged' err
ok $? "nothing comes of a budget that is too short"
set -m # Ctrl-C reaches a whole group of processes
rm -f err # of the test before, which names a wave too
"$root/mk/optimize" optimize "$BUILD" - make OP="$root/tasks/residual_rmsnorm/" TO=c "${small[@]}" >out \
  2>err &
wait_for "grep -qs 'wave 1' err"
kill -INT -- -$!; wait $!; rc=$?
set +m
[ $rc = 130 ] && grep -q '^quern optimize: stopped; the same command goes on' err && ! grep -q '^package' out
ok $? "Ctrl-C stops the search"
optimize OP="$root/tasks/residual_rmsnorm/" TO=c "${small[@]}"
[ $rc = 0 ] && grep -q '^package: runs/residual_rmsnorm/residual_rmsnorm$' out
ok $? "the same command goes on to a package"
[ -s runs/residual_rmsnorm/residual_rmsnorm/residual_rmsnorm.c ] &&
  [ -s runs/residual_rmsnorm/residual_rmsnorm/verdict.json ] && [ -s runs/residual_rmsnorm/report.html ]
ok $? "package and report are there"
optimize OP="$root/tasks/residual_rmsnorm/" TO=torch "${small[@]}"
[ $rc = 0 ] && [ -s runs/residual_rmsnorm/residual_rmsnorm/package.json ]
ok $? "the same command writes another form"
grep -q 'is up to date' out err; ok $? "another form needs no other search"
optimize OP="$root/tasks/relu" RUN=residual_rmsnorm "${small[@]}"
[ $rc = 2 ] && grep -q 'the run runs/residual_rmsnorm is of .*residual_rmsnorm; choose another name' err
ok $? "another operator does not take the run"
cp "$root/tests/fixtures/import/row.pt2" row.pt2
short OP=row.pt2; [ $rc = 0 ] && [ -e runs/row/tasks/row/task.json ]
ok $? "an archive is imported"
[ -s runs/row/row/package.json ] && grep -q '^package: runs/row/row$' out
ok $? "a budget that is too short for a search leaves the package of the generator's kernel"
touch -d '+1 day' row.pt2; short OP=row.pt2
[ $rc = 0 ] && ! grep -q '^runs/row/tasks/row' out
ok $? "the same archive is not imported again"
cp "$root/tests/fixtures/import/causal.pt2" row.pt2; touch -d '-1 day' row.pt2
short OP=row.pt2; grep -q '^runs/row/tasks/row' out &&
  grep -q tril runs/row/tasks/row/task.json
ok $? "a changed archive is imported again"
set -m # without it, what runs in the background ignores the signal
"$root/mk/optimize" optimize "$BUILD" - make OP="$root/tests/fixtures/import/row.pt2" RUN=broken \
  "${small[@]}" >out 2>err &
# Most of the search is still to come, however slow this shell is.
wait_for '[ -e runs/broken/collect/samples.qa ]'
kill -INT -- -$!; wait $!; rc=$?
set +m
[ $rc = 130 ] && grep -q 'stopped; the same command goes on' err && [ -e runs/broken/row/package.json ]
ok $? "an interrupt in the search of an archive is said"
# A checkpoint is a part of a stage that is not done: it goes when the stage ends.
find runs/broken -name '*.qa' -type f ! -path '*.checkpoint/*' -exec md5sum {} + >sums
optimize OP="$root/tests/fixtures/import/row.pt2" RUN=broken "${small[@]}"
[ $rc = 0 ] && [ -s runs/broken/row/package.json ] && md5sum --quiet -c sums
ok $? "the same command goes on to the package, and keeps what was done"
optimize OP="$root/tasks/row_sum/" RUN=slow "${small[@]}" 'COLLECT=--trials 6 --keep 2'; [ $rc = 1 ] &&
  grep -q 'nothing faster than the baseline was found' err && [ ! -e runs/slow/row_sum/package.json ]
ok $? "where nothing is faster it says so, and writes no package"
done_testing
