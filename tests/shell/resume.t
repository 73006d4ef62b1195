#!/usr/bin/env bash
# limit: 900
# A whole run that is killed at ten random moments ends with the payload digests of an undisturbed run. `make
# crl` does what is missing and nothing else, and make -n and -q tell the truth about it. TAP on stdout.
. "$(dirname "$0")/pipeline.sh"
RANDOM=${QUERN_TEST_SEED:-7}
now() { date +%s.%N; }
same_digests() { # NAME RUN RUN: a failure says which artifacts differ
  local differ; differ=$(diff "$tmp/$2" "$tmp/$3")
  ok $? "$1" "$differ"
}

crl calm; s=$?
[ $s = 0 ] && [ -s "$(dir calm)/report.html" ]; ok $? 'a tiny run ends in a report'
digests calm >"$tmp/calm"
awk -F'\t' '$1 == "crl" && $2 == "all" { exit !($5 > 0) }' "$(dir calm)/report.tsv"
ok $? 'the model of a tiny run writes kernels that work'
none_left; ok $? 'no process is left'

# ---- nothing to do ----
start=$(now); crl calm; s=$?; seconds=$(echo "$(now) - $start" | bc)
[ $s = 0 ] && grep -q "crl of run $prefix-calm is up to date: runs/$prefix-calm/report.html" "$tmp/out" &&
  [ -z "$(ran)" ]
ok $? "a finished run says that there is nothing to do ($seconds s)"
crl calm -q; ok $? 'make -q of a finished run: up to date'
crl calm -n && ! grep -q 'mk/run\|quern-fleet' "$tmp/out"; ok $? 'make -n of a finished run: nothing to run'

# ---- kill -9, ten times: the group, make alone, the fleet, the server, a stage, at moments spread over the
# run ----
stages='quern-(collect|filter|pool|prompt|sample|sft|selfsup|crl|evaluate|results|report) '
stage_process() {
  local p
  for p in $(pgrep -f "(^|/)bin/$stages"); do
    grep -qzxF "QUERN_MARK=$tmp" "/proc/$p/environ" 2>/dev/null && echo "$p" && return
  done
  return 1
}
victim() { # the process to kill for WHAT; empty when there is none
  case $1 in
    group) echo "-$make" ;;
    make) echo "$make" ;;
    fleet) pgrep -P "$make" quern-fleet ;;
    redis) pgrep -P "$(pgrep -P "$make" quern-fleet)" redis-server ;;
    stage) stage_process ;;
  esac
}
artifacts() { find "$(dir killed)" -name '*.qa' 2>/dev/null | wc -l; }
start_run() {
  setsid make -j2 crl "${settings[@]}" RUN="$prefix-killed" >>"$tmp/out" 2>&1 &
  make=$!
}
alive() { kill -0 "$make" 2>/dev/null; }
total=$(wc -l <"$tmp/calm")
ten_kills() { # fails when the run ended before the tenth kill, because this script waited for too long
  local what at try p turn=0
  kills=0 starts=1
  : >"$tmp/out"
  rm -rf "$(dir killed)"
  start_run
  for what in group make fleet redis stage stage redis fleet make group; do
    at=$((turn * total / 14 + RANDOM % 4)) turn=$((turn + 1))
    for try in 1 2 3; do # start again when the run ended by itself
      [ ! -e "$(dir killed)/report.tsv" ] || break 2
      alive || { wait "$make" 2>/dev/null; start_run; starts=$((starts + 1)); }
      wait_for "[ \$(artifacts) -ge $at ] || ! alive" 300
      sleep "0.0$((RANDOM % 10))"
      p=
      wait_for 'p=$(victim '"$what"' 2>/dev/null) && [ -n "$p" ] || ! alive' 150
      [ -n "$p" ] && kill -9 -- "$p" 2>/dev/null || continue
      kills=$((kills + 1))
      echo "## killed $what, $(artifacts) artifacts" >>"$tmp/out"
      break
    done
    [ "$what" = redis ] || [ -z "$p" ] || wait "$make" 2>/dev/null
  done
  ! alive || wait "$make" 2>/dev/null
  [ "$kills" = 10 ] && [ ! -e "$(dir killed)/report.tsv" ]
}
shared=$QUERN_CACHE
QUERN_CACHE=$tmp/cache # kills interrupt compilations, too
for attempt in 1 2 3 4; do ten_kills && break; done
[ "$kills" = 10 ] && [ ! -e "$(dir killed)/report.tsv" ]
ok $? "ten kills ($kills) before the end, $starts starts, attempt $attempt"
grep '^##' "$tmp/out" | sed 's/^/# /'
wait_for '[ -z "$(left)" ]' "$left_s" # the fleet outlives a killed group by a moment
crl killed; s=$?
[ $s = 0 ] && [ -s "$(dir killed)/report.html" ]; ok $? 'a run that was killed ten times ends well'
digests killed >"$tmp/killed"
same_digests 'a run that was killed ten times has the digests of the run that was never killed' calm killed
none_left; ok $? 'no process is left'
is 'no journal, checkpoint or torn file is left' \
  "$(find "$(dir killed)" -name '*.journal' -o -name '*.tmp*' -o -name '*.checkpoint*' | grep -v /queue/)" ''

