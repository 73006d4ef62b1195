#!/bin/bash
# Logs rotate: mk/run puts a log of more than a megabyte aside, over the one before. TAP on stdout.
. "$(dirname "$0")/tap.sh"
log=$tmp/r/log/loud.log
said() { "$root/mk/run" "$log" "$tmp/loud" "$@" >out 2>err; rc=$?; } # WORD LINES
cat >"$tmp/loud" <<'END'
#!/bin/bash
yes "$1 says a sentence of some length, again and again" | head -n "$2" >&2
END
chmod +x "$tmp/loud"
size() { stat -c %s "$1"; }

said first 40000
[ $rc = 0 ] && [ "$(size "$log")" -gt 1000000 ] && [ ! -e "$log.1" ]; ok $? 'a loud rule writes more than a megabyte'
said second 10
[ $rc = 0 ] && [ "$(size "$log")" -lt 2000 ] && grep -q '^second says' "$log" && ! grep -q '^first says' "$log"
ok $? 'the next run of the rule begins a log'
grep -q '^command: .*loud first' "$log.1" && grep -q '^end: .* exit 0$' "$log.1"; ok $? 'the log before is whole, beside it'
said third 10
grep -q '^second says' "$log" && grep -q '^third says' "$log" && grep -q '^first says' "$log.1"; ok $? 'a small log goes on'
said fourth 40000; said fifth 10
grep -q '^fourth says' "$log.1" && grep -q '^second says' "$log.1" && ! grep -q '^first says' "$log.1"; ok $? 'the next rotation replaces the last'
[ "$(ls "$tmp/r/log" | tr '\n' ' ')" = 'loud.log loud.log.1 ' ]; ok $? 'two files a rule, no more'
done_testing
