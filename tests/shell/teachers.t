#!/bin/bash
# A file of teachers, what endpoints may cost, and a run without stage 1. TAP on stdout.
. "$(dirname "$0")/endpoint.sh"
requests() { wc -l <log; }
url=$OPENAI_BASE_URL
unset OPENAI_BASE_URL
export SECOND_KEY=sk-secret-second-0123456789
cat >two.json <<END
{"teachers": ["generator",
  {"name": "one", "api": "openai", "model": "a", "url": "$url", "key": "OPENAI_API_KEY",
    "trials": 3, "keep": 3, "tokens": 100, "concurrency": 2, "price": {"input": 1, "output": 2}},
  {"name": "two", "api": "openai", "model": "b", "url": "$url", "key": "SECOND_KEY",
    "trials": 2, "keep": 2, "tokens": 200, "price": {"input": 1, "output": 2}}]}
END
teachers=two.json
collect() {
  "$BIN/quern-fleet" run --workers 1 --dir q -- "$BIN/quern-collect" --tasks relu --teachers file:$teachers \
    --trials 4 --keep 2 --output "$@" 2>err
}
: >log
collect all.qa --ledger spent.tsv; ok $? 'a file of teachers'
count() { "$BIN/quern-artifact" export "$1" | grep -c "\"id\":\"collect/relu/$2/"; }
is 'each teacher has its own trials' "$(count all.qa one) $(count all.qa two) $(requests)" '3 2 5'
is 'each teacher has its own key' \
  "$(perl -MJSON::PP \
  -ne '$k{decode_json($_)->{key}}++; END { print join " ", map "$_=$k{$_}", sort keys %k }' log)" \
  'Bearer sk-secret-0123456789abcdef=3 Bearer sk-secret-second-0123456789=2'
grep -q 'one: at most 3 requests, .* tokens of prompts and at most 0.0003 M of answers: at most \$' err
ok $? 'requests and cost are said before the first one'
is 'the ledger has a line for each answer' \
  "$(awk -F'\t' '{ n[$2]++; c += $5 } END { printf "%d %d %.6f", n["one"], n["two"], c }' spent.tsv)" \
  "3 2 $(perl -e 'printf "%.6f", 5 * (3 * 1 + 5 * 2) / 1e6')"
"$BIN/quern-fleet" run --workers 1 --dir q -- "$BIN/quern-evaluate" all.qa --output verdicts.qa \
  --device sim:h100 --seed 1 2>err &&
  for s in collect report/{sft,selfsup,crl}; do
    mkdir -p page/$s; cp all.qa page/$s/samples.qa; cp verdicts.qa page/$s
  done &&
  printf 'override %s\n' 'TASKS := relu' 'PROFILE := default' 'DEVICE := sim:h100' >page/settings.mk &&
  cp spent.tsv page && "$BIN/quern-report" --output page >out 2>>err &&
  grep -q '^<tr><td>one<td>12<td>.*<td>under \$0.01</tr>' page/report.html &&
  grep -q '^<tr><td>two<td>8<td>' page/report.html
ok $? 'the report has a row for each'

# ---- waves: one answer at a time, none of them right ----
mkdir -p wrong/relu
for i in 1 2 3; do
  printf '%s\n' '//@ launch k<<<ceil_div(n, 256), 256>>>(x, y, n)' \
    "__global__ void k(const float *x, float *y, int n) { if (threadIdx.x < n) y[threadIdx.x] = $i; }" \
    >wrong/relu/$i.cu
done
"$BIN/quern-fleet" run --workers 1 --dir q -- "$BIN/quern-collect" --tasks relu --teachers dir:wrong \
  --trials 3 --keep 1 --output wrong.qa 2>err
is 'waves that change nothing are said once' \
  "$(grep -c 'wave [0-9]*: ' err) $(grep -c 'wave 1: 1 answer wanted' err)" '1 1'

# ---- budgets ----
: >log; rm spent.tsv
collect few.qa --ledger spent.tsv --budget '2 requests'
[ $? = 1 ] && [ ! -e few.qa ] && grep -q 'the budget of 2 requests is spent; what was answered is kept' err
ok $? 'a budget of requests stops cleanly'
is 'a budget of two requests stops after two' "$(requests)" 2
collect few.qa --ledger spent.tsv --budget '9 requests'; ok $? 'a larger budget continues'
is 'nothing is paid twice under a larger budget' "$(requests) $(wc -l <spent.tsv)" '5 5'
is 'the result under budgets is that of a run without one' "$(digest few.qa)" "$(digest all.qa)"
: >log; rm -f spent.tsv
collect dear.qa --ledger spent.tsv --budget 0.00003usd
[ $? = 1 ] && [ "$(requests)" -lt 5 ] && grep -q 'the budget of \$0.00 is spent' err
ok $? 'a budget in dollars stops, too'
# What the server does not say is counted by bytes; what is no answer counts, too.
: >log; rm -f spent.tsv
sed 's/"model": "[ab]"/"model": "nousage:400"/' two.json >silent.json
teachers=silent.json
collect silent.qa --ledger spent.tsv --budget 0.006usd
[ $? = 1 ] && [ "$(requests)" -lt 5 ] && grep -q 'the budget of \$0.01 is spent' err &&
  [ "$(cut -f6 spent.tsv | sort -u)" = estimated ] && awk -F'\t' '$3 < 100 || $4 < 100 { exit 1 }' spent.tsv
