#!/bin/bash
# quern-gpubench on the simulator: it counts every failure, and calls no number reached that was not measured.
# Then tests/bench/evaluator, which measures the parts one by one within a budget, with stand-ins for
# Quern's programs. TAP on stdout.
. "$(dirname "$0")/tap.sh"
export QUERN_LOG=quiet TMPDIR=$tmp
bench() { # FLAGS: sets status
    status=0
    "$BIN/quern-gpubench" --device sim:h100 --output "$tmp/tsv" "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
}
# WHAT COLUMN: 3 is the value, 6 the judgement
field() { awk -F'\t' -v what="$1" -v at="$2" '$2 == what {print $at}' "$tmp/tsv"; }
row_is() { # WHAT VALUE JUDGEMENT
    [ "$(field "$1" 3) $(field "$1" 6)" = "$2 $3" ]; ok $? "$1: $2 $3"
}

# ---- failures are counted ----
mkdir "$tmp/tasks"
cp -r "$root/tasks/relu" "$root/tasks/gelu" "$tmp/tasks"
sed -i 's/0\.5f/0.6f/' "$tmp/tasks/gelu/baseline.cu"
touch -d 2020-01-01 "$tmp"/tasks/*/reference.c # older than the compiled references
QUERN_TASKS=$tmp/tasks bench --parts same --pairs 40
row_is 'comparisons that were refused' 2 'NOT REACHED'
[ "$status $(field 'small: comparisons' 3)" = '0 2' ]; ok $? 'the tasks beside one that fails are compared'

bench --parts difference --trials 4
row_is trials 4 'NOT REACHED'
[ "$(awk -F'\t' '$6 == "raw" {print $2}' "$tmp/tsv" | sort | uniq -c | tr -s ' ' | tr '\n' ';')" = \
    ' 2 2% faster; 2 2% slower;' ]
ok $? 'half of the trials have the second plan faster, half slower'
row_is 'scored in the right direction' 100 reached

bench --parts repeat --repeats 3 --span 1
row_is times 3 'NOT REACHED'
row_is 'first to last' "$(field 'first to last' 3)" 'NOT REACHED'
row_is 'scores within' 0 reached
[ "$(grep -c 'us, baseline..raw$' "$tmp/tsv") $(grep -c 'us, candidate..raw$' "$tmp/tsv")" = '9 9' ]
ok $? 'each pair has the times of both sides'

level1=kernelbench/level1 # of quick tasks
quick=(--sets $level1/k1_19_relu,$level1/k1_20_leakyrelu,$level1/k1_21_sigmoid,$level1/k1_22_tanh)
sustained() { # FLAGS
    QUERN_TASKS=$root/tasks bench --parts sustained "${quick[@]}" "$@"
}
sustained --sustained 13 --compilers 0 --work "$tmp/work"
row_is 'distinct candidates judged' 13 'NOT REACHED'
compiled=$(find "$tmp/work/cache" -type f | wc -l)
sustained --sustained 13 --compilers 0 --work "$tmp/work"
again=$(find "$tmp/work/cache" -type f | wc -l)
[ "$compiled" -gt 5 ] && [ $((again - compiled)) -gt 5 ]
ok $? "what a kept cache holds is not found in it: $compiled files, then $again"

sustained --sustained 4 --compilers 1
row_is 'distinct candidates judged' 4 'NOT REACHED'

# ---- part baselines goes on with the rows that it has ----
QUERN_TASKS=$tmp/tasks bench --parts baselines --jobs 2 --rows "$tmp/rows"
row_is 'baselines that fail' 1 reached
[ "$(wc -l <"$tmp/rows") $(grep -c '"task":"relu","outcome":"ok"' "$tmp/rows")" = '2 1' ]
ok $? 'a row a task, with its outcome'
sed -i '/"gelu"/d; s/"plain_us":[0-9.]*/"plain_us":12345.5/' "$tmp/rows"
printf '{"task":"gelu","outc' >>"$tmp/rows"
rm -r "$tmp/tasks/gelu"
cp -r "$root/tasks/gelu" "$tmp/tasks"
QUERN_TASKS=$tmp/tasks bench --parts baselines --jobs 2 --rows "$tmp/rows"
row_is 'baselines that fail' 0 reached
grep -q '^  relu *12345.50' "$tmp/out" && [ "$(wc -l <"$tmp/rows")" = 2 ]
ok $? 'what was measured is taken from the file, a torn line is not'
echo nonsense >>"$tmp/rows"
QUERN_TASKS=$tmp/tasks bench --parts baselines --rows "$tmp/rows"
[ $status = 1 ] && grep -q "rows, line 3" "$tmp/err"; ok $? 'a line that is no row is named'

