#!/bin/bash
# The engine on a real GPU (QUERN_TEST_DEVICE, cuda:0 by default): its operations against the CPU's, one by one, those of
# several GPUs together, and what else the unit tests *_cuda try, which skip where there is none. TAP on stdout.
# limit: 1800
set -u
BUILD=$(cd "${QUERN_BUILD:-build}" && pwd)
[ -e /dev/nvidiactl ] || { echo '1..0 # SKIP no NVIDIA GPU here'; exit 0; }
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
cd "$TMP" || exit 1
n=0
for test in "$BUILD"/test/model/*_cuda; do
    n=$((n + 1))
    name=$(basename "$test")
    if timeout 500 "$test" >out 2>err; then status=ok; else status='not ok'; fi
    if grep -q '^1\.\.0' out; then # there is a GPU, but two are another matter
        case $name in *ranks*) echo "ok $n - $name # SKIP fewer than two GPUs"; continue ;; *) status='not ok' ;; esac
    fi
    echo "$status $n - $name: $(grep -c '^ok' out) of $(grep -c -e '^ok' -e '^not ok' out) right"
    grep -v '^ok' out | grep -v '^1\.\.' | sed 's/^/# /' | head -200
    [ "$status" = ok ] || sed 's/^/# /' err | head -20
done
echo "1..$n"
