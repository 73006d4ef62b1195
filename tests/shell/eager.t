#!/bin/bash
# The rows of tests/gpu/eager.py, with a worker that is no PyTorch: one that fails, dies or hangs costs its
# row alone, and the same call goes on where the file ends. TAP on stdout.
. "$(dirname "$0")/tap.sh"
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests/gpu
cat >worker.py <<'END'
import json, os, sys, time
print(json.dumps({"gpu": "none"}), flush=True)
ready = set()
for line in sys.stdin:
    q = json.loads(line)
    with open("asked", "a") as log:
        print(q["do"], q["name"], file=log)
    if q["do"] == "prepare":
        if q["name"] == "hangs":
            time.sleep(600)
        if q["name"] == "dies":
            os._exit(3)
        ready.add(q["name"])
        print(json.dumps({"error": "no way"} if q["name"] == "fused" else {}), flush=True)
    elif q["name"] == "fails":
        print(json.dumps({"error": "out of memory"}), flush=True)
    elif q["name"] == "slow":
        time.sleep(600)
    else:
        print(json.dumps({"us": 1.5, "ready": q["name"] in ready}), flush=True)
END
cat >rows.py <<'END'
import sys, types
import eager_rows
given = types.SimpleNamespace(output="rows", again="again" in sys.argv, seconds=600, limit=10, jobs=3,
    compile=True)
names = sys.argv[1].split(",")
print(eager_rows.run([sys.executable, "worker.py"], [eager_rows.Task(n, n, {"n": 4}) for n in names], given))
END
row() { grep -q "\"task\": \"$1\", \"axes\": {\"n\": 4}, $2, \"gpu\": \"none\"}" rows; }

python3 rows.py a,hangs,dies,fused,fails,slow,b >out; [ "$(cat out)" = 0 ] && [ "$(wc -l <rows)" = 7 ]
ok $? "each task has a row"
row a '"us": 1.5, "ready": true' && row b '"us": 1.5, "ready": true'; ok $? "tasks that work have a time"
row hangs '"us": 1.5, "ready": false, "best_error": "took over 10 s"'
ok $? "a task that is compiled too long is timed without compilation"
row dies '"us": 1.5, "ready": false, "best_error": "the process ended with status 3"'
ok $? "a task whose compilation ends its process is timed without it"
row fused '"us": 1.5, "ready": true, "best_error": "no way"'
ok $? "a task that cannot be compiled is timed without compilation"
row fails '"error": "out of memory"' && row slow '"error": "took over 10 s"'
ok $? "a task that fails or is too slow says so"
: >asked; python3 rows.py a,hangs,c >out; [ "$(wc -l <rows)" = 8 ] &&
    [ "$(sort -u asked)" = $'measure c\nprepare c' ]
ok $? "a second call measures what has no row"
printf '{"task": "d", "ax' >>rows; : >asked; python3 rows.py c,d >out; [ "$(wc -l <rows)" = 9 ] &&
    row d '"us": 1.5, "ready": true'
ok $? "a torn row is measured again"
: >asked; python3 rows.py a,fails again >out; [ "$(sort -u asked)" = $'measure fails\nprepare fails' ]
ok $? "failed tasks are measured again where that is asked for"
: >asked; sed -i 's/seconds=600/seconds=-1/' rows.py; python3 rows.py e,f >out; [ "$(cat out)" = 2 ] &&
    [ ! -s asked ]
ok $? "no task is begun when the time is over"
printf 'import sys\nsys.exit("no GPU")\n' >worker.py; sed -i 's/seconds=-1/seconds=9/' rows.py
! python3 rows.py e >out 2>err && grep -q 'no worker starts' err && grep -q 'no GPU' err
ok $? "a worker that cannot start ends the call"
done_testing
