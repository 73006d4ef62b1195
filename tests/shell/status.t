#!/usr/bin/env bash
# A run that people watch: quern-status and quern-watch while it goes on and after it, the page that is
# written after every round, and progress on a terminal although a log is kept. TAP on stdout.
. "$(dirname "$0")/pipeline.sh"
need script
at=runs/$prefix-seen

crl seen & run_pid=$!
wait_for "[ -e $at/collect/pool.qa ]" 400; wait_for "[ -e $at/report.html ]"
# Its queue pauses while it is looked at: a run that waits for its next verdicts cannot end meanwhile.
queue() { "$BIN/quern-queue" "$1" --redis "unix:$PWD/$at/queue/redis.sock" >>"$tmp/out" 2>&1; }
queue pause; ok $? 'the queue of a run pauses'
status() { "$BIN/quern-status" "$prefix-seen" "$@" >"$tmp/status" 2>"$tmp/err"; }
drawn() { grep -c "going on" "$tmp/typed" 2>/dev/null; }
logs=("$tmp/out" "$tmp/status" "$tmp/err" "$tmp/scrape")
status && grep -q "^run $prefix-seen: going on" "$tmp/status" && grep -qE '^collect .* done$' "$tmp/status" &&
    grep -qE '^crl +0 of 2' "$tmp/status"
ok $? 'quern-status: what is done and what is to come'
grep -qE '^sim:h100 +[1-9][0-9]* evaluators?, [0-9]+ at work; [0-9]+ wait' "$tmp/status"
ok $? 'quern-status shows the queue and its evaluators'
grep -qE '^relu +[0-9.]+x +[0-9.]+x +[0-9]+  collect$' "$tmp/status"
ok $? 'quern-status shows the best so far of each task'
grep -q 'http-equiv="refresh"' "$at/report.html" && grep -q 'This run is going on' "$at/report.html" &&
    [ ! -e "$at/report.tsv" ]
ok $? 'the page is there, and reloads itself'
QUERN_LOG=info "$BIN/quern-metrics" "$prefix-seen" --port 0 --every 0.2 2>"$tmp/served" & served=$!
wait_for 'grep -q "serving http" "$tmp/served"'
port=$(sed -n 's|.*serving http://127.0.0.1:\([0-9]*\)/metrics.*|\1|p' "$tmp/served")
fetch() { exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3 &&
    cat <&3 >"$tmp/scrape"; exec 3<&-; } 2>/dev/null
wait_for 'fetch /metrics && grep -q "^quern_verdicts_total" "$tmp/scrape"'
head -1 "$tmp/scrape" | grep -q ' 200 ' && grep -qi '^content-type: text/plain; version=0.0.4' "$tmp/scrape"
ok $? 'quern-metrics answers a scrape'
printf 'GET /metrics HTTP/1.1\r\nHost: a\r\n%s\r\n' '' $'Connection: close\r\n' >"$tmp/asks"
twice() { exec 3<>"/dev/tcp/127.0.0.1/$port" && cat "$tmp/asks" >&3 &&
    timeout 300 cat <&3 >"$tmp/scrape"; exec 3<&-; } 2>/dev/null
twice; is 'quern-metrics answers two scrapes on one connection' "$(grep -ac '^HTTP/1.1 200' "$tmp/scrape")" 2
state_is_told() { # after the pause the run may be over, and its queue with it, before anyone has asked
  fetch /metrics && grep -q "^quern_run_state{run=\"$prefix-seen\",state=\"finished\"} 1" "$tmp/scrape" &&
      return 0
  grep -q "^quern_run_state{run=\"$prefix-seen\",state=\"going on\"} 1" "$tmp/scrape" &&
    grep -qE '^quern_jobs\{run="[^"]*",class="sim:h100",state="done"\} [1-9]' "$tmp/scrape" &&
    grep -qE '^quern_evaluators\{.*class="sim:h100"\} [1-9]' "$tmp/scrape"
}
status --json && "$BIN/quern-watch" "$prefix-seen" >"$tmp/watched" && ! grep -q $'\033' "$tmp/watched" &&
    grep -q '^run .* going on' "$tmp/watched"
