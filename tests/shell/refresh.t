#!/usr/bin/env bash
# A finished run is not made again because files of its tasks have changed, unless that is asked for, and its
# report is kept. TAP on stdout.
. "$(dirname "$0")/tap.sh"
unset QUERN_TASKS TASKS RUN PROFILE CONFIG DEVICE DEVICES CLASSES
mkdir tasks
cp -r "$root"/tasks/{relu,gelu} tasks
config() {
    "$BIN/quern-config" PROFILE=smoke DEVICES=sim:h100 QUERN_TASKS=tasks RUNS=r RUN=a "$@" >out 2>err; rc=$?
    return $rc
}
finish() { echo "$1" >r/a/report.tsv; echo "page $1" >r/a/report.html; }

config --output=r/a/settings.mk &&
    grep -q '^override tasks_files := gelu/.*relu/task.json=[0-9a-f]\{12\}' r/a/settings.mk
ok $? 'the settings have a digest of each file'
echo '// more' >>tasks/relu/baseline.cu
config; ok $? 'an unfinished run goes on with the changed task'
config --output=r/a/settings.mk
rm -f r/a/report.*; finish one
config; ok $? 'a finished run whose tasks are the same has nothing to do'
config TASKS=relu; ok $? 'other tasks by TASKS are another matter'
echo '// yet more' >>tasks/relu/baseline.cu
again='RUN=NAME is another run, REFRESH=1 makes this one again'
config
[ $rc = 2 ] && sentence quern "r/a is finished, and since then relu/baseline.cu has changed: $again"
ok $? 'a file that has changed is named'
config TASKS=gelu; ok $? 'a changed file of a task that is left out is not named'
config RUN=b; ok $? 'another run may have the changed file'
mkdir tasks/softmax; cp "$root"/tasks/softmax/{task.json,reference.c,baseline.cu} tasks/softmax
rm tasks/relu/baseline.cu
config; [ $rc = 2 ] &&
    grep -q 'softmax/baseline.cu is new, softmax/reference.c is new, softmax/task.json is new, relu/b' err &&
    grep -q ', relu/baseline.cu is gone: ' err
ok $? 'a file that is new or gone is named'
for i in 1 2 3 4 5 6; do touch "tasks/gelu/$i.h"; done
config; grep -q 'and 5 more: RUN=' err; ok $? 'five changed files at most are named'
[ "$(cat r/a/report.tsv)" = one ] && [ ! -e r/a/report-1.tsv ]; ok $? 'a refused run writes nothing'
config REFRESH=1 && config REFRESH=1 --output=r/a/settings.mk &&
    [ "$(cat r/a/report-1.html)" = 'page one' ] && [ "$(cat r/a/report-1.tsv)" = one ]
ok $? 'REFRESH=1 goes on, and keeps the report'
config; ok $? 'the same command without REFRESH continues'
config --output=r/a/settings.mk; [ ! -e r/a/report-2.tsv ]; ok $? 'a report is kept once'
rm r/a/report.*; finish two
config --output=r/a/settings.mk && [ "$(cat r/a/report-2.tsv)" = two ] && [ "$(cat r/a/report-1.tsv)" = one ]
ok $? 'the next report is kept beside the first'
sed -i '/^override tasks_files/d' r/a/settings.mk; touch tasks/gelu/7.h
config; [ $rc = 2 ] && grep -q 'since then files of its tasks have changed' err
ok $? 'a run of before says that something has'
done_testing
