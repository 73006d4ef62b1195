#!/bin/bash
# Evaluators on three hosts, each a network namespace, with delay and loss between them and the queue, and a
# partition. Nothing is lost, every job is finished once, and the verdicts are those of an undisturbed run.
# TAP on stdout. JOBS, CUT (seconds of the partition), DELAY (seconds each way), LOSS (percent of messages),
# EACH (evaluators a host) and LIMIT (seconds) make it larger: docs/measurements/queue.md has a run of 10,000
# jobs.
if [ -z "${QUERN_HOSTS:-}" ]; then
  unshare --net --mount --uts true 2>/dev/null ||
    { echo '1..0 # SKIP network namespaces are not permitted here'; exit 0; }
  export QUERN_HOSTS=1
  exec unshare --net --mount --uts "$0" "$@"
fi
. "$(dirname "$0")/tap.sh"
need redis-server
need ip
need python3
logs=(log out err redis.log)
left_pattern='@(*quern-*|*redis-server*|*relay.py*)'
mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && ip netns add h1 2>/dev/null ||
  skip_all 'ip netns is not permitted here'
ip netns del h1
jobs=${JOBS:-90} cut_s=${CUT:-6} delay=${DELAY:-0.1} loss=${LOSS:-5} each=${EACH:-1}
export QUERN_QUEUE=lease=${LEASE:-3},retry=$((cut_s + 20))

# ---- the network: a bridge with the queue, and three hosts ----
ip link set lo up
ip link add qbr0 type bridge && ip addr add 10.9.0.1/24 dev qbr0 && ip link set qbr0 up ||
  skip_all 'no bridge can be made here'
# netem where the kernel has it; else a relay on each host. It delays each way; a lost message comes after one
# or more retransmissions, as TCP's would, and one lost message in ten ends its connection.
cat >relay.py <<'END'
import asyncio, random, sys
random.seed(int(sys.argv[1])); delay, loss = float(sys.argv[2]), float(sys.argv[3]) / 100
async def pump(source, sink):
    try:
        while data := await source.read(65536):
            wait = delay
            while random.random() < loss: wait += max(0.2, 3 * delay)
            await asyncio.sleep(wait)
            if random.random() < loss / 10: break
            sink.write(data); await sink.drain()
    except OSError: pass
    sink.transport.abort()
async def serve(r, w):
    try: R, W = await asyncio.wait_for(asyncio.open_connection('10.9.0.1', 6379), 2)
    except (OSError, asyncio.TimeoutError): return w.transport.abort()
    await asyncio.gather(pump(r, W), pump(R, w))
async def main():
    await (await asyncio.start_server(serve, '127.0.0.1', 6379)).serve_forever()
asyncio.run(main())
END
netem=
for i in 1 2 3; do
  ip netns add h$i
  ip link add v$i type veth peer name e0 netns h$i || skip_all 'no veth can be made here'
  ip link set v$i master qbr0 up
  ip -n h$i link set lo up; ip -n h$i addr add 10.9.0.1$i/24 dev e0; ip -n h$i link set e0 up
  tc qdisc add dev v$i root netem delay ${delay}s loss $loss% 2>/dev/null &&
    ip netns exec h$i tc qdisc add dev e0 root netem delay ${delay}s loss $loss% 2>/dev/null && netem=1
done
cat >redis.conf <<'END'
bind 10.9.0.1
protected-mode no
appendonly no
save ""
maxmemory-policy allkeys-lru
END
redis-server redis.conf --dir "$tmp" --logfile "$tmp/redis.log" --port 6379 >/dev/null 2>&1 & redis=$!
at_exit=('kill -9 $redis 2>/dev/null' "${at_exit[@]}")
wait_for 'redis-cli -h 10.9.0.1 ping 2>/dev/null | grep -q PONG'
export QUERN_REDIS=redis://10.9.0.1:6379