ok $? 'quern-watch without a terminal prints it once'
timeout 1000 script -qec "$(printf %q "$BIN")/quern-watch --every 0.2 $prefix-seen" "$tmp/typed" </dev/null \
    >/dev/null 2>&1 & watch=$!
wait_for '[ "0$(drawn)" -ge 3 ]'
ok $? 'quern-watch on a terminal draws again and again'
kill "$watch" 2>/dev/null; wait "$watch" 2>/dev/null
queue resume
wait_for state_is_told # what the queue says comes with the next look at it
ok $? 'quern-metrics has the state of the run, jobs and evaluators'
fetch /other; head -1 "$tmp/scrape" | grep -q ' 404 '; ok $? 'quern-metrics has no other path'
kill "$served"; wait "$served"; ok $? 'SIGTERM ends quern-metrics'
wait "$run_pid"; s=$?
[ $s = 0 ] && ! grep -q 'http-equiv="refresh"' "$at/report.html" && [ -s "$at/report.tsv" ]
ok $? 'the last page stands still'
status && grep -q "^run $prefix-seen: finished" "$tmp/status" &&
    grep -qE '^crl +2 of 2 .* done$' "$tmp/status"
ok $? 'quern-status shows a finished run'
[ ! -e "$at/queue/appendonlydir" ] && "$BIN/quern-clean" "$prefix-seen" | grep -q '^queue  *0.0 '
ok $? 'the queue of a finished run takes no space'
[ -z "$(ls "$at/log" | grep progress)" ]; ok $? 'no file of progress is left'
"$BIN/quern-metrics" --once "$prefix-seen" >"$tmp/scrape"
# Every metric of the dashboard exists, but those of a queue that is gone and of prices.
asked=$(grep -o 'quern_[a-z_]*' share/grafana/quern.json | sort -u)
[ "$(wc -w <<<"$asked")" -ge 10 ] && for m in $asked; do
  grep -q "^# TYPE $m " "$tmp/scrape" || [ $m = quern_cost_dollars_total ] ||
      { echo "# $m is unknown"; false; break; }
done
ok $? 'the dashboard asks for metrics that exist'
told=$(awk '/^quern_verdicts_total.*stage="collect"/ { n += $2 } END { print n }' "$tmp/scrape")
is 'the verdicts of a stage add up' "$told" \
    "$("$BIN/quern-artifact" export "$at/collect/verdicts.qa" | wc -l)"
awk '/^#/ { next } !/^quern_[a-z_]+\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\} (NaN|-?[0-9.e+-]+)$/ { exit 1 }' \
    "$tmp/scrape"
ok $? 'every line has the form that Prometheus reads'
# The event files, read by an independent reader: lengths, masked CRC-32C, and the loss of each step.
python3 - "$at/metrics" >"$tmp/events" 2>&1 <<'END'
import glob, json, struct, sys
def crc(data):
    c = 0xffffffff
    for b in data:
        c ^= b
        for _ in range(8): c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
    c ^= 0xffffffff
    return ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff
def fields(b):
    i = 0
    def varint():
        nonlocal i
        v = s = 0
        while True:
            v |= (b[i] & 127) << s; s += 7; i += 1
            if b[i - 1] < 128: return v
    while i < len(b):
        key = varint()
        n = {0: None, 1: 8, 2: None, 5: 4}[key & 7]
        if key & 7 == 0: yield key >> 3, varint(); continue
        if n is None: n = varint()
        yield key >> 3, b[i:i + n]; i += n
