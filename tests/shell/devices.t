#!/bin/bash
# DEVICES=auto: quern-devices, quern-fleet and the rules of a run agree on devices and classes, without a GPU
# and with GPUs that a fake quern-devices or --found names. TAP on stdout.
. "$(dirname "$0")/tap.sh"
unset DEVICE DEVICES CLASSES
cd "$root" || exit 99
build=$BUILD
. "$here/rules.sh"
run=test-devices-$$
at_exit+=('rm -rf "$root/runs/$run"')
rm -rf "runs/$run" # of a test that was killed
two='--found=cuda:0=NVIDIA+H200 cuda:1=NVIDIA+H200'
simulated='sim:a100 sim:h100 sim:h200 sim:l40 sim:rtx3090 sim:h20'

# ---- the list ----
"$BIN/quern-devices" >"$tmp/out"
[ $? = 0 ] &&
    [ "$(grep '^sim:' "$tmp/out" | cut -d' ' -f1 | sort | tr '\n' ' ')" = \
    "$(tr ' ' '\n' <<<"$simulated" | sort | tr '\n' ' ')" ]
ok $? 'quern-devices lists every simulator'
! grep -qvE '^(cuda:[0-9]+ .+|sim:([a-z0-9]+) sim:[a-z0-9]+)$' "$tmp/out"
ok $? 'quern-devices has a name and a class on each line'
"$BIN/quern-devices" --gpus >"$tmp/out"; ! grep -q sim: "$tmp/out"
ok $? 'quern-devices --gpus leaves simulators out'
timed=kernelbench/level1/k1_19_relu,kernelbench/level1/k1_45_average_pooling_2d
sizes() { "$BIN/quern-devices" --own-sizes "$timed" "$@"; }
[ "$(sizes | tail -1)" = "1 of 2 tasks are timed at their modules' own sizes by a GPU with 79.6 GiB" ] &&
  [[ $(sizes --memory 16) = *"k1_19_relu: shortened: inputs and outputs of 12.0 GiB"*"0 of 2"* ]]
ok $? 'quern-devices --own-sizes counts what a GPU times as the modules have it'

# ---- the rules ----
rules() { rules_of "$build" PROFILE=smoke "RUN=$run" "$@" -n crl >"$tmp/out"; }
ask() {
    rules_of "$build" PROFILE=smoke "RUN=$run" "$@" >/dev/null -q crl
    sed -n 's/^override local_devices := //p' "$tmp/settings.mk"
}
classes() {
    sed -n "s/.*verdicts-.*quern-evaluate .*best.samples.qa .*--device '\?\([^']*\)'\?$/\1/p" "$tmp/out" |
        sort
}
judges() {
    sed -n "s/.*quern-evaluate .*\(collect\|crl\)\/.*--device '\?\([^']*\)'\?$/\2/p" "$tmp/out" | sort -u
}
[ "$(ask)" = sim:h100 ] && rules && [ "$(judges)" = sim:h100 ]; ok $? 'without a GPU sim:h100 judges'
[ "$(ask "$two")" = 'cuda:0 cuda:1' ]; ok $? 'two GPUs: both serve'
rules "$two" && [ "$(judges)" = 'NVIDIA H200' ]; ok $? 'the class of two GPUs judges'
[ "$(classes)" = "$(printf '%s\n' 'NVIDIA H200' $simulated | sort)" ]
ok $? 'the final pass: the class of the GPUs once, and every simulator'
! grep "device 'NVIDIA H200'" "$tmp/out" | grep -q quern-fleet &&
    [ "$(grep -c 'quern-fleet run --devices sim:' "$tmp/out")" = 6 ]
ok $? 'each simulator brings its own evaluator, the GPU has one'
grep -q "quern-results .*verdicts-NVIDIA+H200.qa .*verdicts-sim-a100.qa" "$tmp/out"
ok $? "the GPU's results come first"
rules '--found=cuda:0=NVIDIA+L40S cuda:1=NVIDIA+H200' && [ "$(judges)" = 'NVIDIA L40S' ] &&
    classes | grep -qx 'NVIDIA H200'
ok $? 'unlike GPUs: the first judges, both are in the final pass'
rules "$two" DEVICES=sim:a100 && [ "$(judges)" = sim:a100 ] && ! grep -q H200 "$tmp/out"
ok $? 'DEVICES=sim:a100 leaves the GPUs alone'
rules "$two" DEVICES=cuda:1 CLASSES='NVIDIA+H200 sim:l40' && [ "$(judges)" = 'NVIDIA H200' ] &&
    [ "$(classes | wc -l)" = 2 ]