QUERN_CACHE=$shared

# ---- Ctrl-C, once and twice; a second run beside the first ----
# Of the run that Ctrl-C stops, and of its like.
second=(SEED=2 REPORT_SAMPLES=1 SFT='--plain-epochs 20 --epochs 2 --batch 4 --lr 8e-3')
start_int() { # a process group with SIGINT as in the foreground of a terminal
  : >"$tmp/out"
  perl -e '$SIG{INT} = "DEFAULT"; setpgrp; exec @ARGV' make -j2 crl "${settings[@]}" RUN="$prefix-killed" \
    "${second[@]}" >"$tmp/out" 2>&1 &
  make=$!
}
before=$(sha256sum "$(dir killed)/report.tsv")
start_int; wait_for "grep -q '^\[collect-samples\]' $tmp/out"
start=$(now); kill -INT -- "-$make"; wait "$make"; s=$?
[ $s -gt 128 ] && grep -q 'stopping (again to end at once)' "$tmp/out"
ok $? "Ctrl-C ends a run in $(echo "$(now) - $start" | bc) s, exit $s"
none_left; ok $? 'no process is left'
start_int; wait_for "pgrep -P $make quern-fleet >/dev/null && [ -n \"\$(ours quern-evald)\" ]"
cp "$tmp/out" "$tmp/first"
start=$(now); crl killed "${second[@]}"; s=$?
[ $s != 0 ] && grep -q 'in use by a run that is going on (process [0-9]*)' "$tmp/out"
ok $? "a second run of it says that one is going on ($(echo "$(now) - $start" | bc) s)"
cp "$tmp/first" "$tmp/out"
QUERN_REDIS=unix:$PWD/$(dir killed)/queue/redis.sock "$BIN/quern-queue" status >/dev/null 2>>"$tmp/out" &&
  alive
ok $? 'a refused second run leaves the first one its queue'
kill -INT -- "-$make"; sleep 0.1; kill -INT -- "-$make"; wait "$make"; s=$?
[ $s -gt 128 ]; ok $? "Ctrl-C twice ends a run, exit $s"
none_left; ok $? 'no process is left'
crl killed "${second[@]}"; s=$?
[ $s = 0 ]; ok $? "an interrupted run continues to its end, exit $s"
crl other "${second[@]}"; s=$?
[ $s = 0 ]; ok $? "an undisturbed run with that seed ends well, exit $s"
digests killed >"$tmp/killed"; digests other >"$tmp/other"
same_digests 'the interrupted run has the digests of the undisturbed one' other killed
! cmp -s "$tmp/calm" "$tmp/killed"; ok $? 'and not those of another seed'

# ---- only what is missing ----
runs_only() { # NAME PATTERN...: the last call ran the rules of these patterns and no others
  local name=$1 r extra= lacking=; shift
  local pattern; pattern=$(printf '%s\n' "$@")
  for r in $(ran); do grep -qxE "$pattern" <<<"$r" || extra+=" $r"; done
  for r in "$@"; do ran | grep -qxE "$r" || lacking+=" $r"; done
  [ -z "$extra$lacking" ]; ok $? "$name" "not expected:$extra; lacking:$lacking"
}
same() { sed -n "s|^[a-z-]*: runs/$prefix-$1/\(.*\): same\$|\1|p" "$tmp/out" | sort | tr '\n' ' '; }
again=('report-.*' 'best-.*' report)
crl calm ROUNDS=3; s=$?
[ $s = 0 ] && [ -s "$(dir calm)/crl/3/model/manifest.qa" ]; ok $? 'ROUNDS=3 after 2 makes one round more'
runs_only 'runs round 3 and the report' 'crl-3-.*' "${again[@]}"
crl calm; runs_only 'and back at ROUNDS=2, the report alone' "${again[@]}"
crl calm ROUNDS=1 CRL='--epochs 1 --batch 8 --lr 1e-4'; s=$?
[ $s = 0 ]; runs_only 'a changed setting of stage 3 reruns from there' 'crl-1-.*' "${again[@]}"
crl calm; digests calm | grep -v crl/3 >"$tmp/back"
diff "$tmp/calm" "$tmp/back"; ok $? 'the settings of before go back to the same digests'
rm "$(dir calm)/sft/dataset.qa"
crl calm -q; [ $? = 1 ]; ok $? 'one artifact deleted: make -q says that there is something to do'
crl calm -n; grep -q 'quern-filter' "$tmp/out" && ! grep -q quern-collect "$tmp/out" &&
  [ ! -e "$(dir calm)/sft/dataset.qa" ]
ok $? 'make -n names the stages from there, and runs none'
crl calm; s=$?
digests calm | grep -v crl/3 >"$tmp/back"
[ $s = 0 ] && diff "$tmp/calm" "$tmp/back" >/dev/null && [[ "$(same calm)" = *sft/model/manifest.qa* ]]
ok $? "a deleted artifact is made again, and what follows is the same: $(same calm)"
crl calm -q; ok $? 'a run whose artifact was made again is up to date'
none_left; ok $? 'no process is left'
done_testing