found = []
for path in glob.glob(sys.argv[1] + '/*/events.out.tfevents.*'):
    data = open(path, 'rb').read(); at = 0; first = True
    while at < len(data):
        n, c = struct.unpack_from('<QI', data, at)
        assert c == crc(data[at:at + 8]); event = data[at + 12:at + 12 + n]
        assert struct.unpack_from('<I', data, at + 12 + n)[0] == crc(event); at += 16 + n
        e = dict(fields(event))
        if first: assert e[3] == b'brain.Event:2'; first = False; continue
        v = dict(fields(dict(fields(e[5]))[1]))
        found.append((path.split('/')[-2], e[2], v[1].decode(), struct.unpack('<f', v[2])[0]))
lines = [json.loads(l) for l in open(sys.argv[1] + '/steps.jsonl')]
want = [(l['stage'], l['step'], l['name'], struct.unpack('<f', struct.pack('<f', l['value']))[0])
        for l in lines]
assert len(want) > 100 and sorted(map(repr, found)) == sorted(map(repr, want))
losses = [l for l in lines if l['stage'] == 'sft' and l['name'] == 'loss']
assert [l['step'] for l in losses] == sorted(l['step'] for l in losses)
assert losses[-1]['value'] < losses[0]['value']
END
ok $? 'steps as JSON lines and as TensorBoard events agree'
[ ! -s "$tmp/events" ] || sed 's/^/# /' "$tmp/events"
"$BIN/quern-status" "$at" >"$tmp/status" && grep -q finished "$tmp/status"
ok $? 'a run is found by its folder'
"$BIN/quern-status" nothing >"$tmp/status" 2>"$tmp/err"
[ $? = 2 ] && grep -q '^quern-status: there is no run nothing: ' "$tmp/err"
ok $? 'a run that is not there is refused'

# ---- a finished run that goes on: its page and table are kept from the start on ----
cp "$at/report.html" "$tmp/old.html"; cp "$at/report.tsv" "$tmp/old.tsv"
kept() { cmp -s "$at/report-1.html" "$tmp/old.html" && cmp -s "$at/report-1.tsv" "$tmp/old.tsv"; }
crl seen ROUNDS=3 & run_pid=$!
wait_for "[ -e $at/crl/3/pool.qa ]" 240; wait_for "grep -q 'http-equiv=.refresh' $at/report.html" 60
kept; ok $? 'the page of before is kept while a finished run goes on'
wait "$run_pid"; s=$?
[ $s = 0 ] && kept && ! cmp -s "$at/report.html" "$tmp/old.html" &&
    grep -q "the report is kept as $at/report-1.html" "$tmp/out"
ok $? 'the page of before is kept after a run that goes on'
crl seen ROUNDS=3 && [ ! -e "$at/report-2.html" ] && [ ! -e "$at/report-2.tsv" ]
ok $? 'a run with nothing to do keeps no page'
"$BIN/quern-clean" --free "$prefix-seen" >/dev/null 2>&1; kept; ok $? 'quern-clean leaves kept pages alone'

# ---- progress: to the terminal, not to the log ----
cat >"$tmp/bar" <<'END'
#!/bin/bash
echo said >&2
echo "walk 1 2 steps 1 1" >"${QUERN_PROGRESS#*:}"
[ "${QUERN_PROGRESS#*:}" = "$QUERN_PROGRESS" ] || printf bar >&"${QUERN_PROGRESS%%:*}"
END
chmod +x "$tmp/bar"
script -qec "mk/run $tmp/logs/a.log $tmp/bar" "$tmp/typed" </dev/null >/dev/null
grep -q bar "$tmp/typed" && grep -q said "$tmp/typed" && grep -qx said "$tmp/logs/a.log" &&
    ! grep -qx '.*bar' <(grep -v '^command' "$tmp/logs/a.log")
ok $? 'mk/run hands on the terminal'
mk/run "$tmp/logs/b.log" "$tmp/bar" >"$tmp/out" 2>&1; ! grep -q bar <(grep -v '^command' "$tmp/out") &&
    [ ! -e "$tmp/logs/b.progress" ]
ok $? 'mk/run without a terminal hands on none'
done_testing
