#!/bin/bash
# What every program has in common: --help, --version, wrong flags, files and tasks that are not there,
# Ctrl-C. TAP on stdout.
. "$(dirname "$0")/tap.sh"
export QUERN_LOG=quiet
# Stricter than in tap.sh: stdout is empty, too.
# PROGRAM WORDS
sentence() { [ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -q "^$1: " err && grep -qF -- "$2" err; }

for path in "$BIN"/quern-*; do
    case $path in *.tmp) continue ;; esac
    p=${path##*/}
    run "$p" --help
    [ $rc = 0 ] && grep -q "^usage: $p" out && [ ! -s err ]; ok $? "$p --help"
    run "$p" --version
    [ $rc = 0 ] && grep -qx "$p [0-9.]*" out && [ ! -s err ]; ok $? "$p --version"
    run "$p" --no-such-flag
    [ $rc = 2 ] && sentence "$p" "'--no-such-flag'"; ok $? "$p refuses an unknown flag"
    run "$p" --help
    cp out long; awk 'length > 100 { exit 1 }' long; ok $? "$p --help has lines of at most 100 columns"
    run "$p" -h
    [ $rc = 0 ] && cmp -s out long && [ ! -s err ]; ok $? "$p -h is --help"
    if [ -w /dev/full ]; then
        "$BIN/$p" --help >/dev/full 2>err; rc=$?; : >out
        [ $rc = 3 ] && sentence "$p" 'No space left'
        ok $? "$p --help: a full disk behind stdout is a failure"
    fi
    # The first flag of the help, twice, with a value that it takes. Where it has none, there is no flag to
    # repeat.
    twice=($(awk '
        /^  (-o, )?--/ && !/--(help|version)$/ { sub(/^  (-o, )?/, ""); flag = $1; value = $2;
            getline help; exit }
        END {
            if (value == "TEXT" && match(help, /: [a-z0-9.-]+\|/))
                word = substr(help, RSTART + 2, RLENGTH - 3)
            else if (value == "TEXT") word = "x"
            else if (match(help, /default [0-9.e-]+/)) word = substr(help, RSTART + 8, RLENGTH - 8)
            if (flag) print flag, word, flag, word
        }' long))
    if [ ${#twice[@]} != 0 ]; then
        run "$p" "${twice[@]}"
        [ $rc = 2 ] && sentence "$p" "${twice[0]} is given twice"; ok $? "$p refuses ${twice[0]} given twice"
    fi
    run "$p" -x
    [ $rc = 2 ] && sentence "$p" "'-x'"; ok $? "$p refuses a short flag"
    # 3000 words, without the flags that are required: a crash would be another status.
    run "$p" $(seq 3000)
    [ $rc = 2 ] && sentence "${p%-config}" ''; ok $? "$p refuses 3000 words"
done

# A file that is not there is named in one sentence; nothing is written.
absent() { # STATUS PROGRAM ARGUMENTS, with the file absent.qa or absent.cu
    local status=$1 p=$2
    run "$p" "${@:3}"
    [ $rc = "$status" ] && sentence "$p" absent. && grep -q 'No such file' err && [ ! -e new.qa ] &&
        [ ! -e new ]
    ok $? "$p names a file that is not there"
}
absent 2 quern-artifact show absent.qa
absent 2 quern-artifact validate absent.qa
absent 2 quern-artifact export absent.qa
absent 2 quern-artifact diff absent.qa absent.qa
absent 2 quern-evaluate absent.qa -o new.qa
absent 2 quern-filter --samples absent.qa --verdicts absent.qa --output new.qa
absent 2 quern-sft --dataset absent.qa --output new
absent 2 quern-selfsup --samples absent.qa --verdicts absent.qa --base new --output new
absent 2 quern-crl --samples absent.qa --verdicts absent.qa --base new --output new
absent 2 quern-prompt --pool absent.qa --output new.qa
absent 2 quern-sample --policy new --prompts absent.qa --output new.qa
absent 2 quern-pool --samples absent.qa --verdicts absent.qa --output new.qa
absent 2 quern-results --samples absent.qa --output new.qa absent.qa
absent 2 quern-eval --task relu absent.cu
absent 2 quern-compile absent.cu

# A folder where a file is expected, as input and as output.
mkdir folder
echo >some.cu
for words in 'artifact show' 'evaluate -o new.qa' 'derive -o new' 'import -o new' 'eval --task relu' compile \
    'why relu' 'export --task relu --to c -o new' 'sft --output new --dataset' 'join -o new.qa' \
    'calibrate --measured folder' 'prompt --tasks relu -o'; do
    run quern-$words folder
    [ $rc = 2 ] && sentence "quern-${words%% *}" folder && [ ! -e new.qa ] && [ ! -e new ]
    ok $? "quern-${words%% *} refuses a folder for a file"
done
run quern-kernel --task relu --seed 1 --output some.cu
[ $rc = 2 ] && sentence quern-kernel some.cu; ok $? 'a file for a folder'

# A task that is not there.
unknown_task() { # STATUS PROGRAM ARGUMENTS
    local status=$1 p=$2
    run "$p" "${@:3}"
    [ $rc = "$status" ] && sentence "$p" nonesuch && [ ! -e new.qa ]
    ok $? "$p names a task that is not there"
}
unknown_task 2 quern-collect --tasks relu,nonesuch --output new.qa
unknown_task 2 quern-filter --tasks nonesuch --samples absent.qa --verdicts absent.qa --output new.qa
unknown_task 2 quern-prompt --tasks nonesuch --output new.qa
unknown_task 2 quern-results --tasks nonesuch --samples absent.qa --output new.qa absent.qa
unknown_task 2 quern-eval --task nonesuch some.cu
unknown_task 2 quern-kernel --task nonesuch
unknown_task 2 quern-evalbench nonesuch
mkdir -p elsewhere && cp -r "$root/tasks/relu" "$root/tasks/composed/relu_softmax" elsewhere
run quern-eval --task elsewhere/relu/ "$root/tasks/relu/baseline.cu"
[ $rc = 0 ] && grep -q '^relu on sim:h100: ok' out; ok $? "--task may be the path of a task's folder"
run quern-kernel --task elsewhere/relu_softmax --schedule '//@ schedule y route=tensor'
[ $rc = 1 ] && sentence quern-kernel 'schedule of y: route=tensor is no choice there'
ok $? 'a gene that a kernel does not have is named by its word'
run quern-kernel --task relu --task-root nonesuch
[ $rc = 2 ] && sentence quern-kernel nonesuch; ok $? 'quern-kernel names a task root that is not there'

# Values.
run quern-prompt --groups many --output new.qa
[ $rc = 2 ] && sentence quern-prompt "--groups expects an integer, found 'many'"
ok $? "a flag's number that is none is refused"
run quern-prompt --groups 0 --output new.qa
[ $rc = 2 ] && sentence quern-prompt 'from 1 to'; ok $? "a flag's number out of range is refused"
run quern-prompt --rule nonesuch --output new.qa
[ $rc = 2 ] && sentence quern-prompt bucket; ok $? 'a choice that is none lists the choices'
run quern-prompt
[ $rc = 2 ] && sentence quern-prompt '--output is required'; ok $? 'a missing flag that is needed is named'
run quern-prompt --output
[ $rc = 2 ] && sentence quern-prompt '--output expects a value'; ok $? 'a flag without its value is refused'
run quern-pool --samples absent.qa --output new.qa
[ $rc = 2 ] && sentence quern-pool 'go together'; ok $? 'a flag without the one that it goes with is refused'
run quern-collect --teachers nonesuch --output new.qa
[ $rc = 2 ] && sentence quern-collect nonesuch; ok $? 'an unknown teacher'
run quern-queue status
[ $rc = 2 ] && sentence quern-queue QUERN_REDIS &&
    grep -qF -- '--redis unix:$PWD/runs/RUN/queue/redis.sock' err
ok $? 'no queue: what to do is said, and where that of a run is'

run quern-prompt --seed 1 -o new.qa --seed=2
[ $rc = 2 ] && sentence quern-prompt '--seed is given twice'
ok $? 'a flag given twice, in both forms, is refused'
run quern-prompt -o new.qa --output new.qa
[ $rc = 2 ] && sentence quern-prompt '--output is given twice'
ok $? '-o beside --output is a flag given twice'
run quern-queue status --json --json
[ $rc = 2 ] && sentence quern-queue '--json is given twice'
ok $? 'a flag without a value, given twice, is refused'
run quern-evaluate absent.qa -o new.qa --device sim:h100,sim:l40 --second-wait 1
[ $rc = 2 ] && sentence quern-evaluate '--second-wait has no effect'
ok $? 'a flag without effect on simulators is refused'
run quern-sample --policy openai:m --engine auto --prompts absent.qa -o new.qa
[ $rc = 2 ] && sentence quern-sample '--engine is of a model here'
ok $? 'a flag without effect on an endpoint is refused'
run quern-sample --policy new --concurrency 2 --prompts absent.qa -o new.qa
[ $rc = 2 ] && sentence quern-sample '--concurrency is of an endpoint'
ok $? 'a flag without effect on a model here is refused'
run quern-task list --task-root new
[ $rc = 2 ] && sentence quern-task new; ok $? '--task-root is the folder of the tasks'

# The same command again does nothing, and says so; another flag does the work again; a full disk is one
# sentence.
unset QUERN_LOG
run quern-prompt --tasks relu -o new.qa
[ $rc = 0 ] && [ -s new.qa ]; ok $? '-o is --output'
before=$(stat -c %i new.qa)
run quern-prompt --tasks relu --output=new.qa
[ $rc = 0 ] && grep -q same err && [ "$(stat -c %i new.qa)" = "$before" ]
ok $? 'an output of the same words is not made again'
run quern-prompt --tasks relu --output new.qa --seed 2
[ $rc = 0 ] && ! grep -q same err && [ "$(stat -c %i new.qa)" != "$before" ]
ok $? 'an output of another seed is made'
if [ -w /dev/full ]; then
    "$BIN/quern-artifact" export new.qa >/dev/full 2>err; rc=$?; : >out
    [ $rc = 3 ] && sentence quern-artifact 'No space left'; ok $? 'a full disk behind stdout is a failure'
fi

# Ctrl-C: the stage keeps its journal, says how to go on and exits 128+n; a second one ends it at once.
export BIN
export -f wait_for
stop_collect() { # SIGNAL: a collection that nobody judges, stopped
    "$BIN/quern-fleet" run --workers 0 --dir q -- bash -c '
        "$BIN/quern-collect" --tasks relu --trials 4 --output collected.qa 2>err & pid=$!
        wait_for "[ \"\$(stat -c %s collected.qa.journal 2>/dev/null || echo 0)\" -gt 1000 ]"
        sleep 0.2; kill -'"$1"' $pid; wait $pid' >out 2>fleet.err
    rc=$?
}
stop_collect INT
[ $rc = 130 ] && grep -q '^quern-collect: stopped.*the same command continues' err &&
    [ -s collected.qa.journal ] && [ ! -e collected.qa ]
ok $? 'Ctrl-C keeps the journal and exits 130'
stop_collect TERM
[ $rc = 143 ] && [ -s collected.qa.journal ]; ok $? 'SIGTERM keeps the journal and exits 143'
setsid "$BIN/quern-fleet" run --workers 1 --dir q -- sleep 1000 >out 2>err &
pid=$!
wait_for '[ "$(pgrep -P $pid | wc -l)" -ge 3 ]'
kids=$(pgrep -s "$(ps -o sid= -p $pid | tr -d ' ')" | tr '\n' ' ')
kill -INT $pid
wait $pid; rc=$?
alive() { # whether one of them is left
    local k
    for k in $kids; do [ ! -e "/proc/$k" ] || return 0; done
    return 1
}
wait_for '! alive' && [ $rc = 130 ]
ok $? "Ctrl-C on the fleet takes server, evaluators and command down ($(echo $kids | wc -w) processes)"
odd='a (1) "q"\ $b'
mkdir "$odd"; head -c 1100000 /dev/zero >"$odd/redis.log"
(trap '' HUP; exec "$BIN/quern-fleet" run --workers 0 --dir "$odd" -- bash -c 'kill -HUP $PPID $$; echo on') \
    >out 2>err
is 'what nohup has started goes on after SIGHUP, with odd marks in the folder' "$? $(cat out)" '0 on'
[ "$(stat -c %s "$odd/redis.log.1")" = 1100000 ] && [ "$(stat -c %s "$odd/redis.log")" -lt 100000 ]
ok $? 'the log of the private Redis is put aside above a megabyte'
done_testing
