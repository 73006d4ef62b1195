#!/bin/bash
# quern-gpubench on the simulator: nothing that fails is left out of what it counts, nothing that was not measured is called reached;
# and mk/bench-gpu, which measures part after part within a budget, over programs that stand for Quern's. TAP on stdout.
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BIN=$(cd "${QUERN_BUILD:-$ROOT/build}/bin" && pwd)
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
export QUERN_LOG=quiet
n=0
ok() { # STATUS NAME
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; sed 's/^/# /' "$TMP/out" "$TMP/err" 2>/dev/null | cut -c1-300 | tail -12; fi
}
bench() { # FLAGS: $status
    status=0
    "$BIN/quern-gpubench" --device sim:h100 --output "$TMP/tsv" "$@" >"$TMP/out" 2>"$TMP/err" || status=$?
}
field() { awk -F'\t' -v what="$1" -v at="$2" '$2 == what {print $at}' "$TMP/tsv"; } # VALUE 3, JUDGED 6
is() { # WHAT VALUE JUDGED
    [ "$(field "$1" 3) $(field "$1" 6)" = "$2 $3" ]; ok $? "$1: $2 $3"
}

# ---- what fails is counted ----
mkdir "$TMP/tasks"
cp -r "$ROOT/tasks/relu" "$ROOT/tasks/gelu" "$TMP/tasks"
sed -i 's/0\.5f/0.6f/' "$TMP/tasks/gelu/baseline.cu"
touch -d 2020-01-01 "$TMP"/tasks/*/reference.c # not younger than what was compiled of it
QUERN_TASKS=$TMP/tasks bench --parts same --pairs 40
is 'comparisons that were refused' 2 'NOT REACHED'
[ "$status $(field 'small: comparisons' 3)" = '0 2' ]; ok $? 'the others are compared all the same'

bench --parts difference --trials 4
is trials 4 'NOT REACHED'
[ "$(awk -F'\t' '$6 == "raw" {print $2}' "$TMP/tsv" | sort | uniq -c | tr -s ' ' | tr '\n' ';')" = ' 2 2% faster; 2 2% slower;' ]; ok $? 'half of them either way'
is 'scored in the right direction' 100 reached

bench --parts repeat --repeats 3 --span 1
is times 3 'NOT REACHED'
is 'first to last' "$(field 'first to last' 3)" 'NOT REACHED'
is 'scores within' 0 reached

bench --parts sustained --sustained 13 --compilers 0 --work "$TMP/work"
is 'distinct candidates judged' 13 'NOT REACHED'
compiled=$(find "$TMP/work/cache" -type f | wc -l)
bench --parts sustained --sustained 13 --compilers 0 --work "$TMP/work"
again=$(find "$TMP/work/cache" -type f | wc -l)
[ "$compiled" -gt 5 ] && [ $((again - compiled)) -gt 5 ]; ok $? "what a kept cache holds is not found in it: $compiled files, then $again"

# ---- nothing is measured in silence ----
bench --parts ''
[ $status = 2 ]; ok $? 'no part at all is a wrong flag'
"$BIN/quern-gpubench" --device sim:h100 --parts difference --trials 2 --output /dev/full >"$TMP/out" 2>"$TMP/err"; status=$?
[ $status = 3 ]; ok $? 'results that cannot be written: exit status 3'
before=$(ls -d "${TMPDIR:-/tmp}"/quern-gpubench-* 2>/dev/null | wc -l)
"$BIN/quern-gpubench" --device sim:h100 --output "$TMP/none/tsv" >"$TMP/out" 2>"$TMP/err"; status=$?
[ $status = 2 ] && [ "$(ls -d "${TMPDIR:-/tmp}"/quern-gpubench-* 2>/dev/null | wc -l)" = "$before" ]; ok $? 'nor begun: exit status 2, and no folder is left'
rm -f "$TMP/tsv"
bench --parts difference --trials 400 &
until [ -s "$TMP/tsv" ] && grep -q raw "$TMP/tsv"; do sleep 0.1; done
kill -INT "$(pgrep -P $! -f quern-gpubench)"
wait $!
trials=$(field trials 3)
[ "${trials:-0}" -gt 0 ] && [ "$trials" -lt 400 ] && [ "$(field trials 6)" = 'NOT REACHED' ]; ok $? "told to stop: what there is, as such ($trials trials)"

# ---- mk/bench-gpu ----
mkdir -p "$TMP/build/bin"
for program in eval evald compile light cudarunner template; do echo >"$TMP/build/bin/quern-$program"; done
cat >"$TMP/build/bin/quern-gpubench" <<END
#!/bin/bash
while [ \$# -gt 0 ]; do
    case \$1 in --parts) part=\$2 ;; --output) out=\$2 ;; --limit) limit=\$2 ;; esac
    shift 2
done
echo "\$part \$limit" >>"$TMP/calls"
{ printf 'part\twhat\tvalue\tunit\tasked\tjudged\n'; printf '%s\tnumber\t1\t\t>%s\t%s\n' "\$part" 1 reached
  printf '%s\tother\t1\t\t>2\tNOT REACHED\n%s\tseen\t1\ts\t\traw\n' "\$part" "\$part"; } >"\$out"
[ "\$part" != hostile ]
END
chmod +x "$TMP/build/bin/quern-gpubench"
parts() { (cd "$ROOT" && mk/bench-gpu "$TMP/build" sim:h100 1) >"$TMP/out" 2>"$TMP/err"; status=$?; }
calls() { tr '\n' ';' <"$TMP/calls"; : >"$TMP/calls"; }
: >"$TMP/calls"
export PARTS='latency pairs sustained hostile' BUDGET=200
parts
[ "$status $(calls)" = '3 latency 170;' ]; ok $? 'what does not fit the budget is left for the next time'
grep -q 'not yet measured: pairs sustained hostile' "$TMP/err"; ok $? 'and named'
export BUDGET=440
parts
[ "$status $(calls)" = '3 same,difference,repeat 410;' ]; ok $? 'which goes on there'
parts
parts
[ "$status $(calls)" = '1 sustained 410;hostile 410;' ]; ok $? 'to the end; a part that failed makes the exit status 1'
[ "$(wc -l <"$TMP/build/bench-gpu/summary.tsv") $(grep -c raw "$TMP/build/bench-gpu/summary.tsv")" = '9 0' ]; ok $? 'summary.tsv has all of them'
[ "$(grep -c '^missed: ' "$TMP/out")" = 4 ] && grep -q '^4 of 8 asked numbers reached' "$TMP/out"; ok $? 'what was missed is said'
parts
[ -z "$(calls)" ]; ok $? 'nothing is measured twice'
echo other >"$TMP/build/bin/quern-eval"
parts
[ "$(calls)" = 'latency 410;' ]; ok $? 'other programs: all anew'
BUDGET='' parts
[ "$(calls)" = 'latency 0;same,difference,repeat 0;sustained 0;hostile 0;' ]; ok $? 'without a budget: everything, without limits'
PARTS=nothing parts
[ $status = 2 ]; ok $? 'no such part: exit status 2'
echo "1..$n"
