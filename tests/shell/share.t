#!/bin/bash
# What share/ has for systemd, Slurm, Kubernetes and Grafana: checked by their own programs where these are
# there, and the batch scripts run with stand-ins for Slurm's programs. TAP on stdout.
. "$(dirname "$0")/tap.sh"
share=$root/share

# ---- systemd ----
if command -v systemd-analyze >/dev/null; then
  ln -s "$BIN" bin # a path without a blank
  for unit in "$share"/systemd/*.service; do
    sed "s|/usr/local/libexec/quern/bin|$tmp/bin|" "$unit" >"${unit##*/}"
  done
  systemd-analyze verify --man=no ./*.service >out 2>&1; s=$?
  [ $s = 0 ] && [ ! -s out ]; ok $? 'systemd-analyze finds nothing wrong with the units'
fi
for unit in "$share"/systemd/*.service; do
  grep -q '^Type=notify$' "$unit" && program=$(sed -n 's|^ExecStart=.*/\(quern-[a-z]*\).*|\1|p' "$unit") &&
    [ -x "$BIN/$program" ]
  ok $? "${unit##*/} starts a program that is there, which says when it is ready"
  options=$(grep '^ExecStart=' "$unit" | grep -o -- '--[a-z-]*') unknown=
  for o in $options; do "$BIN/$program" --help | grep -q -- "^  $o" || unknown=$o; done
  is 'units start programs with flags that these have' "$unknown" ''
done
grep -q '^ReadWritePaths=/tmp$' "$share/systemd/quern-evald@.service"
ok $? 'an evaluator can write the lock of its GPU'
cmp -s <(grep -v '^dir ' "$share/kubernetes/redis.conf") "$share/systemd/redis-quern.conf"
ok $? "Redis has the same settings everywhere"

