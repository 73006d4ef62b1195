#!/bin/bash
# A sick device leaves service: its job goes back to the queue without a counted delivery and another device
# judges it, the queue lists the device, and the fleet does not start its evaluator again. TAP on stdout.
. "$(dirname "$0")/tap.sh"
need redis-server
unset OMP_NUM_THREADS # the fleet leaves it as it is
logs=(log a.log b.log out err)
status() { "$BIN/quern-queue" status --json 2>/dev/null | tr -d '\n'; }
place="$(hostname) sim:h100"
cat >noop <<END
#!/bin/bash
echo "\$OMP_NUM_THREADS" >threads
exec "$BIN/quern-evald" --runner noop "\$@"
END
chmod +x noop
export -f wait_for
message() { "$BIN/quern-artifact" export "$1" | sed -n 's/.*"message":"\([^"]*\)".*/\1/p'; }
sick_over() { printf 'relu\t// selftest: sick %s\\n// %s\n' "$tmp/ill" "$1"; }

# ---- a job makes one device sick; another device judges it ----
"$BIN/quern-fleet" run --workers 0 --dir q -- sleep 1000 >out 2>log & fleet=$!
export QUERN_REDIS=unix:$tmp/q/redis.sock
wait_for '[ -S q/redis.sock ] && status >/dev/null'
touch ill
{ sick_over one; printf 'relu\tfine\n'; } | "$here/make_samples.pl" >s.qa
"$BIN/quern-evaluate" s.qa --output v.qa 2>err & submitter=$!
wait_for 'status | grep -q "\"waiting\": 2"'
./noop --device sim:h100 2>a.log; s=$?
[ $s = 4 ] && [ "$(wc -l <a.log)" = 1 ] &&
    grep -q '^quern-evald: this GPU is out of service: it was told to be sick$' a.log
ok $? 'the evaluator ends with status 4 and one sentence'
status | grep -q '"waiting": 2.*"leased": 0.*"done": 0.*"dead": 0'
ok $? 'the job of a sick device is in the queue again, neither done nor dead'
status | grep -qF "\"quarantined\": \"$place\"" &&
    status | grep -q '"reason": "this GPU is out of service: it was told'
ok $? 'the queue says which device, and why'
told='this GPU is out of service: it was told to be sick'
"$BIN/quern-queue" status |
    grep -qE "^out of service since 2[0-9-]+ [0-9:]+ UTC: $place \(sim:h100\): $told"
ok $? 'quern queue tells people of a sick device'
"$BIN/quern-queue" status | head -1 | grep -q '^class .*waiting'
ok $? 'a sick device is told of below the table'
./noop --device sim:h100 2>b.log & worker=$!
wait $submitter; s=$?
[ $s = 0 ] && [ "$(message v.qa)" = "noop
noop" ] && status | grep -q '"done": 2.*"dead": 0'; ok $? 'the next evaluator judges the job'
! status | grep -q quarantined; ok $? 'the mark of a sick device is gone when it serves again'

# ---- a job survives more sick devices than it has deliveries ----
kill -TERM $worker; wait $worker
sick_over again | "$here/make_samples.pl" >t.qa
"$BIN/quern-evaluate" t.qa --output w.qa 2>err & submitter=$!
wait_for 'status | grep -q "\"waiting\": 1"'
sick=0
for i in 1 2 3 4; do touch ill; ./noop --device sim:h100 2>a.log; [ $? = 4 ] && sick=$((sick + 1)); done
[ $sick = 4 ] && status | grep -q '"waiting": 1.*"dead": 0'
ok $? 'four devices that fall sick over one job leave it alive'
./noop --device sim:h100 --once 2>b.log; wait $submitter; s=$?
[ $s = 0 ] && [ "$(message w.qa)" = noop ]; ok $? 'the fifth device judges a job that four sick ones left'

# ---- a device that cannot be used from the start ----
CUDA_VISIBLE_DEVICES='' "$BIN/quern-evald" --device cuda:0 2>a.log; s=$?
[ $s = 4 ] && [ "$(wc -l <a.log)" = 1 ]
ok $? 'an evaluator without a GPU ends with status 4 and one sentence'
status | grep -qF "\"quarantined\": \"$(hostname) cuda:0\""; ok $? 'the queue names a GPU that is not there'
unset QUERN_REDIS
kill -TERM $fleet; wait $fleet

# ---- a fleet: the sick evaluator is not started again, and the other gets its jobs ----
touch ill
{
    sick_over fleet; for i in $(seq 20); do printf 'relu\t// selftest: sleep 0.02\\n// %d\n' $i; done
} | "$here/make_samples.pl" >u.qa
# Both have begun before one falls sick: one that begins later would serve the same place again, and take the
# mark away.
cat >command <<END
for ((k = 1; k <= 100; k++)); do
    printf 'relu\t// selftest: sleep 0.3\\\\n// first %d\n' \${k}1 \${k}2 | "$here/make_samples.pl" >first.qa
    "$BIN/quern-evaluate" first.qa --output first.\$k || exit
    "$BIN/quern-queue" top --window 0.1 | grep -q "^$(hostname)  *2 " && break
done
echo \$k >rounds
"$BIN/quern-evaluate" u.qa --output x.qa && "$BIN/quern-queue" status &&
    wait_for 'grep -q "left service" log' && sleep 1 && pgrep -c -P \$PPID quern-evald >evaluators
END
"$BIN/quern-fleet" run --evaluator ./noop --workers 2 --dir f -- bash command >out 2>log; s=$?
[ $s = 0 ] && grep -qE "^sim:h100 +0 +0 +$((21 + 2 * $(cat rounds))) +0 " out &&
    grep -q "^out of service since .*: $place " out
ok $? 'every job of the fleet is done, and the sick device is named'
grep -q 'evaluator [01] on sim:h100 left service; it is not started again' log
ok $? 'the fleet names a sick device'
[ "$(cat evaluators)" = 1 ]; ok $? 'the fleet leaves a sick device alone'
is 'evaluators share the cores' "$(cat threads)" \
    "$(perl -e 'my $n = int(shift() / 2); print $n < 1 ? 1 : $n' "$(cores)")"
touch ill
sick_over alone | "$here/make_samples.pl" >y.qa
timeout 200 "$BIN/quern-fleet" run --evaluator ./noop --workers 1 --dir f -- "$BIN/quern-evaluate" y.qa \
    --output y.out >out 2>log; s=$?
[ $s = 1 ] && grep -q 'no evaluator stays up' log; ok $? 'with no evaluator left the fleet ends, and says why'
done_testing
