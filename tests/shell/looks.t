#!/usr/bin/env bash
# Programs that look at a run, used wrongly: no run, a run that may not be read, a queue that does not answer,
# a narrow terminal, a reader that leaves. One sentence each. TAP on stdout.
. "$(dirname "$0")/tap.sh"
unset RUN RUNS PROFILE CONFIG DEVICE DEVICES CLASSES TASKS NO_COLOR
umask 022 # another user looks at some
chmod 755 "$tmp"
mkdir -p runs/empty runs/a/log runs/a/queue
: >runs/empty/settings.mk; : >runs/a/queue/lock; : >runs/a/queue/redis.log
"$BIN/quern-config" PROFILE=smoke DEVICES=sim:h100 RUN=a --output=runs/a/settings.mk >out 2>err
for i in 1 2 3; do # a failed rule whose last message is long
  printf 'command: x\nstart: 2026-01-01T00:00:0%dZ\n%0300d\nend: 2026-01-01T00:00:09Z, 1.0 s, exit 1\n' $i 7 \
    >runs/a/log/crl-$i-samples.log
done

# ---- a run that is not there, is nothing, or may not be read ----
for p in status watch metrics; do
  run quern-$p ''; [ $rc = 2 ] && sentence quern-$p "expected the name or the folder of a run, found ''"
  ok $? "quern-$p of no name"
  run quern-$p none; [ $rc = 2 ] && sentence quern-$p 'there is no run none: '
  ok $? "quern-$p of a run that is not there"
  run quern-$p empty; [ $rc = 1 ] && sentence quern-$p 'runs/empty/settings.mk holds no setting'
  ok $? "quern-$p of a run whose settings are empty"
done
run quern-compare a none; [ $rc = 2 ] && sentence quern-compare 'there is no run none: '
ok $? 'quern-compare of a run that is not there'
run quern-clean ../a; [ $rc = 2 ] && sentence quern-clean 'expected the name of a run'
ok $? 'quern-clean takes names alone'
run quern-status nothing-like-it; [ $rc = 2 ] && grep -Eq '; there are (a, empty|empty, a)$' err
ok $? 'the runs that are there are named'
mkdir -p runs/sought/search; : >runs/sought/search/begun
run quern-status sought; [ $rc = 2 ] && sentence quern-status 'runs/sought is a search of make optimize, '
ok $? 'a search of make optimize is told from no run'
mkdir runs/overnight; cp runs/a/settings.mk runs/overnight/; run quern-status overnihgt
[ $rc = 2 ] && sentence quern-status '; did you mean overnight?'
ok $? 'the run that is meant is named'
rm -r runs/overnight
as=()
if [ "$UID" = 0 ]; then as=(setpriv --reuid 65534 --regid 65534 --clear-groups); fi
if "${as[@]}" "$BIN/quern-status" --version >/dev/null 2>&1; then
  chmod 555 runs/a/queue
  "${as[@]}" "$BIN/quern-clean" --free a >out 2>err </dev/null; rc=$?
  [ $rc = 3 ] && sentence quern-clean 'cannot remove runs/a/queue/'
  ok $? 'a file that may not be removed is named'
  chmod 000 runs/a
  "${as[@]}" "$BIN/quern-status" a >out 2>err </dev/null; rc=$?
  [ $rc = 3 ] && sentence quern-status 'cannot open runs/a/settings.mk: Permission denied'
  ok $? 'a run that may not be read is named'
  chmod 755 runs/a runs/a/queue
fi

# ---- a reader that leaves ----
mkfifo gone; exec {reader}<>gone {writer}>gone {reader}<&-
"$BIN/quern-metrics" --once a >&$writer 2>err
is 'a reader that has left is no failure to speak of' "$? $(cat err)" '141 '
exec {writer}>&-

# ---- a terminal ----
need script
bin=$(printf %q "$BIN") # as a word of a shell
typed() { timeout 120 script -qec "$1" typed </dev/null >/dev/null; sed -i '/^Script /d' typed; }
typed "$bin/quern-status a"; grep -q $'\033' typed; ok $? 'a terminal gets colours'
NO_COLOR=1 typed "$bin/quern-status a"; grep -q '^run a: failed' typed && ! grep -q $'\033' typed
ok $? 'a terminal gets no colours with NO_COLOR'
NO_COLOR= typed "$bin/quern-status a"; grep -q $'\033' typed; ok $? 'an empty NO_COLOR forbids nothing'
(flock 9; exec sleep 1000 >/dev/null 2>&1) 9>runs/a/queue/lock & holder=$! # the run goes on
at_exit+=('kill $holder 2>/dev/null')
wait_for '! flock -n -s runs/a/queue/lock true'
# watched COLUMNS ROWS COMMAND: once quern-watch has drawn a page on such a terminal, COMMAND is run
watched() {
  : >typed
  (wait_for 'grep -q "going on" typed'; eval "$3") & typed \
    "stty cols $1 rows $2; echo \$\$ >watch; exec $bin/quern-watch --every 0.2 a"
  wait $!
}
watched 20 6 'kill -INT $(cat watch)'
widest=$(sed 's/\r//g; /\x1b\[?1049l/,$d; s/\x1b\[[?0-9;]*[A-Za-z]//g' typed |
  awk '{ if (length > n) n = length } END { print n + 0 }')
lines=$(tr -d '\r' <typed | awk -v RS='\033\\[H' 'NR > 1 { n = gsub(/\n/, "\n"); if (NR == 2) print n }')
[ "$(grep -c $'\033\[?1049h' typed)" = 1 ] && [ "$(grep -c $'\033\[?1049l' typed)" = 1 ]
ok $? 'Ctrl-C leaves the other screen'
[ "$lines" -le 6 ] && [ "$widest" = 20 ]
ok $? "a page has the size of the terminal: $lines lines, $widest columns"
watched 80 24 'mv runs/a/settings.mk runs/a/gone.mk'; mv runs/a/gone.mk runs/a/settings.mk
tail -c 300 typed | sed 's/.*\x1b\[?1049l//' | grep -q 'quern-watch: there is no run a: '
ok $? 'a run that vanishes is told after the other screen'

# ---- a queue that does not answer ----
for try in 1 2 3 4 5; do # a busy machine may take longer
  began=$SECONDS
  QUERN_REDIS=redis://127.0.0.1:1 run quern-status a
  took=$((SECONDS - began))
  [ $took -gt 10 ] || break
done
[ $rc = 0 ] && grep -q '^The queue does not answer\.$' out && [ $took -le 10 ]
ok $? 'a queue that does not answer is left out at once'
done_testing
