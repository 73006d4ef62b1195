#!/usr/bin/env bash
# A run that people watch: quern-status and quern-watch while it goes on and after it, the page that is written after every
# round, and progress on a terminal although a log is kept. TAP on stdout.
. "$(dirname "$0")/pipeline.sh"
need script
at=runs/$prefix-seen

crl seen & run_pid=$!
wait_for "[ -e $at/collect/pool.qa ]" 240; wait_for "[ -e $at/report.html ]" 60
status() { "$BIN/quern-status" "$prefix-seen" "$@" >"$tmp/status" 2>"$tmp/err"; }
drawn() { grep -c "going on" "$tmp/typed" 2>/dev/null; }
logs=("$tmp/out" "$tmp/status" "$tmp/err")
status && grep -q "^run $prefix-seen: going on" "$tmp/status" && grep -qE '^collect .* done$' "$tmp/status" && grep -qE '^crl +0 of 2' "$tmp/status"
ok $? 'quern-status: what is done and what is to come'
grep -qE '^sim:h100 +[1-9][0-9]* evaluators?, [0-9]+ at work; [0-9]+ wait' "$tmp/status"; ok $? 'the queue, and its evaluators'
grep -qE '^relu +[0-9.]+x +[0-9.]+x +[0-9]+  collect$' "$tmp/status"; ok $? 'the best so far of each task'
grep -q 'http-equiv="refresh"' "$at/report.html" && grep -q 'This run is going on' "$at/report.html" && [ ! -e "$at/report.tsv" ]
ok $? 'the page is there, and reloads itself'
status --json && "$BIN/quern-watch" "$prefix-seen" >"$tmp/watched" && ! grep -q $'\033' "$tmp/watched" && grep -q '^run .* going on' "$tmp/watched"
ok $? 'quern-watch without a terminal prints it once'
timeout 20 script -qec "$BIN/quern-watch --every 0.2 $prefix-seen" "$tmp/typed" </dev/null >/dev/null 2>&1 & watch=$!
wait_for '[ "0$(drawn)" -ge 3 ]' 15
ok $? 'on a terminal it draws again and again'
kill "$watch" 2>/dev/null; wait "$watch" 2>/dev/null
wait "$run_pid"; s=$?
[ $s = 0 ] && ! grep -q 'http-equiv="refresh"' "$at/report.html" && [ -s "$at/report.tsv" ]; ok $? 'the last page stands still'
status && grep -q "^run $prefix-seen: finished" "$tmp/status" && grep -qE '^crl +2 of 2 .* done$' "$tmp/status"; ok $? 'a finished run'
[ -z "$(ls "$at/log" | grep progress)" ]; ok $? 'no file of progress is left'
"$BIN/quern-status" "$at" >"$tmp/status" && grep -q finished "$tmp/status"; ok $? 'a run by its folder'
"$BIN/quern-status" nothing >"$tmp/status" 2>"$tmp/err"; [ $? = 2 ] && grep -q '^quern-status: there is no run nothing: ' "$tmp/err"; ok $? 'no such run'

# ---- progress: to the terminal, not to the log ----
cat >"$tmp/bar" <<'END'
#!/bin/bash
echo said >&2
[ -n "${QUERN_PROGRESS:-}" ] && echo "walk 1 2 steps 1 1" >"$QUERN_PROGRESS"
[ -z "${QUERN_TERMINAL:-}" ] || printf bar >&"$QUERN_TERMINAL"
END
chmod +x "$tmp/bar"
script -qec "mk/run $tmp/logs/a.log $tmp/bar" "$tmp/typed" </dev/null >/dev/null
grep -q bar "$tmp/typed" && grep -q said "$tmp/typed" && grep -qx said "$tmp/logs/a.log" && ! grep -qx '.*bar' <(grep -v '^command' "$tmp/logs/a.log")
ok $? 'mk/run hands on the terminal'
mk/run "$tmp/logs/b.log" "$tmp/bar" >"$tmp/out" 2>&1; ! grep -q bar <(grep -v '^command' "$tmp/out") && [ ! -e "$tmp/logs/b.progress" ]
ok $? 'where there is none, there is none to hand on'
done_testing
