#!/bin/bash
# Records: a second device of the class judges a measured score above 3, or above twice the best known, again.
# The evaluators are noop runners with invented devices. The candidates name their scores. TAP on stdout.
. "$(dirname "$0")/tap.sh"
need redis-server
export QUERN_QUEUE=lease=3
logs=(log A.log B.log err verdicts)
count() {
    "$BIN/quern-queue" status --json 2>/dev/null | tr -d ' \n' | grep -o "\"class\":\"${2:-test:gpu}\"[^}]*" |
        sed "s/.*\"$1\":\([0-9]*\).*/\1/"
}
field() {
    "$BIN/quern-artifact" export "$1" | sed -n "s/.*\"$2\":\"\{0,1\}\([^\",}]*\).*/\1/p" | tr '\n' ' '
}
# start UUID [CLASS]: starts an evaluator with that device; $pid is its process
start() { "$BIN/quern-evald" --runner noop --device ${2:-test:gpu} --uuid $1 2>>$1.log & pid=$!; }
end() { kill -TERM $1; wait $1; }
# evaluate NAME SOURCE...: writes NAME.qa in the background; $submitter is the process, $options are its
# options
samples() { local name=$1; shift; printf 'relu\t%s\n' "$@" | "$here/make_samples.pl" >$name.samples; }
evaluate() { samples "$@"; again $1; }
again() {
    "$BIN/quern-evaluate" $1.samples --output $1.qa --device ${class:-test:gpu} ${options:-} 2>err & \
        submitter=$!
}
finish() { wait $submitter; local s=$?; "$BIN/quern-artifact" export $1.qa >verdicts 2>/dev/null; return $s; }
fresh() { "$BIN/quern-queue" purge >/dev/null; }
# hold PID: stops an evaluator while it has a job; fails when job or submitter end before that is seen
hold() {
    local have; have=$(count done)
    until kill -STOP $1; [ "$(count leased)" = 1 ]; do
        [ "$(count done)" = "$have" ] && kill -0 $submitter 2>/dev/null || return 1
        kill -CONT $1; sleep 0.2
    done
}
measured() { printf '// selftest: measured %s' "$*"; }

"$BIN/quern-fleet" run --devices sim:h100 --workers 0 --dir q -- sleep 1000 >out 2>log & fleet=$!
export QUERN_REDIS=unix:$tmp/q/redis.sock
wait_for '[ -S q/redis.sock ] && "$BIN/quern-queue" status >/dev/null 2>&1'

# ---- no record: no second job ----
start A; a=$pid; start B; b=$pid
evaluate plain "$(measured 0 A=3 B=3)" 'fine'; finish plain; s=$?
[ $s = 0 ] && [ "$(field plain.qa outcome)" = 'ok evaluator_error ' ] &&
    ! grep -qv '"confirmed":""' verdicts && [ "$(count done)" = 2 ]
ok $? 'a score of 3, and a failure, are no records'
end $b

# ---- two devices that agree; B starts later, so A is the first ----
fresh; options='--second-wait 60'
evaluate agree "$(measured 0 A=4 B=3.7)" "$(measured 0.1 A=3.5 B=3.6)"
wait_for '[ "$(count done)" = 2 ]'; sleep 0.5
[ "$(count done)" = 2 ] && [ ! -e agree.qa ]
ok $? 'a record waits for a second device, and its own does not judge it again'
start B; b=$pid
finish agree; s=$?
[ $s = 0 ] && [ "$(field agree.qa confirmed)" = 'yes yes ' ] && [ "$(field agree.qa score)" = '3.7 3.5 ' ] &&
    [ "$(count done)" = 4 ]
ok $? 'a second device within 10%: confirmed, with the lower score'
grep -q '"other":{[^}]*"score":4[^}]*"uuid":"A"' verdicts &&
    grep -q '"other":{[^}]*"score":3.6[^}]*"uuid":"B"' verdicts
ok $? "the other device's numbers are kept"

# ---- the same samples again: nothing is judged twice, the bytes are the same ----
want=$(digest agree.qa); cp agree.samples same.samples
end $a; end $b
again same; finish same; s=$?
[ $s = 0 ] && [ -n "$want" ] && [ "$(digest same.qa)" = "$want" ] && [ "$(count done)" = 4 ]
ok $? 'records submitted again, without any evaluator: the same bytes'

# ---- devices that disagree ----
fresh; start A; a=$pid
evaluate differ "$(measured 0 A=5 B=4.4)" "$(measured 0 A=4 B=9)" "$(measured 0 A=3.2)"
wait_for '[ "$(count done)" = 3 ]'
start B; b=$pid
finish differ; s=$?
[ $s = 0 ] && [ "$(field differ.qa confirmed)" = 'no no alone ' ] &&
    [ "$(field differ.qa score)" = '4.4 4.0 3.2 ' ]
