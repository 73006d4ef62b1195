#!/usr/bin/env bash
# The order of tests: tests/run notes what a test took, and tests/order puts the longest first. tests/failed
# explains what failed. TAP on stdout.
. "$(dirname "$0")/tap.sh"
mkdir -p tests/shell tests/unit build/test/eval docs && cp "$root/tests/run" "$root/tests/order" tests
: >docs/environment.md
export QUERN_BUILD=$tmp/build
order() { tests/order "$@" | tr '\n' ' '; }
given=(tests/shell/a.t tests/shell/b.t build/test/eval/test_c build/test/eval/test_d)
printf '%s\n' 'shell/a 2' 'shell/b 9' 'eval/c 4' >tests/times
is 'the longest first; one of which nothing is known takes three seconds' "$(order "${given[@]}")" \
  'tests/shell/b.t build/test/eval/test_c build/test/eval/test_d tests/shell/a.t '
printf '%s\n' 'shell/a 1.0' 'shell/a 12.5' >build/test-times
is 'what was measured last counts' "$(order "${given[@]}")" \
  'tests/shell/a.t tests/shell/b.t build/test/eval/test_c build/test/eval/test_d '
is 'the short ones, by the table' "$(order --under 4 "${given[@]}")" 'tests/shell/a.t build/test/eval/test_d '
tests/order --keep "${given[@]:0:3}"
is 'the times become the table' "$(cat tests/times)" $'shell/a 12\nshell/b 9\neval/c 4'

echo 'echo 1..0' >tests/shell/a.t
echo 'exit 3' >tests/shell/b.t
tests/run tests/shell/a.t >out; tests/run tests/shell/b.t >>out; rc=$?
[ $rc = 3 ] && grep -q '^shell/a 0\.[0-9]$' build/test-times && ! grep -q shell/b build/test-times
ok $? 'a test that passes is noted, one that fails is not'
printf '%s\n' '#!/bin/sh' 'echo ok 1; echo told >&2' >build/test/eval/test_c; chmod +x build/test/eval/test_c
tests/run -v build/test/eval/test_c >out 2>err && grep -q told err && [ ! -e build/trash/eval-test_c ]
ok $? '-v: what a unit test says is on the terminal'
tests/run build/test/eval/test_c >out 2>err && [ ! -s err ] && grep -q '^ok 1' out
ok $? 'without it, it is kept for a failure'

{
  echo ok 1 - first; echo '# said of the next one'; echo not ok 2 - second
  seq -f '#   out| line %g' 30; echo "# got 'a', expected 'b'"; echo ok 3 - third; echo '# needless'
} >build/trash/shell-b/tap
is 'what explains a failure comes before the end of its log' "$("$root/tests/failed" | head -5)" \
  "shell-b:
not ok 2 - second
# said of the next one
# got 'a', expected 'b'
#   out| line 18"
is 'and both have at most 15 lines' "$("$root/tests/failed" | tail -1; "$root/tests/failed" | wc -l)" \
  $'#   out| line 30\n17'
done_testing
