#!/bin/bash
# Precompilation: the verdicts equal those of an evaluator that compiles each candidate itself, also when
# compilers, runners and evaluators are killed. A job that only waited does not count as delivered. TAP on
# stdout.
# limit: 900
. "$(dirname "$0")/tap.sh"
need redis-server
export QUERN_LOG=debug
unset QUERN_CACHE
diagnose() { grep -v ' ms$' log | tail -15 | sed 's/^/# /'; }
status() { QUERN_REDIS=unix:$1/redis.sock "$BIN/quern-queue" status --json 2>/dev/null | tr -d ' \n'; }
done_of() { status $1 | sed -n 's/.*"done":\([0-9]*\).*/\1/p'; }
some_done() { wait_for "[ \"\$(done_of $1)\" -ge $2 ] 2>/dev/null"; }
for compilers in 0 2; do
    printf '#!/bin/bash\nexec "%s/quern-evald" --compilers %d "$@"\n' "$BIN" $compilers >evald-$compilers
done
chmod +x evald-*
# fleet DIR COMPILERS: starts a fleet in the background; $fleet is its process
fleet() {
    "$BIN/quern-fleet" run --evaluator ./evald-$2 --devices sim:h100 --workers ${WORKERS:-1} --dir $1 -- \
        sh -c "'$BIN/quern-evaluate' s.qa --output $1.qa && '$BIN/quern-queue' status --json >$1.status" \
        >out 2>log & fleet=$!
}

# ---- candidates of several outcomes, each distinct ----
one_line() { sed 's/$/\\n/' "$1" | tr -d '\n'; }
for i in 1 2 3; do
    for f in ok compile_error plan_count plan_no_kernel wrong_result trap out_of_bounds include_passwd; do
        printf 'relu\t%s// candidate %d\\n\n' "$(one_line "$root/tests/fixtures/kernels/$f.cu")" $i
    done
done | "$here/make_samples.pl" >s.qa
jobs=24
fleet plain 0; wait $fleet; s=$?
want=$(digest plain.qa)
[ $s = 0 ] && [ -n "$want" ] && ! grep -q 'was compiled before' log &&
    [ "$("$BIN/quern-artifact" export plain.qa | grep -o '"outcome":"[a-z_]*"' | sort -u | wc -l)" -ge 5 ]
ok $? 'without precompilation: every candidate has its verdict, of at least five outcomes'
finish() { # NAME
    wait $fleet; local s=$?
    [ $s = 0 ] && [ "$(digest $1.qa)" = "$want" ]; ok $? "$1: the verdicts are the same bytes"
    tr -d ' \n' <$1.status | grep -q "\"waiting\":0,\"leased\":0,\"done\":$jobs,\"dead\":0"
    ok $? "$1: every job done, none dead"
    none_left; ok $? "$1: no process is left"
}
fleet early 2; finish early
[ "$(grep -c 'was compiled before' log)" -ge 9 ]; ok $? 'candidates reach the device compiled'
WORKERS=2 fleet two 2; finish two

# ---- kill -9 in the middle ----
evald() { pgrep -P $fleet -f quern-evald | head -1; }
fleet compilers 2
some_done compilers 1
for i in 1 2 3; do
    kill -9 $(pgrep -P "$(evald)" | tail -1) 2>/dev/null # the youngest child of the evaluator compiles
    sleep 0.2
done
finish compilers
fleet runner 2
some_done runner 1
kill -9 $(pgrep -P "$(evald)" | head -1) 2>/dev/null
finish runner
# Five kills: if a waiting job counted as tried, three of them would bury it. Two more jobs are done between
# two kills, so that no job is in work at three of them.
fleet worker 2
have=0
for i in 1 2 3 4 5; do
    wait_for '[ -n "$(evald)" ] && [ "$(pgrep -P "$(evald)" | wc -l)" -ge 3 ]'
    [ $((have + 2)) -lt $jobs ] || break
    some_done worker $((have + 2))
    have=$(done_of worker)
    kill -9 "$(evald)" 2>/dev/null
done
finish worker
# Of a deep queue an evaluator takes many jobs at once, which are often of one task.
leased() { status $1 | sed -n 's/.*"leased":\([0-9]*\).*/\1/p'; }
for i in $(seq 120); do
    printf 'relu\t%s// candidate %d\\n\n' "$(one_line "$root/tests/fixtures/kernels/plan_count.cu")" $i
done | "$here/make_samples.pl" >many.qa
mv s.qa few.qa; mv many.qa s.qa
fleet deep 2
wait_for '[ "$(leased deep)" -ge 9 ] 2>/dev/null'; ok $? 'nine of 120 waiting jobs are taken at once'
kill -TERM $fleet; wait $fleet
# Of one that is not so deep it takes all jobs of a task, so that no other evaluator draws its contents, too.
for i in $(seq 60); do
    task=relu; [ $i -le 9 ] || task=softmax
    printf '%s\t%s// candidate %d\\n\n' $task "$(one_line "$root/tests/fixtures/kernels/plan_count.cu")" $i
done | "$here/make_samples.pl" >s.qa
fleet whole 2
wait_for '[ "$(leased whole)" -ge 8 ] 2>/dev/null'; ok $? 'the nine of a task are taken at once'
kill -TERM $fleet; wait $fleet
mv few.qa s.qa
# SIGTERM: waiting jobs are handed back, and the next evaluator takes them at once.
fleet polite 2
some_done polite 1
kill -TERM "$(evald)"
finish polite
done_testing