ok $? "a budget in dollars holds where a server does not say what it used: $(requests) requests"
for model in useless:null 500 429 half nothing loc; do
  : >log; rm -f spent.tsv none.qa* silent.qa*
  sed "s/\"model\": \"[ab]\"/\"model\": \"$model\"/" two.json >silent.json
  collect silent.qa --ledger spent.tsv --budget '3 requests'
  [ $? != 0 ] && [ "$(requests)" = 3 ] && [ "$(wc -l <spent.tsv)" = 3 ]
  ok $? "a budget of three requests holds with $model"
done

# ---- a teacher that refuses everything ----
: >log; rm -f spent.tsv none.qa* silent.qa*
sed 's/"model": "[ab]"/"model": "400"/' two.json >silent.json
collect silent.qa --ledger spent.tsv
[ $? != 0 ] && [ ! -e silent.qa ] && 
  grep -q 'none of .* requests to one was answered; the same command asks again' err
ok $? 'a teacher that refuses everything fails the stage'
sed 's/"model": "[ab]"/"model": "kernel:0"/' two.json >silent.json
collect silent.qa --ledger spent.tsv && [ -s silent.qa ]; ok $? 'after its repair the same command asks'
teachers=two.json
sed -i 's/, "price": [^}]*}//' two.json
collect none.qa --budget '$5'; [ $? = 2 ] && grep -q 'a budget in dollars needs the price' err
ok $? 'a budget in dollars without a price is refused'
QUERN_DEADLINE=$(($(date +%s) + 1)) bash \
  -c 'echo 0 >log.hold
  exec "$1" run --workers 1 --dir q -- "$2" \
    --tasks relu --teachers file:two.json --trials 4 --keep 2 -o late.qa' \
  - "$BIN/quern-fleet" "$BIN/quern-collect" 2>err & late=$!
wait_for 'grep -q "stopped by signal" err'; rm log.hold; wait $late
[ $? != 0 ] && [ ! -e late.qa ]; ok $? 'a deadline stops a program'

# ---- mistakes in the file ----
wrong() {
  echo "{\"teachers\": [$1]}" >wrong.json; "$BIN/quern-collect" --check-flags --teachers file:wrong.json 2>err
  [ $? = 2 ] && grep -qF "$2" err
  ok $? "refused: $2"
}
wrong '{"api": "openai"}' 'wrong.json, teachers[0]: expected "api" (openai or anthropic) and "model"'
wrong '{"api": "openai", "model": "m", "uri": "x"}' 'there is no field "uri"'
wrong '{"api": "openai", "model": "m", "keep": 0}' '"keep": expected 1 to 100000, found 0'
wrong '"generator", "generator"' "the teacher 'generator' is there twice"
wrong '{"api": "openai", "model": "a/b"}' 'has a blank or a slash: give it a "name"'

# ---- the generator ----
echo '* vec=2 vec=4 vec=8 row=block' >without
drawn() {
  "$BIN/quern-fleet" run --workers 1 --dir q -- "$BIN/quern-collect" --tasks row_sum,softmax \
    --teachers generator --trials 4 --keep 4 --seed 3 --output "$@" 2>err
}
drawn right.qa --mistakes 0 --without without; ok $? 'the generator teaches'
"$BIN/quern-artifact" export right.qa >out
is 'each task has its answers' "$(grep -c '"id":"collect/[a-z_]*/generator/[0-3]"' out)" 8
sources=$(grep -o '"source":"[^"]*"' out | sort -u | wc -l)
[ "$sources" -gt 4 ] && grep -q " $sources distinct correct" err
ok $? "all of them are right: $sources sources"
is 'an answer has three parts, and a source without schedule lines' \
  "$(grep -c '## Performance Analysis.* bound\..*## Algorithm Design.n.*One launch\..*//@ launch' out)
$(grep -c '//@ schedule' out)" '8
0'
is 'what is withheld is not drawn' "$(grep -cE 'Vectors|One block per row' out)" 0
drawn wrong.qa --mistakes 1; [ $? = 0 ] && grep -q ' 0 distinct correct' err
ok $? 'mistakes of the generator are refused'

# ---- no stage 1 ----
"$BIN/quern-fleet" run --workers 1 --dir q -- "$BIN/quern-collect" --tasks relu --trials 0 --output no.qa \
  2>err
ok $? 'a teacher without trials asks for nothing'
is 'a teacher without trials gives an artifact without samples' \
    "$("$BIN/quern-artifact" export no.qa | wc -l)" 0
! "$BIN/quern-config" TEACHERS=none DEVICES=sim:h100 >out 2>&1 &&
  grep -q 'TEACHERS=none is for POLICY=native:DIR or an endpoint' out
ok $? 'a small model needs stage 1'
! "$BIN/quern-config" BUDGET=5 DEVICES=sim:h100 >out 2>&1 &&
  grep -q "BUDGET=5: the budget '5': expected 30m" out
ok $? 'a budget needs a unit'
check_key
! grep -rlF sk-secret-second --exclude=log . ; ok $? 'the second key is nowhere'
done_testing
