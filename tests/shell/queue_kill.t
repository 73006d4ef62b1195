#!/bin/bash
# The queue under kill -9 of everything, stopped workers, an emptied server, dropped connections and
# candidates that take their evaluator down. The oracle: the verdicts' payload is the one of an
# undisturbed run, each distinct job is finished once, and no process is left. TAP on stdout.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
BIN=$(cd "${QUERN_BUILD:-build}/bin" && pwd)
if ! command -v redis-server >/dev/null; then echo '1..0 # SKIP no redis-server in PATH'; exit 0; fi
tmp=$(mktemp -d)
cd "$tmp"
unset QUERN_REDIS
export QUERN_LEASE_S=0.6 QUERN_MARK=$tmp
n=0 failed=0
ok() { # ok STATUS NAME
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; return; fi
    echo "not ok $n - $2"; failed=1
    for f in log out err; do [ -s $f ] && sed "s/^/# $f: /" $f | tail -15; done
}
# Living processes that carry this test's mark, but this shell and its own helpers.
left() {
    local p
    for p in $(cd /proc && grep -lzxsF "QUERN_MARK=$tmp" [0-9]*/environ | cut -d/ -f1); do
        [ $p = $$ ] && continue
        case "$({ tr '\0' ' ' </proc/$p/cmdline; } 2>/dev/null)" in *quern-*|*redis-server*|*'sh -c'*|sleep*) echo $p ;; esac
    done
}
ours() { local p; for p in $(left); do [ "$(cat /proc/$p/comm 2>/dev/null)" = "$1" ] && echo $p; done; }
none_left() { local i; for i in $(seq 50); do [ -z "$(left)" ] && return 0; sleep 0.05; done
    for p in $(left); do echo "# left: $p $(tr '\0' ' ' </proc/$p/cmdline)"; done; return 1; }