ok $? 'a second device beyond 10%, or one that fails: not confirmed, with the lower score'
grep -q '"message":"two devices of the class disagree: 5.000 on A, 4.400 on B"' verdicts &&
    grep -q '4.000 on A, 9.000 on B' verdicts
ok $? 'the message of an unconfirmed record says both times'

# ---- twice the best known ----
"$BIN/quern-pool" --output none.pool 2>err
samples known "$(measured 0 A=1.2 B=1.2)"; again known; finish known
"$BIN/quern-pool" --samples known.samples --verdicts known.qa --output known.pool 2>err
options='--best known.pool'
evaluate twice "$(measured 0 A=2.5 B=2.45)" "$(measured 0 A=2.3 B=2.3)"; finish twice; s=$?
[ $s = 0 ] && [ "$(field twice.qa confirmed | tr -s ' ')" = 'yes ' ] &&
    [ "$(grep -c '"confirmed":""' verdicts)" = 1 ] && [ "$(field twice.qa score)" = '2.45 2.3 ' ]
ok $? 'more than twice the best of the pool is a record, less is not'
options='--best none.pool'
cp twice.samples new.samples; again new; finish new; s=$?
[ $s = 0 ] && [ "$(grep -c '"confirmed":""' verdicts)" = 2 ]
ok $? 'a task that the pool lacks has records only above 3'

# ---- the second device's evaluator is killed during its job, and comes back ----
options='--second-wait 60'
end $b; before=$(count done)
evaluate killed "$(measured 1.5 A=6 B=5.9)"
wait_for "[ \"\$(count done)\" = $((before + 1)) ]"
start B; b=$pid; hold $b
kill -9 $b; wait $b 2>/dev/null
start B; b=$pid
finish killed; s=$?
[ $s = 0 ] && [ "$(field killed.qa confirmed)" = 'yes ' ] && [ "$(field killed.qa score)" = '5.9 ' ] &&
    [ "$(wc -l <verdicts)" = 1 ] && [ "$(count done)" = $((before + 2)) ]
ok $? 'kill -9 of the second: one verdict, confirmed, each job done once'

# ---- the second device's evaluator does not come back ----
end $b
options='--second-wait 15'
for try in 1 2 3 4 5; do
    fresh; rm -f gone.qa
    evaluate gone "$(measured 1.5 A=6 B=5.9)"
    wait_for '[ "$(count done)" = 1 ]'
    start B; b=$pid; hold $b; held=$?
    kill -9 $b; wait $b 2>/dev/null
    finish gone; s=$?
    [ $held != 0 ] || break # else it had the job for less time than it takes to see that, on a busy machine
done
[ $s = 0 ] && [ "$(field gone.qa confirmed)" = 'alone ' ] && [ "$(field gone.qa score)" = '6.0 ' ] &&
    [ "$(count done)" = 1 ] && [ "$(count waiting)" = 0 ]
ok $? 'without a second device the record stays unconfirmed, and its second job is taken back'

# ---- one device ----
options='--second-wait 2'
evaluate alone "$(measured 0 A=7)"; finish alone; s=$?
[ $s = 0 ] && [ "$(field alone.qa confirmed)" = 'alone ' ] &&
    grep -q '"message":"unconfirmed: no other device of the class test:gpu was there"' verdicts
ok $? 'a record of a fleet with one device stays unconfirmed'

# ---- the submitter is killed while a record waits, and continues from its journal ----
fresh; options='--second-wait 60'
evaluate journal "$(measured 0 A=4 B=3.9)"
wait_for '[ "$(count done)" = 1 ] && grep -aqs test:gpu journal.qa.journal'
kill -9 $submitter; wait $submitter 2>/dev/null
[ -s journal.qa.journal ] && [ ! -e journal.qa ]
ok $? 'killed while it waits, the submitter leaves its journal'
start B; b=$pid
again journal; finish journal; s=$?
[ $s = 0 ] && [ "$(field journal.qa confirmed)" = 'yes ' ] && [ "$(field journal.qa score)" = '3.9 ' ] &&
    [ "$(count done)" = 2 ]
ok $? 'the submitter continues from its journal'

# ---- simulators have no records ----
start A sim:h100; c=$pid
class=sim:h100 options=
evaluate sim "$(measured 0 A=9)"; finish sim; s=$?
[ $s = 0 ] && [ "$(field sim.qa predicted)" = 'true ' ] && grep -q '"confirmed":""' verdicts &&
    [ "$(count done sim:h100)" = 1 ]
ok $? 'a predicted time is no record'
end $a; end $b; end $c
unset QUERN_REDIS
kill -TERM $fleet; wait $fleet
done_testing
