#!/usr/bin/env bash
# limit: 900
# Wrong settings, damaged files, a full disk, an endpoint that misbehaves, a task that no teacher knows. Each
# gives one clear sentence and leaves no process, and the same command then continues to the digests of an
# undisturbed run. TAP on stdout.
. "$(dirname "$0")/pipeline.sh"
# A fault of one round, of little training and of few samples is a fault of more.
sed -i 's/^ROUNDS .*/ROUNDS ?= 1/; s/^REPORT_SAMPLES .*/REPORT_SAMPLES ?= 1/;
  s/^SFT .*/SFT ?= --plain-epochs 20 --epochs 2 --batch 4 --lr 8e-3/' "$tmp/tiny.mk"
server= full=$(dir full)
at_exit=('[ -z "$server" ] || kill $server' '! mountpoint -q "$full" || umount "$full"' "${at_exit[@]}")
says() { grep -qE -- "$1" "$tmp/out"; }

# ---- settings: refused before anything starts ----
refused() { # SENTENCE NAME=VALUE...
  local sentence=$1; shift
  crl refused "$@"; local s=$?
  [ $s = 2 ] && [ "$(grep -c '^quern' "$tmp/out")" = 1 ] && says "^quern: $sentence" &&
    [ ! -e "$(dir refused)" ]
  ok $? "$*: $(grep -m1 '^quern' "$tmp/out")"
}
refused "TASKS=relu,unknown: no task \"unknown\" in $QUERN_TASKS" TASKS=relu,unknown
refused 'PROFILE=unknown: expected' PROFILE=unknown
refused 'CONFIG=/none.mk: there is no such file' CONFIG=/none.mk
refused 'POLICY=foo: expected small, native:DIR' POLICY=foo
refused "POLICY=native:$tmp: there is no $tmp/config.json" POLICY=native:"$tmp"
refused 'ROUNDS=two: expected a whole number' ROUNDS=two
refused 'CLASSES=sim:h100 sim:x100: there is no sim:x100; expected sim:PROFILE' CLASSES='sim:h100 sim:x100'
refused 'ROUND=3: there is no such variable; did you mean ROUNDS' ROUND=3
refused 'CRL: --loss expects one of' CRL='--loss gpso'
none_left; ok $? 'no process is left'

crl calm; ok $? 'a tiny run'
digests calm >"$tmp/calm"
continues() { # RUN WHAT: the same command once more
  crl "$1" "${@:3}"; local s=$?
  digests "$1" >"$tmp/again" 2>/dev/null
  [ $s = 0 ] && diff "$tmp/calm" "$tmp/again" >>"$tmp/out"
  ok $? "$2: the same command continues, to the same digests"
}

# ---- damaged files: they are found before the first stage starts ----
f=$(dir calm)/collect/samples.qa
truncate -s $(($(stat -c %s "$f") / 2)) "$f"
crl calm; s=$?
[ $s = 0 ] && says "samples.qa.*it is kept as .*samples.qa.damaged, and the same command makes it again"
ok $? "half an artifact: $(grep -m1 'kept as' "$tmp/out")"
rm -f "$f.damaged"; continues calm 'half an artifact'
f=$(dir calm)/sft/model/model.safetensors
sign=$(tail -c 1 "$f" | od -An -tu1) # the last byte has the sign of the last number
printf "\\x$(printf %x $((sign ^ 128)))" | dd of="$f" bs=1 seek=$(($(stat -c %s "$f") - 1)) conv=notrunc \
  status=none