trap 'for p in $(left); do kill -9 $p; done 2>/dev/null; rm -rf "$tmp"' EXIT
# Up to 20 s and more on a busy machine: a lost worker costs leases and a hang its whole deadline.
wait_for() { local i; for i in $(seq 1000); do eval "$1" && return 0; sleep 0.02; done; return 1; }
payload() { "$BIN/quern-artifact" validate "$1" 2>/dev/null | sed 's/.*payload //'; }
status() { QUERN_REDIS=unix:$1/redis.sock "$BIN/quern-queue" status --json 2>/dev/null | tr -d ' \n'; }
count() { status $1 | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"; }
some_done() { wait_for "[ \"\$(count $1 done)\" -ge ${2:-3} ] 2>/dev/null"; }
evalds() { pgrep -P "$1" -f quern-evald; }
cat >noop <<END
#!/bin/bash
exec "$BIN/quern-evald" --runner noop --deadline 2.5 "\$@"
END
chmod +x noop
# fleet DIR COMMAND...: in the background, \$fleet is its process
fleet() { local d=$1; shift; "$BIN/quern-fleet" run --evaluator ./noop --workers "${WORKERS:-2}" --dir "$d" -- "$@" >out 2>log & fleet=$!; }

# ---- 40 samples, 30 distinct jobs of 80 ms, one answer without code ----
{ for i in $(seq 30); do printf 'relu\t// selftest: sleep 0.08\\n// candidate %d\n' $i; done
  for i in $(seq 9); do printf 'relu\t// selftest: sleep 0.08\\n// candidate %d\n' $i; done
  printf 'relu\t\n'; } | "$here/make_samples.pl" >s.qa
"$BIN/quern-fleet" run --evaluator ./noop --workers 2 --dir calm -- sh -c "'$BIN/quern-evaluate' s.qa --output calm.qa && '$BIN/quern-queue' status --json >status" >out 2>log; s=$?
want=$(payload calm.qa)
[ $s = 0 ] && [ -n "$want" ] && tr -d ' \n' <status | grep -q '"waiting":0,"leased":0,"done":30,"dead":0'; ok $? 'undisturbed: 40 samples are 30 jobs, each done once'
"$BIN/quern-artifact" export calm.qa | tail -1 | grep -q '"message":"the answer holds no code".*"outcome":"plan_error"'; ok $? 'an answer without code gets its verdict'
none_left; ok $? 'no process is left'
"$BIN/quern-fleet" run --evaluator ./noop --workers 0 --dir calm -- "$BIN/quern-evaluate" s.qa --output again.qa >out 2>log; s=$?
[ $s = 0 ] && [ "$(payload again.qa)" = "$want" ]; ok $? 'the next run finds the jobs done, without an evaluator'

# finish NAME DIR: the fleet ends well, with the calm run's verdicts and 30 jobs done once
finish() {
    wait $fleet; local s=$?
    [ $s = 0 ] && [ "$(payload $1.qa)" = "$want" ]; ok $? "$1: the verdicts are the same bytes"
    tr -d ' \n' <$1.status | grep -q '"waiting":0,"leased":0,"done":30,"dead":0'; ok $? "$1: every job done, none twice"
    none_left; ok $? "$1: no process is left"
}
evaluating() { fleet $1 sh -c "'$BIN/quern-evaluate' s.qa --output $1.qa && '$BIN/quern-queue' status --json >$1.status"; }

# ---- kill -9 evaluators, at moments of all kinds ----
evaluating workers
for i in 1 2 3 4; do
    some_done workers $((i * 4))
    sleep 0.0$i
    kill -9 $(evalds $fleet | sed -n "$((i % 2 + 1))p") 2>/dev/null
done
finish workers

# ---- kill -9 the private server, twice ----
evaluating server
for i in 1 2; do some_done server $((i * 5)); kill -9 $(pgrep -P $fleet redis-server); sleep 0.1; done
finish server

# ---- connections cut again and again, the functions gone, a pause ----
evaluating clients
some_done clients 2
for i in $(seq 15); do redis-cli -s clients/redis.sock client kill type normal skipme yes >/dev/null; sleep 0.03; done
redis-cli -s clients/redis.sock function flush >/dev/null
QUERN_REDIS=unix:clients/redis.sock "$BIN/quern-queue" pause; sleep 0.3
before=$(count clients done); sleep 0.3; after=$(count clients done)
QUERN_REDIS=unix:clients/redis.sock "$BIN/quern-queue" resume
[ "$before" = "$after" ]; ok $? 'clients: a pause holds'
finish clients

# ---- FLUSHALL: the submitter puts the jobs back ----
evaluating flush
some_done flush 5; redis-cli -s flush/redis.sock flushall >/dev/null
wait $fleet; s=$?
[ $s = 0 ] && [ "$(payload flush.qa)" = "$want" ]; ok $? 'flush: the verdicts are the same bytes'

# ---- kill -9 the submitter; run it again ----
fleet submitter sh -c "'$BIN/quern-evaluate' s.qa --output submitter.qa; '$BIN/quern-evaluate' s.qa --output submitter.qa && '$BIN/quern-queue' status --json >submitter.status"
some_done submitter 8; kill -9 $(ours quern-evaluate)
finish submitter

# ---- Ctrl-C on the submitter: journal kept, 128+2, and the rerun uses it ----
fleet keep sh -c "'$BIN/quern-evaluate' s.qa --output keep.qa; echo \$? >keep.rc"
some_done keep 8; kill -INT $(ours quern-evaluate); wait $fleet
[ "$(cat keep.rc)" = 130 ] && [ -s keep.qa.journal ] && [ ! -e keep.qa ]; ok $? 'Ctrl-C keeps the journal and exits 130'
"$BIN/quern-fleet" run --evaluator ./noop --workers 2 --dir fresh -- sh -c "'$BIN/quern-evaluate' s.qa --output keep.qa && '$BIN/quern-queue' status --json" >out 2>log
[ "$(payload keep.qa)" = "$want" ] && [ ! -e keep.qa.journal ] && [ "$(tr -d ' \n' <out | sed -n 's/.*"done":\([0-9]*\).*/\1/p')" -lt 30 ]; ok $? 'the rerun continues from the journal'

# ---- kill -9 the fleet; what was in work is available at once to the next ----
evaluating whole
some_done whole 6; kill -9 $fleet; wait $fleet 2>/dev/null
none_left; ok $? 'fleet killed with -9: no process is left'
evaluating whole
finish whole

# ---- the same with signals: forwarded, 128+n, everything down ----
fleet int sh -c 'trap "echo got; exit 9" INT; while :; do sleep 0.05; done'
sleep 0.4; kill -INT $fleet; wait $fleet; s=$?
[ $s = 9 ] && grep -q got out; ok $? "Ctrl-C goes to the command, whose status is the fleet's"
fleet int sh -c 'trap "" INT; sleep 60'
sleep 0.4; kill -INT $fleet; sleep 0.2; kill -INT $fleet; wait $fleet; s=$?
[ $s = 130 ]; ok $? 'a second Ctrl-C ends it at once'
sleep 60 & parent=$!
"$BIN/quern-fleet" run --workers 0 --dir int --parent $parent -- sleep 60 >out 2>log & fleet=$!
sleep 0.3; kill -9 $parent; wait $parent 2>/dev/null; wait $fleet; s=$?
[ $s = 143 ] && grep -q "process $parent has ended" log; ok $? 'the end of its --parent ends it'
none_left; ok $? 'signals: no process is left'

# ---- workers of other hosts: only leases tell that they are gone ----
WORKERS=0 fleet hosts sleep 60
wait_for '[ -S hosts/redis.sock ]'; wait_for "status hosts >/dev/null"
export QUERN_REDIS=unix:$tmp/hosts/redis.sock
./noop --device sim:h100 2>a.log & a=$!
"$BIN/quern-evaluate" s.qa --output hosts.qa >/dev/null 2>err & e=$!
some_done hosts 3
kill -STOP $a                                    # a zombie: stopped past its lease
./noop --device sim:h100 2>b.log & b=$!
some_done hosts 20
kill -CONT $a; wait $e; s=$?
[ $s = 0 ] && [ "$(payload hosts.qa)" = "$want" ] && [ "$(count hosts done)" = 30 ]; ok $? 'a worker that woke after its lease changes nothing'
printf 'relu\t// selftest: sleep 2\n' | "$here/make_samples.pl" >long.qa
"$BIN/quern-evaluate" long.qa --output long.out --seed 5 2>/dev/null & e=$!
wait_for '[ "$(count hosts leased)" = 1 ]'; sleep 1
[ "$(count hosts leased)" = 1 ]; ok $? 'a lease is renewed while its job runs'
kill -TERM $a $b; wait $a; s1=$?; wait $b; s2=$?; wait $e; s=$?
[ $s1$s2$s = 000 ] && [ "$(count hosts done)" = 31 ]; ok $? 'SIGTERM drains: the job in work is finished'

# ---- candidates that take the evaluator down, hang, or make it fail ----
{ printf 'relu\t// selftest: crash\nrelu\t// selftest: hang\nrelu\t// selftest: fail\nrelu\tfine\n'; } | "$here/make_samples.pl" >poison.qa
./noop --device sim:h100 2>a.log & a=$!
"$BIN/quern-evaluate" poison.qa --output poison.out 2>err; s=$?
"$BIN/quern-artifact" export poison.out | sed 's/.*"message":"\([^"]*\)".*/\1/' >messages
[ $s = 0 ] && [ "$(cat messages)" = "the evaluator died each time it judged this candidate
the evaluation took longer than 2.5 s and was stopped
noop
noop" ] && [ "$(count hosts dead)" = 3 ] && [ "$(count hosts done)" = 32 ]; ok $? 'crash, hang and failure end dead, with a verdict; their neighbour is done'
[ "$(grep -c 'delivery [123]:' a.log)" = 3 ]; ok $? 'a candidate that kills its evaluator is tried three times'
"$BIN/quern-queue" retry | grep -q '^3 dead jobs put back'; ok $? 'retry revives the dead'
wait_for '[ "$(count hosts dead)" = 3 ]'; ok $? 'and they die again'
kill -9 $a; wait $a 2>/dev/null
unset QUERN_REDIS
kill -TERM $fleet; wait $fleet
none_left; ok $? 'hosts: no process is left'

# ---- the private server's directory: long names, torn and damaged files, two fleets ----
deep=$(printf 'a%.0s' $(seq 120)); mkdir "$deep"
"$BIN/quern-fleet" run --workers 0 --dir "$deep" -- sh -c 'echo $QUERN_REDIS' >out 2>log; s=$?
[ $s = 0 ] && grep -q '^unix:/tmp/quern-' out && [ ! -e "$(sed 's/unix://' out)" ] && [ ! -d "$(sed 's/unix:\(.*\)\/.*/\1/' out)" ]; ok $? 'a long path gets a short socket, which is removed'
aof=$(ls calm/appendonlydir/*.incr.aof); truncate -s -7 $aof
"$BIN/quern-fleet" run --workers 0 --dir calm -- "$BIN/quern-queue" status --json >out 2>log; s=$?
[ $s = 0 ] && grep -q '"done": [23][0-9]' out; ok $? 'a torn file of changes is cut'
printf garbage | dd of=$aof bs=1 conv=notrunc 2>/dev/null
"$BIN/quern-fleet" run --workers 0 --dir calm -- true >out 2>log; s=$?
[ $s = 0 ] && grep -q 'could not be read; they are kept as .*damaged-1' log; ok $? 'a damaged one is put aside, and that is said'
"$BIN/quern-fleet" run --workers 0 --dir calm -- false >out 2>log; [ $? = 1 ]; ok $? "the command's failure is the fleet's"
"$BIN/quern-fleet" run --workers 0 --dir calm -- ./absent >out 2>log; [ $? = 127 ] && grep -q 'cannot run ./absent' log; ok $? 'a command that is not there'
mkdir nothing; PATH=$tmp/nothing "$BIN/quern-fleet" run --workers 0 --dir calm -- true >out 2>log; s=$?
[ $s = 1 ] && [ "$(wc -l <log)" = 1 ] && grep -q 'there is no redis-server' log; ok $? 'no redis-server: one sentence'
"$BIN/quern-evaluate" s.qa --output none.qa 2>log; s=$?
[ $s = 1 ] && [ "$(wc -l <log)" = 1 ] && grep -q 'quern-fleet run' log; ok $? 'no queue: one sentence'
"$BIN/quern-evaluate" s.qa --output none.qa --redis redis://u:secret@h 2>log; s=$?
[ $s = 2 ] && ! grep -q secret log; ok $? 'a password in an argument is refused, and not repeated'
none_left; ok $? 'no process is left at the end'
echo "1..$n"
exit $failed
