#!/bin/bash
# The model engine on a real GPU: the unit tests *_cuda, which compare each operation with the CPU's, on one
# GPU and on several. TAP on stdout.
# limit: 1800
. "$(dirname "$0")/../shell/tap.sh"
need_gpu cuda:0
diagnose() { head -20 err | sed 's/^/# /'; }
for test in "$BUILD"/test/model/*_cuda; do
    name=$(basename "$test")
    timeout 500 "$test" >out 2>err; status=$?
    if grep -q '^1\.\.0' out; then # the test has skipped: with one GPU only those of several may
        case $name in *ranks*) ok 0 "$name # SKIP fewer than two GPUs"; continue ;; *) status=1 ;; esac
    fi
    ok $status "$name: $(grep -c '^ok' out) of $(grep -c -e '^ok' -e '^not ok' out) right"
    grep -v '^ok' out | grep -v '^1\.\.' | sed 's/^/# /' | head -200
done
done_testing