rm "$(dir calm)/report/sft/samples.qa"
crl calm; s=$?
[ $s = 0 ] && says "model.safetensors is not what its manifest says; it is kept as .*manifest.qa.damaged"
ok $? "one sign of a model's weights: $(grep -m1 'kept as' "$tmp/out")"
rm -f "${f%/*}"/*.damaged; continues calm 'one sign of a model'
f=$(dir calm)/report/crl/verdicts.qa
LC_ALL=C sed -i '0,/quern-evaluate/s//quern-evaluatd/' "$f" # no digest of the artifact covers its header
rm "$(dir calm)/selfsup/1/model/config.json"
crl calm; s=$?; digests calm >"$tmp/again"
[ $s = 0 ] && says "$f.* is not what was made|$f.*kept as" && diff "$tmp/calm" "$tmp/again" >>"$tmp/out"
ok $? "one bit of a header: $(grep -m1 "$f" "$tmp/out")"
says "selfsup/1/model/config.json is not there" && [ -s "$(dir calm)/selfsup/1/model/config.json" ]
ok $? "a model's config.json that is not there: $(grep -m1 'config.json is not there' "$tmp/out")"
rm -f "$f.damaged"

# ---- a full disk, at several places in the run ----
mkdir -p "$full"
if mount -t tmpfs -o size=100k tmpfs "$full" 2>/dev/null; then
  sentences=0
  for size in 300k 900k 1300k; do
    mount -o remount,size=$size "$full"
    crl full && break
    says 'No space left on device|the disk .* is full' && sentences=$((sentences + 1))
  done
  [ $sentences = 3 ]
  ok $? "a full disk, three times: $(grep -m1 -oE 'quern-.*(No space left on device|the disk .* is full).*' \
    "$tmp/out")"
  none_left; ok $? 'no process is left'
  mount -o remount,size=64m "$full"
  continues full 'room again'
  umount "$full"
else
  ok 0 'a full disk # SKIP no right to mount'
fi

# ---- endpoints ----
if command -v python3 >/dev/null; then
  python3 tests/shell/fake_llm.py "$tmp/requests" 429:0.1 500 half nothing kernel:0 >"$tmp/port" 2>/dev/null &
  server=$!
  wait_for '[ -s $tmp/port ]'
  export OPENAI_BASE_URL=http://127.0.0.1:$(cat "$tmp/port")/v1 OPENAI_API_KEY=sk-secret-0123456789abcdef \
    no_proxy=127.0.0.1
  crl endpoint TASKS=relu POLICY=openai:fake ROUNDS=1 REPORT_SAMPLES=2; s=$?
  [ $s = 0 ] &&
    awk -F'\t' '$1 == "crl" && $2 == "train" { exit !($4 == 2 && $5 > 0) }' "$(dir endpoint)/report.tsv"
  ok $? 'POLICY=openai: 429, 500, half a JSON and nothing for each prompt, and the run ends in its report'
  crl teacher TASKS=relu TEACHERS=openai:fake COLLECT='--trials 24 --keep 2' SELFSUP_ROUNDS=0 ROUNDS=0; s=$?
  [ $s = 0 ]; ok $? 'TEACHERS=openai likewise'
  ! grep -rlF sk-secret "$(dir endpoint)" "$(dir teacher)" "$tmp/out"; ok $? 'the key is nowhere'
  kill $server; wait $server 2>/dev/null
  server=
fi

# ---- the seed of the judged inputs: random, kept, and known only where verdicts are ----
crl hidden TASKS=relu ROUNDS=1 SECRET=; s=$?
secret=$(cat "$(dir hidden)/cfg/secret")
digests hidden >"$tmp/hidden"
[ $s = 0 ] && [ -n "$secret" ] && "$BIN/quern-artifact" export "$(dir hidden)/collect/verdicts.qa" |
  grep -qF "\"$secret\""
ok $? 'without SECRET a seed is drawn, and its verdicts say it'
! grep -rlF "$secret" "$(dir hidden)" "$tmp/out" --include='*' --exclude-dir=queue |
  grep -vE '/cfg/secret$|verdicts[^/]*\.qa$|best/results.qa$' >"$tmp/leaks"
ok $? "no file but the seed's and the verdicts holds the drawn seed: $(tr '\n' ' ' <"$tmp/leaks")"
rm "$(dir hidden)/crl/1/verdicts.qa" "$(dir hidden)/queue" -r; crl hidden TASKS=relu ROUNDS=1 SECRET=; s=$?
digests hidden >"$tmp/again"
[ $s = 0 ] && [ "$(cat "$(dir hidden)/cfg/secret")" = "$secret" ] &&
  diff "$tmp/hidden" "$tmp/again" >>"$tmp/out"
ok $? 'a run keeps the seed that was drawn, and its digests'

# ---- a model directory that an earlier run made ----
crl native POLICY=native:"$(dir calm)/sft/model" STYLE=brief ROUNDS=0; s=$?
[ $s = 0 ] && [ -s "$(dir native)/report.html" ]; ok $? 'POLICY=native with the model of another run'

# ---- tasks that were added: one of operators that the generator knows, one of none ----
mkdir "$tmp/tasks" "$tmp/teacher"
cp -r tasks/relu "$tmp/tasks/relu"; cp -r tasks/relu "$tmp/tasks/novel"
sed -i 's/"name": *"relu"/"name": "novel"/; /"operators"/d' \
  "$tmp/tasks/novel/task.json"
QUERN_TASKS=$tmp/tasks "$BIN/quern-fleet" run --workers 1 --dir "$tmp/q" -- "$BIN/quern-collect" \
  --output "$tmp/novel.qa" --trials 8 --keep 2 >"$tmp/out" 2>&1; s=$?
[ $s = 0 ] && says 'the generator draws no kernels: task novel: .*has no graph' &&
  "$BIN/quern-artifact" export "$tmp/novel.qa" | grep -q 'collect/relu/generator'
ok $? 'a task without operators is said; the others are collected'
none_left; ok $? 'no process is left'
done_testing
