#!/bin/bash
# The library calls and the plain kernels of all operators on a real GPU (QUERN_TEST_DEVICE, cuda:0 by
# default), against the references in double precision. TAP on stdout.
# limit: 900
. "$(dirname "$0")/../shell/tap.sh"
export QUERN_TEST_DEVICE=${QUERN_TEST_DEVICE:-cuda:0}
need_gpu "$QUERN_TEST_DEVICE"
for test in op_routes op_kernels library; do
    timeout 400 "$BUILD/test/eval/test_$test" >out 2>err
    ok $? "$test: $(grep -c '^# aten' out) operators"
    grep -v '^ok' out | grep -v '^1\.\.' | sed 's/^/# /' | head -50
    head -5 err | cut -c1-900 | sed 's/^/# /'
done
done_testing
