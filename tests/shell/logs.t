#!/bin/bash
# Logs rotate: mk/run puts a log of more than a megabyte aside, over the one before, also while the rule runs.
# TAP on stdout.
. "$(dirname "$0")/tap.sh"
log=$tmp/r/log/loud.log
said() { "$root/mk/run" "$log" "$tmp/loud" "$@" >out 2>err; rc=$?; } # WORD LINES
cat >"$tmp/loud" <<'END'
#!/bin/bash
yes "$1 says a sentence of some length, again and again" | head -n "$2" >&2
END
chmod +x "$tmp/loud"
size() { stat -c %s "$1"; }

said first 30000
[ $rc = 0 ] && [ "$(size "$log")" -gt 1000000 ] && [ ! -e "$log.1" ]
ok $? 'a loud rule writes more than a megabyte'
said second 10
[ $rc = 0 ] && [ "$(size "$log")" -lt 2000 ] && grep -q '^second says' "$log" &&
    ! grep -q '^first says' "$log"
ok $? 'the next run of the rule begins a log'
grep -q '^command: .*loud first' "$log.1" && grep -q '^end: .* exit 0$' "$log.1"
ok $? 'the log before a rotation is whole, beside the new one'
said third 10
grep -q '^second says' "$log" && grep -q '^third says' "$log" && grep -q '^first says' "$log.1"
ok $? 'a small log goes on'
said fourth 30000; said fifth 10
grep -q '^fourth says' "$log.1" && grep -q '^second says' "$log.1" && ! grep -q '^first says' "$log.1"
ok $? 'the next rotation replaces the last'
[ "$(ls "$tmp/r/log" | tr '\n' ' ')" = 'loud.log loud.log.1 ' ]; ok $? 'a rule has two files of logs, no more'

# ---- while the rule runs ----
rm "$tmp/r/log/"*
said endless 200000
[ $rc = 0 ] && [ "$(size "$log")" -lt 3100000 ] && [ "$(size "$log.1")" -lt 3100000 ]
ok $? 'the log of a rule that writes 10 MB stays below 3.1 MB'
grep -q '^command: .*loud endless' "$log" && grep -q '^start: ' "$log" && grep -q '^end: .* exit 0$' "$log"
ok $? 'the log that follows names the command, its start and its end'
is 'stderr has every line' "$(grep -c '^endless says' err)" 200000
cat >"$tmp/slow" <<'END'
#!/bin/bash
for i in {1..300}; do echo "line $i" >&2; done
END
chmod +x "$tmp/slow"
"$root/mk/run" "$tmp/r/log/slow.log" "$tmp/slow" >out 2>err
is 'many short lines arrive in order' "$(grep '^line' "$tmp/r/log/slow.log")" "$(printf 'line %d\n' {1..300})"
cat >"$tmp/waits" <<'END'
#!/bin/bash
echo begun >&2
for ((i = 0; i < 10000; i++)); do grep -q '^begun' "$0.log" && exit 0; sleep 0.02; done
exit 3
END
chmod +x "$tmp/waits"
"$root/mk/run" "$tmp/waits.log" "$tmp/waits" >out 2>err; is 'a line is in the log at once' $? 0

# ---- how a rule ended ----
end() { "$root/mk/run" "$tmp/r/log/end.log" bash -c "$1" >out 2>err; }
end 'kill -INT $$'
is 'a rule that is stopped is not said to fail' \
    "$? $(grep -c '^\[end\] stopped after .* s; the same command continues$' err) $(grep -c failed err)" \
    '130 1 0'
end 'exit 4'; is 'a rule that fails is said to fail' \
    "$? $(grep -c '^\[end\] failed with exit 4 after .*; log: ' err)" '4 1'

# ---- closed descriptors: what they would have got goes nowhere, the log gets it once ----
mkdir -p r/log
echo 'echo said >&2; ls -l /proc/$$/fd >fds' >list.sh
three() { [ "$(grep -cE ' [012] -> ' fds)" = 3 ] && ! grep -E ' [012] -> ' fds | grep -q socket; }
for closed in '0<&-' '>&-' '2>&-' '>&- 2>&-' '<&- >&- 2>&-'; do
    rm -f r/log/closed.* fds
    eval "timeout 20 '$root/mk/run' '$tmp/r/log/closed.log' bash list.sh $closed" >out 2>err
    [ $? = 0 ] && [ "$(grep -c '^said' r/log/closed.log)" = 1 ] && three &&
        [ "$(stat -c %s r/log/closed.log)" -lt 1000 ]
    ok $? "mk/run with $closed"
    rm fds
    (cd "$root" && eval "'$BIN/quern-config' --found= --check PROFILE=smoke RUNS='$tmp/r' -- \
        bash -c 'cd $tmp; . ./list.sh' $closed") >out 2>err
    three; ok $? "a program with $closed"
done
(set -f -C -e; export SHELLOPTS; "$root/mk/run" "$tmp/r/log/options.log" bash list.sh) >out 2>err
[ $? = 0 ] && grep -q '^\[options\] [0-9.]* s$' out
ok $? 'exported SHELLOPTS do not reach the scripts'
if unshare -rm true 2>/dev/null; then
    (cd "$root" && unshare -rm bash -c 'mount -t tmpfs none /proc; mk/pipeline crl; echo $?
        "$0/quern-eval" --task relu tasks/relu/baseline.cu' "$BIN") >out 2>err
    [ "$(cat out)" = 3 ] && grep -q '^quern: /proc is empty' err && grep -q '^quern-eval: .*is /proc mou' err
    ok $? 'an empty /proc is named'
fi
# ---- the end of a run whose verdicts were not made ----
last() { "$root/mk/last" "$tmp/r" "$@" >out 2>err; rc=$?; }
last true; is 'a run with its verdicts ends with 0' $rc 0
echo '24 of 33 verdicts were not made: the evaluator failed.' >r/unjudged
last true; [ $rc = 5 ] && [ "$(wc -l <err)" = 1 ] && grep -q '^quern: 24 of 33 verdicts were not made' err
ok $? 'a run without them ends with 5, and says so'
last bash -c 'exit 2'; is 'a run that failed ends with its own status' "$rc$(cat err)" 2
done_testing