# ---- the samples, and what an undisturbed run makes of them ----
for i in $(seq $jobs); do
  printf 'relu\t// selftest: sleep 0.05\\n// candidate %d\n' $i
done | "$here/make_samples.pl" >s.qa
cat >noop <<END
#!/bin/bash
exec "$BIN/quern-evald" --runner noop "\$@"
END
chmod +x noop
(unset QUERN_REDIS; "$BIN/quern-fleet" run --evaluator ./noop --workers $((each + 1)) --dir calm \
  -- "$BIN/quern-evaluate" s.qa --output calm.qa) >out 2>log
want=$(digest calm.qa)
[ -n "$want" ]; ok $? "an undisturbed run judges $jobs jobs"

# ---- a server whose settings may lose jobs is told of, once ----
"$BIN/quern-queue" status >out 2>err
grep -q 'appendonly yes' err && grep -q 'maxmemory-policy noeviction' err
ok $? 'settings of Redis that may lose jobs are warned about'
"$BIN/quern-queue" status >out 2>err; [ ! -s err ]; ok $? "a warning of Redis's settings comes once"
redis-cli -h 10.9.0.1 config set appendonly yes >/dev/null
redis-cli -h 10.9.0.1 config set maxmemory-policy noeviction >/dev/null

# ---- three hosts ----
for i in 1 2 3; do
  at=redis://10.9.0.1:6379
  if [ -z "$netem" ]; then
    ip netns exec h$i python3 relay.py $i $delay $loss 2>/dev/null &
    at=redis://127.0.0.1:6379
  fi
  for k in $(seq $each); do
    QUERN_REDIS=$at ip netns exec h$i unshare --uts sh -c "hostname host$i; exec ./noop --device sim:h100" \
      >>log 2>&1 & evald[i * 100 + k]=$!
  done
done
# An evaluator is listed from its first job on: all of them have one before the test's jobs begin.
listed() { "$BIN/quern-queue" top --window 0.1 2>>log | grep -c '^host[123] '; }
for first in {1..30}; do
  for i in 1 2 3; do printf 'relu\t// selftest: sleep 1\\n// first %d\n' $first$i; done |
    "$here/make_samples.pl" >first.qa
  "$BIN/quern-evaluate" first.qa --output first.out >out 2>err
  [ "$(listed)" = 3 ] && break
done
ok $? 'quern queue top lists evaluators by host'
count() {
  "$BIN/quern-queue" status --json 2>/dev/null | tr -d ' \n' | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"
}
earlier=$(count done)
timeout ${LIMIT:-900} "$BIN/quern-evaluate" s.qa --output far.qa >out 2>err & submitter=$!
wait_for '[ "0$(count done)" -ge $((earlier + 5)) ]' 120
"$BIN/quern-queue" top --window 0.5 >top 2>>log
grep -q '^sim:h100 .*[0-9]$' top; ok $? 'quern queue top has the jobs a minute of the class'
before=$(count done)
ip link set v2 down # a partition: host2 holds a job, and cannot say so
wait_for "[ \"0\$(count done)\" -ge $((before + 10)) ]" 120; ok $? 'the other hosts go on during a partition'
sleep "$cut_s"
ip link set v2 up
wait $submitter; s=$?
[ $s = 0 ]; ok $? 'the submitter gets every verdict'
is 'the verdicts are those of the undisturbed run' "$(digest far.qa)" "$want"
is 'every job is finished once, none is dead or left' \
  "$(count done) $(count dead) $(count waiting) $(count leased)" "$((earlier + jobs)) 0 0 0"
[ $cut_s -lt 60 ] ||
  is 'the host that was cut off works again' \
  "$("$BIN/quern-queue" top --window 0.5 | awk '$1 == "host2" { print $2 }')" $each
kill -TERM "${evald[@]}"
drained=0; for p in "${evald[@]}"; do wait $p || drained=$?; done
is 'SIGTERM drains an evaluator, with status 0' $drained 0
done_testing
