#!/bin/bash
# The queue under SIGKILL of every process, stopped workers, an emptied server, dropped connections, and
# candidates that crash their evaluator. Each time the payload of the verdicts is as in an undisturbed
# run, each distinct job is finished once, and no process is left. TAP on stdout.
# limit: 1200
#
# On a busy machine any process may pause for seconds. A fault therefore waits for the state that it needs,
# and a run that ends before its faults is repeated. Leases have the usual 30 s except in the tests of an
# expired lease: a worker that waits for a core must not lose its jobs.
. "$(dirname "$0")/tap.sh"
need redis-server
logs=(log out err)
left_pattern='@(*quern-*|*redis-server*|*sh -c*|sleep*)'
queue() {
    QUERN_QUEUE=retry=${patience:-5} QUERN_REDIS=unix:$1/redis.sock "$BIN/quern-queue" "${@:2}" 2>/dev/null
}
status() { patience=0.1 queue $1 status --json | tr -d ' \n'; }
count() { status $1 | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"; }
running() { kill -0 $fleet 2>/dev/null; }
some_done() { wait_for "[ \"\$(count $1 done)\" -ge $2 ] 2>/dev/null || ! running" && running; }
cat >noop <<END
#!/bin/bash
exec "$BIN/quern-evald" --runner noop --deadline "\${DEADLINE:-60}" "\$@"
END
chmod +x noop
# fleet DIR COMMAND...: starts a fleet in the background; $fleet is its process
fleet() {
    local d=$1; shift
    "$BIN/quern-fleet" run --evaluator ./noop --workers "${WORKERS:-2}" --dir "$d" -- "$@" >out 2>log & \
        fleet=$!
}

# ---- 40 samples, 30 distinct jobs of 80 ms, one answer without code ----
{ for i in $(seq 30); do printf 'relu\t// selftest: sleep 0.08\\n// candidate %d\n' $i; done
  for i in $(seq 9); do printf 'relu\t// selftest: sleep 0.08\\n// candidate %d\n' $i; done
  printf 'relu\t\n'; } | "$here/make_samples.pl" >s.qa
"$BIN/quern-fleet" run --evaluator ./noop --workers 2 --dir calm -- sh \
    -c "'$BIN/quern-evaluate' s.qa --output calm.qa && '$BIN/quern-queue' status --json >status" >out 2>log
s=$?
want=$(digest calm.qa)
[ $s = 0 ] && [ -n "$want" ] && tr -d ' \n' <status | grep -q '"waiting":0,"leased":0,"done":30,"dead":0'
ok $? 'undisturbed: 40 samples are 30 jobs, each done once'
"$BIN/quern-artifact" export calm.qa | tail -1 |
    grep -q '"message":"the answer holds no code.*"outcome":"plan_error"'
ok $? 'an answer without code gets its verdict'
none_left; ok $? 'no process is left'
"$BIN/quern-fleet" run --evaluator ./noop --workers 0 --dir calm -- "$BIN/quern-evaluate" s.qa \
    --output again.qa >out 2>log; s=$?
[ $s = 0 ] && [ "$(digest again.qa)" = "$want" ]
ok $? 'the next run finds the jobs done, without an evaluator'

# finish NAME: checks that the fleet ends with the calm run's verdicts and 30 jobs done once
finish() {
    wait $fleet; local s=$?
    [ $s = 0 ] && [ "$(digest $1.qa)" = "$want" ]; ok $? "$1: the verdicts are the same bytes"
    tr -d ' \n' <$1.status | grep -q '"waiting":0,"leased":0,"done":30,"dead":0'
    ok $? "$1: every job done, none twice"
    none_left; ok $? "$1: no process is left"
}
evaluating() {
    fleet $1 sh -c "'$BIN/quern-evaluate' s.qa --output $1.qa && '$BIN/quern-queue' status --json >$1.status"
}


# strike NAME FAULTS [RUN]: starts a run and disturbs it. FAULTS NAME returns whether all faults hit the run
# before its end; if not, both are repeated.
strike() {
    local try
    for try in 1 2 3 4 5 6; do
        rm -rf $1 $1.*
        ${3:-evaluating} $1
        $2 $1 && break
        kill -TERM $fleet 2>/dev/null; wait $fleet; false
    done
    ok $? "$1: in the middle of the work"
}

# ---- kill -9 evaluators, at various moments ----
kill_workers() {
    local k p
    for k in 1 2 3 4; do
        some_done $1 $((k * 4)) || return
        sleep 0.0$k
        wait_for 'p=$(pgrep -P $fleet -f quern-evald | sed -n "$((k % 2 + 1))p"); [ -n "$p" ] || ! running'
        kill -9 $p 2>/dev/null || return
    done
}
strike workers kill_workers
finish workers

# ---- kill -9 the private server, twice ----
kill_server() {
    local k; for k in 1 2; do some_done $1 $((k * 5)) && kill -9 $(pgrep -P $fleet redis-server) || return
    sleep 0.1; done
}
strike server kill_server
finish server

# ---- the server hangs, an evaluator dies, then the server: the fleet must not wait for the server ----
hang_server() {
    local s
    some_done $1 5 && s=$(pgrep -P $fleet redis-server) && kill -STOP $s &&
        kill -9 $(pgrep -P $fleet -f quern-evald | head -1) || return
    sleep 0.3; kill -9 $s
}
strike hung hang_server
finish hung

# ---- a second start in the same directory: refused, and nothing of the first run is removed ----
start_again() {
    some_done $1 3 || return
    "$BIN/quern-fleet" run --workers 0 --dir $1 -- true >again.log 2>&1; refusals=$?
    QUERN_REDIS=unix:$tmp/$1/redis.sock "$BIN/quern-fleet" run --workers 0 --dir $1 -- true >>again.log 2>&1
    refusals+=$?
    running
}
strike second start_again
[ "$refusals" = 11 ] &&
    [ "$(grep -c "is in use by a run that is going on (process $fleet)" again.log)" = 2 ] &&
    [ -S second/redis.sock ]
ok $? 'second: it is refused, and the server of the first can be reached'
finish second

# ---- connections cut again and again, the functions gone, a pause ----
cut_off() {
    local k before
    some_done $1 2 || return
    for k in $(seq 15); do
        redis-cli -s $1/redis.sock client kill type normal skipme yes >/dev/null; sleep 0.03
    done
    redis-cli -s $1/redis.sock function flush >/dev/null
    queue $1 pause || return
    wait_for "[ \"\$(count $1 leased)\" = 0 ] || ! running"
    before=$(count $1 done); sleep 0.3
    held=$([ "$before" = "$(count $1 done)" ]; echo $?) waiting=$(count $1 waiting)
    queue $1 resume
    [ "$waiting" -gt 0 ] 2>/dev/null
}
strike clients cut_off
ok "$held" "clients: a pause holds ($waiting jobs wait)"
finish clients

# ---- FLUSHALL: the submitter puts the jobs back ----
flush() {
    some_done $1 5 && redis-cli -s $1/redis.sock flushall >/dev/null &&
        wait_for 'grep -q "has lost jobs" log || ! running'; grep -q 'has lost jobs' log
}
strike flush flush
wait $fleet; s=$?
[ $s = 0 ] && [ "$(digest flush.qa)" = "$want" ]; ok $? 'flush: the verdicts are the same bytes'

# ---- kill -9 the submitter; run it again ----
twice() {
    fleet $1 sh \
        -c "'$BIN/quern-evaluate' s.qa --output $1.qa; echo \$? >$1.rc
            '$BIN/quern-evaluate' s.qa --output $1.qa && '$BIN/quern-queue' status --json >$1.status"
}
kill_submitter() {
    some_done $1 8 && kill -9 $(ours quern-evaluate) 2>/dev/null && wait_for "[ -s $1.rc ]" &&
        [ "$(cat $1.rc)" = 137 ]
}
strike submitter kill_submitter twice
finish submitter

# ---- Ctrl-C on the submitter: journal kept, 128+2, and the rerun uses it ----
once() { fleet $1 sh -c "'$BIN/quern-evaluate' s.qa --output $1.qa; echo \$? >$1.rc"; }
interrupt() {
    some_done $1 8 && kill -INT $(ours quern-evaluate) 2>/dev/null && { wait $fleet; [ ! -e $1.qa ]; }
}
strike keep interrupt once
[ "$(cat keep.rc)" = 130 ] && [ -s keep.qa.journal ] && [ ! -e keep.qa ]
ok $? 'Ctrl-C keeps the journal and exits 130'
"$BIN/quern-fleet" run --evaluator ./noop --workers 2 --dir fresh -- sh \
    -c "'$BIN/quern-evaluate' s.qa --output keep.qa && '$BIN/quern-queue' status --json" >out 2>log
[ "$(digest keep.qa)" = "$want" ] && [ ! -e keep.qa.journal ] &&
    [ "$(tr -d ' \n' <out | sed -n 's/.*"done":\([0-9]*\).*/\1/p')" -lt 30 ]
ok $? 'the rerun continues from the journal'

# ---- kill -9 the fleet: the next run gets the leased jobs at once ----
kill_fleet() { some_done $1 6 && kill -9 $fleet && { wait $fleet 2>/dev/null; [ ! -e $1.status ]; }; }
strike whole kill_fleet
none_left; ok $? 'fleet killed with -9: no process is left'
evaluating whole
finish whole

# ---- stop signals: forwarded to the command, exit status 128+n, everything ends ----
ready() { wait_for '[ -e ready ]'; rm -f ready; }
fleet int sh -c 'trap "echo got; exit 9" INT; : >ready; while :; do sleep 0.05; done'
ready; kill -INT $fleet; wait $fleet; s=$?
[ $s = 9 ] && grep -q got out; ok $? "Ctrl-C goes to the command, whose status is the fleet's"
fleet int sh -c 'trap "" INT; : >ready; sleep 90'
ready; kill -INT $fleet; wait_for "grep -q 'again to end at once' log"; kill -INT $fleet; wait $fleet; s=$?
[ $s = 130 ]; ok $? 'a second Ctrl-C ends it at once'
sleep 90 & parent=$!
"$BIN/quern-fleet" run --workers 0 --dir int --parent $parent -- sh -c ': >ready; exec sleep 90' >out 2>log \
    & fleet=$!
ready; kill -9 $parent; wait $parent 2>/dev/null; wait $fleet; s=$?
[ $s = 143 ] && grep -q "process $parent has ended" log; ok $? 'the end of its --parent ends it'
none_left; ok $? 'signals: no process is left'

# ---- workers of other hosts: only an expired lease shows that they are gone ----
export QUERN_QUEUE=lease=2
WORKERS=0 fleet hosts sleep 1800
wait_for '[ -S hosts/redis.sock ] && [ -n "$(status hosts)" ]'
export QUERN_REDIS=unix:$tmp/hosts/redis.sock
for try in 1 2 3 4 5 6; do
    ./noop --device sim:h100 2>a.log & a=$!
    "$BIN/quern-evaluate" s.qa --output hosts.qa >/dev/null 2>err & e=$!
    some_done hosts 3
    until kill -STOP $a; [ "$(count hosts leased)" = 1 ] || [ "$(count hosts done)" = 30 ]; do
        kill -CONT $a; sleep 0.03
    done
    [ "$(count hosts leased)" = 1 ] && break
    kill -CONT $a; kill -TERM $a; wait $a $e
    "$BIN/quern-queue" purge; rm -f hosts.qa; false
done
ok $? 'a worker is stopped with a job in its hands'
./noop --device sim:h100 2>b.log & b=$!
wait $e; s=$?
[ $s = 0 ] && [ "$(digest hosts.qa)" = "$want" ] && [ "$(count hosts done)" = 30 ]
ok $? 'a job past its lease is done by another worker'
kill -CONT $a; kill -TERM $a; wait $a; s=$?
[ $s = 0 ] && tr -d ' \n' <<<"$(status hosts)" | grep -q '"waiting":0,"leased":0,"done":30,"dead":0'
ok $? 'a worker that woke after its lease changes nothing'
stream() { redis-cli -s $1/redis.sock --scan --pattern '{quern.*}:s:sim:h100'; }
"$BIN/quern-queue" pause
printf 'relu\t// gone %d\n' 1 2 3 | "$here/make_samples.pl" >gone.qa
"$BIN/quern-evaluate" gone.qa --output gone.out 2>err & e=$!
wait_for '[ "$(count hosts waiting)" = 3 ]'; redis-cli -s hosts/redis.sock del $(stream hosts) >/dev/null
"$BIN/quern-queue" resume
wait_for '! kill -0 $e 2>/dev/null'; ended=$?; kill $e 2>/dev/null; wait $e; s=$?
[ $s$ended = 00 ] && [ "$(count hosts done)" = 33 ]; ok $? 'jobs whose stream was deleted are put back'
printf 'relu\t// selftest: sleep 3\n' | "$here/make_samples.pl" >long.qa
"$BIN/quern-evaluate" long.qa --output long.out --seed 5 2>/dev/null & e=$!
# 3 idle for ms, 4 deliveries
lease() {
    redis-cli -s hosts/redis.sock xpending $(stream hosts) workers - + 1 | tr '\n' ' ' | cut -d' ' -f"$1"
}
wait_for '[ "$(count hosts leased)" = 1 ]'
longest=0
wait_for 'idle=$(lease 3); [ -z "$idle" ] || [ "$idle" -lt $longest ] || ! longest=$idle'
[ -n "$idle" ] && [ "$(lease 4)" = 1 ]; ok $? 'a lease is renewed while its job runs'
# A machine that pauses for the five seconds that the job has after SIGTERM gives it back: then once more.
for try in 1 2 3 4 5; do
    kill -TERM $b; wait $b; s1=$?
    [ "$(count hosts done)" != 34 ] || break
    ./noop --device sim:h100 2>b.log & b=$!
    wait_for '[ "$(count hosts leased)" = 1 ]'
done
[ "$(count hosts done)" = 34 ] || kill $e; kill $b 2>/dev/null; wait $e; s=$?
[ $s1$s = 00 ] && [ "$(count hosts done)" = 34 ]; ok $? 'SIGTERM drains: the job in work is finished'

# ---- candidates that crash the evaluator, hang, or make it fail ----
{
    printf 'relu\t// selftest: crash\nrelu\t// selftest: hang\nrelu\t// selftest: fail\nrelu\tfine\n'
} | "$here/make_samples.pl" >poison.qa
DEADLINE=4 QUERN_QUEUE=lease=0.6 ./noop --device sim:h100 2>a.log & a=$!
"$BIN/quern-evaluate" poison.qa --output poison.out 2>err; s=$?
"$BIN/quern-artifact" export poison.out | sed 's/.*"message":"\([^"]*\)".*/\1/' >messages
[ $s = 0 ] && [ "$(cat messages)" = "the evaluator died each time it judged this candidate
the evaluation took longer than 4 s and was stopped
noop
noop" ] && [ "$(count hosts dead)" = 3 ] && [ "$(count hosts done)" = 35 ]
ok $? 'crash, hang and failure end dead, with a verdict; their neighbour is done'
[ "$(grep -c 'delivery [123]:' a.log)" = 3 ]
ok $? 'a candidate that kills its evaluator is tried three times'
"$BIN/quern-queue" retry | grep -q '^3 dead jobs put back'; ok $? 'retry revives the dead'
wait_for '[ "$(count hosts dead)" = 3 ]'; ok $? 'revived jobs that fail die again'
kill -9 $a; wait $a 2>/dev/null

# ---- an emptied server, and a stage that waits for its jobs ----
"$BIN/quern-collect" --output collect.qa --tasks relu --teachers generator --trials 1 --keep 1 \
    --device sim:h100 2>err & e=$!
wait_for '[ "$(count hosts waiting)" -ge 1 ]' && "$BIN/quern-queue" purge
./noop --device sim:h100 2>c.log & c=$!
wait $e; s=$?
[ $s = 0 ] && grep -q 'the queue has lost jobs' err; ok $? 'jobs that an emptied server lost are put back'
kill -TERM $c; wait $c
unset QUERN_REDIS QUERN_QUEUE
kill -TERM $fleet; wait $fleet
none_left; ok $? 'hosts: no process is left'

# ---- the private server's directory: long names, torn and damaged files, two fleets ----
deep=$(printf 'a%.0s' $(seq 120)); mkdir "$deep"
"$BIN/quern-fleet" run --workers 0 --dir "$deep" -- sh -c 'echo $QUERN_REDIS' >out 2>log; s=$?
[ $s = 0 ] && grep -q '^unix:/tmp/quern-' out && [ ! -e "$(sed 's/unix://' out)" ] &&
    [ ! -d "$(sed 's/unix:\(.*\)\/.*/\1/' out)" ]
ok $? 'a long path gets a short socket, which is removed'
aof=$(ls calm/appendonlydir/*.incr.aof); truncate -s -7 $aof
"$BIN/quern-fleet" run --workers 0 --dir calm -- "$BIN/quern-queue" status --json >out 2>log; s=$?
[ $s = 0 ] && grep -q '"done": [23][0-9]' out; ok $? 'a torn file of changes is cut'
rm -rf calm/redis.log; mkdir calm/redis.log
"$BIN/quern-fleet" run --workers 0 --dir calm -- true >out 2>log; s=$?
rmdir calm/redis.log; mkdir killed; printf '#!/bin/sh\nkill -9 $$\n' >killed/redis-server
chmod +x killed/redis-server
PATH=$tmp/killed:$PATH "$BIN/quern-fleet" run --workers 0 --dir calm -- true >out 2>>log; s+=$?
"$BIN/quern-fleet" run --workers 0 --dir calm -- "$BIN/quern-queue" status --json >out 2>>log
[ $s = 33 ] && ! ls calm | grep -q damaged && grep -q '"done": [23][0-9]' out
ok $? 'a server that cannot start for another reason, or is killed as it starts: the data stay'
printf garbage | dd of=$aof bs=1 conv=notrunc 2>/dev/null
"$BIN/quern-fleet" run --workers 0 --dir calm -- true >out 2>log; s=$?
[ $s = 0 ] && grep -q 'could not be read; they are kept as .*damaged-1' log
ok $? 'a damaged file of the queue is put aside, and that is said'
"$BIN/quern-fleet" run --workers 0 --dir calm -- false >out 2>log; [ $? = 1 ]
ok $? "the command's failure is the fleet's"
"$BIN/quern-fleet" run --workers 0 --dir calm -- ./absent >out 2>log
[ $? = 127 ] && grep -q 'cannot run ./absent' log
ok $? "a fleet's command that is not there is said"
mkdir nothing; PATH=$tmp/nothing "$BIN/quern-fleet" run --workers 0 --dir calm -- true >out 2>log; s=$?
[ $s = 3 ] && [ "$(wc -l <log)" = 1 ] && grep -q 'there is no redis-server' log
ok $? 'no redis-server: one sentence'
"$BIN/quern-evaluate" s.qa --output none.qa 2>log; s=$?
[ $s = 2 ] && [ "$(wc -l <log)" = 1 ] && grep -q 'quern-fleet run' log; ok $? 'no queue: one sentence'
"$BIN/quern-evaluate" s.qa --output none.qa --redis redis://u:secret@h 2>log; s=$?
[ $s = 2 ] && ! grep -q secret log; ok $? 'a password in an argument is refused, and not repeated'
none_left; ok $? 'no process is left at the end'
done_testing
