#!/bin/bash
# quern why on a real GPU (QUERN_TEST_DEVICE, cuda:0 by default) beside the simulator: the limiter that each
# names for ten kernels, chosen for their spread of work, and all counters of both as comments. TAP on stdout.
# limit: 300
. "$(dirname "$0")/../shell/tap.sh"
DEVICE=${QUERN_TEST_DEVICE:-cuda:0} SIM=${QUERN_TEST_SIM:-sim:h100}
need_gpu "$DEVICE"
export QUERN_LOG=quiet QUERN_CACHE=$tmp/cache
kernels='vectors double_sums persistent split_k shared_atomics local_array conv_shared warp_attention'
kernels+=' register_tile written_twice'

why() { # DEVICE FILE: sets limit; leaves the counters in $tmp/counters
    run quern-why "$(sed -n 's,^// task: ,,p' "$2" | head -1)" "$2" --device "$1" --counters
    limit=$(sed -n 's/^It is limited by \(.*\), [0-9]*% of its .*/\1/p' out)
    sed -n 's/^  \([a-z0-9_]* [-0-9.e+naif]*\)$/\1/p' out >counters
    head -2 out | sed "s/^/# $1: /"
    [ -n "$limit" ] || head -3 err | cut -c1-300 | sed 's/^/# /'
}

agree=0 counted=0
for name in $kernels; do
    file=$root/tests/cheats/honest_$name.cu
    why "$SIM" "$file"; simulated=$limit
    paste -sd, counters | sed "s/^/# counters $name sim: /"
    why "$DEVICE" "$file"
    paste -sd, counters | sed "s/^/# counters $name gpu: /"
    [ "$(wc -l <counters)" -lt 30 ] || counted=$((counted + 1))
    [ "$limit" != "$simulated" ] || agree=$((agree + 1))
    echo "# $name: the simulator says '$simulated', the GPU '$limit'"
    [ -n "$limit" ] && [ -n "$simulated" ]; ok $? "$name: both name a limiter"
done
echo "# $agree of 10 agree"
[ $counted = 10 ] || echo "# hardware counters of $counted kernels: see NVreg_RestrictProfilingToAdminUsers"
[ $counted -lt 10 ] || [ $agree -ge 8 ]; ok $? 'the GPU names the limiter of the simulator for eight of ten'
done_testing