# ---- errors and an early end ----
bench --parts ''
[ $status = 2 ]; ok $? 'no part at all is a wrong flag'
"$BIN/quern-gpubench" --device sim:h100 --parts difference --trials 2 --output /dev/full >"$tmp/out" \
    2>"$tmp/err"; status=$?
[ $status = 3 ]; ok $? 'results that cannot be written: exit status 3'
"$BIN/quern-gpubench" --device sim:h100 --output "$tmp/none/tsv" >"$tmp/out" 2>"$tmp/err"; status=$?
[ $status = 2 ] && ! ls -d "$tmp"/quern-gpubench-* 2>/dev/null
ok $? 'results that cannot be begun: exit status 2, and no folder is left'
rm -f "$tmp/tsv"
bench --parts difference --trials 40000 &
wait_for '[ -s "$tmp/tsv" ] && grep -q raw "$tmp/tsv"'
kill -INT "$(pgrep -P $! -f quern-gpubench)"
wait $!
trials=$(field trials 3)
[ "${trials:-0}" -gt 0 ] && [ "$trials" -lt 40000 ] && [ "$(field trials 6)" = 'NOT REACHED' ]
ok $? "told to stop: what there is, as such ($trials trials)"

# ---- tests/bench/evaluator ----
mkdir -p "$tmp/build/bin"
for program in eval evald compile light cudarunner; do echo >"$tmp/build/bin/quern-$program"; done
cat >"$tmp/build/bin/quern-gpubench" <<END
#!/bin/bash
while [ \$# -gt 0 ]; do
    case \$1 in --parts) part=\$2 ;; --output) out=\$2 ;; --limit) limit=\$2 ;; esac
    shift 2
done
echo "\$part \$limit" >>"$tmp/calls"
{ printf 'part\twhat\tvalue\tunit\tasked\tjudged\n'; printf '%s\tnumber\t1\t\t>%s\t%s\n' "\$part" 1 reached
  printf '%s\tother\t1\t\t>2\tNOT REACHED\n%s\tseen\t1\ts\t\traw\n' "\$part" "\$part"; } >"\$out"
[ "\$part" != hostile ]
END
chmod +x "$tmp/build/bin/quern-gpubench"
parts() { (cd "$root" && tests/bench/evaluator "$tmp/build" sim:h100 1) >"$tmp/out" 2>"$tmp/err"; status=$?; }
# The limits of a budget count down with the clock: a busy machine may take 50 s of it before a part begins.
calls() {
    awk '{ for (most = 170; most <= 410; most += 240) if ($2 > most - 50 && $2 <= most) $2 = most
        printf "%s %d;", $1, $2 }' "$tmp/calls"
    : >"$tmp/calls"
}
: >"$tmp/calls"
export PARTS='latency pairs sustained hostile' BUDGET=200
parts
[ "$status $(calls)" = '3 latency 170;' ]; ok $? 'what does not fit the budget is left for the next time'
grep -q 'not yet measured: pairs sustained hostile' "$tmp/err"
ok $? 'a part that does not fit the budget is named'
export BUDGET=440
parts
[ "$status $(calls)" = '3 same,difference,repeat 410;' ]
ok $? 'the next call goes on where the last one stopped'
parts
parts
[ "$status $(calls)" = '1 sustained 410;hostile 410;' ]
ok $? 'a part that failed makes the exit status 1 at the end'
[ "$(wc -l <"$tmp/build/bench-gpu/summary.tsv") $(grep -c raw "$tmp/build/bench-gpu/summary.tsv")" = '9 0' ]
ok $? 'summary.tsv has all parts'
[ "$(grep -c '^missed: ' "$tmp/out")" = 4 ] && grep -q '^4 of 8 targets reached' "$tmp/out"
ok $? 'what was missed is said'
parts
[ -z "$(calls)" ]; ok $? 'nothing is measured twice'
echo other >"$tmp/build/bin/quern-eval"
parts
[ "$(calls)" = 'latency 410;' ]; ok $? 'parts of other programs are measured again'
BUDGET='' parts
[ "$(calls)" = 'latency 0;same,difference,repeat 0;sustained 0;hostile 0;' ]
ok $? 'without a budget every part is measured, without limits'
PARTS=nothing parts
[ $status = 2 ]; ok $? 'no such part: exit status 2'
done_testing