# ---- Slurm: a home whose programs do what they are told, and Slurm's own that keep a note ----
for script in "$share"/slurm/*.sbatch; do bash -n "$script"; ok $? "${script##*/} is bash"; done
if command -v shellcheck >/dev/null; then
  shellcheck "$share"/slurm/*.sbatch >out 2>&1; ok $? 'shellcheck finds nothing'
fi
mkdir -p home/bin home/libexec/quern/bin slurm
cat >home/bin/quern <<'END'
#!/bin/bash
echo "$@" >asked
case $2 in
  ends) exit 0 ;;
  fails) exit 3 ;;
  runs) trap 'sleep 0.3; exit 143' TERM; touch running; while :; do sleep 0.1; done ;;
esac
END
printf '#!/bin/bash\necho "$@" >>requeued\n' >slurm/scontrol
printf '#!/bin/bash\necho "$@" >srun\n' >slurm/srun
chmod +x home/bin/quern slurm/*
export PATH=$tmp/slurm:$PATH SLURM_JOB_ID=17
# The scripts as `make install` leaves them, below this folder.
for f in pipeline evaluators; do
  sed "s|/usr/local|$tmp/home|g" "$share/slurm/$f.sbatch" >"slurm/$f.sbatch"
done
(unset QUERN_REDIS; bash "slurm/pipeline.sbatch" ends >out 2>err); s=$?
[ $s != 0 ] && grep -q QUERN_REDIS err; ok $? 'without a queue the pipeline says what it needs'
export QUERN_REDIS=redis://head:6379
bash "slurm/pipeline.sbatch" ends >out 2>err
is 'a run that ends well ends the job' "$? $(cat asked)" '0 run ends'
bash "slurm/pipeline.sbatch" fails >out 2>err; is 'the job fails with the status of the pipeline' $? 3
[ ! -e requeued ]; ok $? 'a job that ends or fails does not go back into the queue'
bash "slurm/pipeline.sbatch" runs >out 2>err & job=$!
wait_for '[ -e running ]'
kill -TERM $job; wait $job; is 'near its time limit a run is stopped' $? 0
is 'a run that is stopped near its time limit goes back into the queue' "$(cat requeued)" 'requeue 17'
bash "slurm/evaluators.sbatch" >out 2>err
is 'an evaluator is started on the GPU of the job' "$(cat srun)" \
  "--ntasks=1 $tmp/home/libexec/quern/bin/quern-evald --device cuda:0"
(SLURM_TMPDIR=$tmp; export SLURM_TMPDIR; unset QUERN_CACHE; bash "slurm/evaluators.sbatch" >out 2>err)
is "the cache of an evaluator's job is its own" "$(stat -c '%a %u' "$tmp/quern-cache-$UID" 2>&1)" "700 $UID"
if [ "$UID" = 0 ]; then
  chown 65534 "quern-cache-$UID"
  (SLURM_TMPDIR=$tmp; export SLURM_TMPDIR; unset QUERN_CACHE
  bash "slurm/evaluators.sbatch" >out 2>err)
  [ $? = 2 ] && grep -q "is another user's" err; ok $? "a cache that is somebody else's is refused"
fi
settings=$(sed -n 's/^# The pipeline: sbatch share\/slurm\/pipeline.sbatch //p' \
  "$share/slurm/pipeline.sbatch")
(unset QUERN_REDIS
cd "$root" && "$BIN/quern-config" DEVICES=sim:h100 $settings >"$tmp/out" 2>"$tmp/err")
ok $? 'the settings of its first comment are settings'
unset QUERN_REDIS

# ---- Kubernetes ----
command -v kubectl >/dev/null &&
  { kubectl kustomize "$share/kubernetes" >built.yaml 2>err; ok $? 'kustomize builds the folder'; }
if python3 -c 'import yaml' 2>/dev/null; then
  python3 - "$share/kubernetes" >out 2>&1 <<'END'
import glob, sys, yaml
folder = sys.argv[1]
kinds = {'Namespace': 'v1', 'Service': 'v1', 'PersistentVolumeClaim': 'v1',
         'Deployment': 'apps/v1', 'StatefulSet': 'apps/v1', 'Job': 'batch/v1',
         'NetworkPolicy': 'networking.k8s.io/v1'}
k = yaml.safe_load(open(folder + '/kustomization.yaml'))
assert sorted(k['resources']) == \
    sorted(p.split('/')[-1] for p in glob.glob(folder + '/*.yaml') if 'kustomization' not in p)
maps = {g['name'] for g in k['configMapGenerator']}; claims, gpus = set(), 0
docs = [d for r in k['resources'] for d in yaml.safe_load_all(open(f'{folder}/{r}'))]
for d in docs: assert kinds[d['kind']] == d['apiVersion'], d['kind']
claims = {d['metadata']['name'] for d in docs if d['kind'] == 'PersistentVolumeClaim'}
for d in docs:
    if 'template' not in d.get('spec', {}): continue
    pod = d['spec']['template']['spec']
    if 'selector' in d['spec']:
        assert d['spec']['selector']['matchLabels'] == d['spec']['template']['metadata']['labels']
    own = {c['metadata']['name'] for c in d['spec'].get('volumeClaimTemplates', [])}
    volumes = {v['name'] for v in pod.get('volumes', [])} | own
    for v in pod.get('volumes', []):
        assert v.get('configMap', {}).get('name') in maps | {None}
        assert v.get('persistentVolumeClaim', {}).get('claimName') in claims | {None}
    for c in pod['containers']:
        assert {m['name'] for m in c.get('volumeMounts', [])} <= volumes, d['metadata']['name']
        for e in c.get('envFrom', []): assert e.get('configMapRef', {}).get('name') in maps | {None}
        gpus += c.get('resources', {}).get('limits', {}).get('nvidia.com/gpu', 0)
assert gpus == 2, gpus # evaluators and the pipeline ask the device plugin for one each
END
  s=$?; [ $s = 0 ]; ok $? 'manifests: kinds, names, volumes, labels, GPUs'
  [ $s = 0 ] || sed 's/^/# /' out
fi
python3 -m json.tool "$share/grafana/quern.json" >out 2>err; ok $? 'the dashboard is JSON'

# ---- installed below another prefix, units and scripts name it ----
(cd "$root" &&
  PREFIX=/opt/quern mk/install "$BUILD" "$tmp/put/opt/quern" quern quern-evald >"$tmp/out" 2>"$tmp/err")
grep -q '^ExecStart=/opt/quern/libexec/quern/bin/quern-evald ' \
  put/opt/quern/share/quern/share/systemd/quern-evald@.service &&
  ! grep -rq /usr/local put/opt/quern/share/quern/share/systemd put/opt/quern/share/quern/share/slurm
ok $? 'installed units name their prefix'
done_testing