ok $? 'a GPU by its name, and classes by theirs'
rules 'DEVICE=NVIDIA H200' && [ "$(judges)" = 'NVIDIA H200' ]; ok $? 'a class that other hosts serve'
rules "$two" DEVICES=cuda:7
[ $? = 2 ] && grep -q 'DEVICES=cuda:7: there is no cuda:7 here, but cuda:0 cuda:1' "$tmp/out"
ok $? 'a GPU that is not there is one sentence'
rules CLASSES=sim:l40,sim:h100 && [ "$(classes | tr '\n' ' ')" = 'sim:h100 sim:l40 ' ]
ok $? 'classes by comma'
rules CLASSES=sim:l40,sim:l40 && [ "$(classes)" = sim:l40 ] && ! grep -q warning "$tmp/out"
ok $? 'a class that is named twice serves once'
for setting in 'CLASSES=sim:h100 h100' DEVICE=h100 DEVICES=h100; do
    rules "$setting"
    [ $? = 2 ] && grep -q "h100: no evaluator has this class; the simulator's is sim:h100" "$tmp/out"
    ok $? "$setting lacks its sim:"
done

rules CLASSES=sim:h10
[ $? = 2 ] && grep -q 'CLASSES=sim:h10: there is no sim:h10; expected sim:PROFILE' "$tmp/out"
ok $? 'a simulator that is none is refused'
rules "$two" CLASSES=cuda:1; [ $? = 2 ] &&
    grep -q 'CLASSES=cuda:1: expected a device class, here NVIDIA+H200; cuda:1 is a device' "$tmp/out"
ok $? 'a device is no class'
rules DEVICES=gpu
[ $? = 2 ] && grep -q 'DEVICES=gpu: expected auto, cuda:N or sim:PROFILE, found gpu' "$tmp/out"
ok $? 'a device that is none is refused'
rules DEVICES=,; [ $? = 2 ] && grep -q 'DEVICES=, names no device' "$tmp/out"
ok $? 'DEVICES that names no device is refused'

# ---- the fleet: evaluators that only note their device ----
command -v redis-server >/dev/null || done_testing
mkdir "$tmp/bin"; cp "$BIN/quern-fleet" "$tmp/bin/"
cat >"$tmp/bin/quern-evald" <<'END'
#!/bin/bash
echo "$2" >>"$QUERN_NOTES"; exec sleep 1000
END
chmod +x "$tmp/bin/quern-evald"
export QUERN_NOTES=$tmp/notes
export -f wait_for
said() { printf '#!/bin/bash\n%s\n' "$1" >"$tmp/bin/quern-devices"; chmod +x "$tmp/bin/quern-devices"; }
cores=$(cores)
fleet() { # DEVICES HOW_MANY: which devices its evaluators were given
    rm -f "$QUERN_NOTES"
    "$tmp/bin/quern-fleet" run --dir "$tmp/q" --devices "$1" -- bash \
        -c "wait_for '[ \"\$(cat \"\$QUERN_NOTES\" 2>/dev/null | wc -l)\" -ge $2 ]'; sleep 0.2" \
        >"$tmp/out" 2>&1
    sort "$QUERN_NOTES" | tr '\n' ' '
}
said "printf 'cuda:0 NVIDIA H200\ncuda:1 NVIDIA H200\n'"
[ "$(fleet auto 2)" = 'cuda:0 cuda:1 ' ]; ok $? 'auto: one evaluator a GPU'
said true
[ "$(fleet auto $cores)" = "$(for i in $(seq $cores); do printf 'sim:h100 '; done)" ] &&
    ! grep -q 'GPU here' "$tmp/out" && grep -q "$cores evaluators\? on sim:h100, " "$tmp/out"
ok $? 'without a GPU: one simulator a core, and no word of GPUs'
said 'echo "quern-devices: the driver is too old" >&2'
[ "$(fleet auto $cores | tr ' ' '\n' | sort -u | tr -d '\n')" = sim:h100 ] &&
    grep -q 'a GPU here that cannot be used, so the simulator sim:h100 is: .*the driver is too old' "$tmp/out"
ok $? 'a GPU that cannot be used is spoken of'
said 'exit 1'
[ "$(fleet cuda:0,sim:a100 2 | tr ' ' '\n' | sort | uniq -c | tr -s ' \n' ' ')" = \
    " 1 cuda:0 $((cores > 2 ? cores - 1 : 1)) sim:a100 " ]
ok $? 'a GPU has one evaluator beside the simulators'
grep -q 'evaluators on cuda:0 and others, ' "$tmp/out"
ok $? 'a GPU beside simulators is not said to be the only device'
done_testing
