#!/bin/bash
# limit: 600
# Training on a checkpoint: adapters in the three stages, an endpoint that loads them, the losses by name,
# --plan, and an outside trainer. TAP on stdout.
. "$(dirname "$0")/endpoint.sh"
need redis-server
# sentence RC STATUS TEXT: the last command ended with STATUS and one sentence that has TEXT
sentence() {
    [ "$1" = "$2" ] && grep -qF -- "$3" err &&
        [ "$(grep -vc 'quern-[a-z]*: [0-9]\|warning\|log-prob\|the trainer is\|endpoint answers' err)" = 1 ]
}
header() { "$BIN/quern-artifact" show "$1" --records 0; }
weights() { sha256sum <"$1" | cut -d' ' -f1; }

# ---- a dataset and a small checkpoint, from which the stages start ----
"$BIN/quern-fleet" run --workers 1 --dir q -- bash \
    -c '"$BIN/quern-collect" --tasks relu --teachers generator --trials 12 --keep 6 --output taught.qa &&
    "$BIN/quern-evaluate" taught.qa --output taught-verdicts.qa' 2>err
run quern-filter --samples taught.qa --verdicts taught-verdicts.qa --output dataset.qa --tasks relu \
    --contrastive 1 --style brief
small=(--vocab 340 --hidden 32 --ff 64 --layers 1 --heads 2 --kv-heads 1 --context 3000)
run quern-sft --dataset dataset.qa --output base "${small[@]}" --epochs 2 --batch 4
[ $? = 0 ] && [ -s base/model.safetensors ]; ok $? 'a small checkpoint'

# ---- --plan: the memory of a run in advance ----
run quern-sft --plan --base base --lora 8; s=$?
[ $s = 0 ] && grep -q '^weights ' out && grep -q '^adapter ' out && grep -q '^total .* GiB of ' out &&
    grep -q 'micro-batches of 8192 tokens.*fits$' out
ok $? '--plan prints what a run takes, by parts'
run quern-crl --plan --base base --max-tokens 512 --recompute on; s=$?
[ $s = 0 ] && grep -q 'micro-batches of 512 tokens, activations made again' out && ! grep -q '^adapter ' out
ok $? '--plan prints what quern-crl takes, as the flags say'
run quern-selfsup --plan --base absent; s=$?
sentence $s 2 absent/config.json; ok $? 'a model that is not there is one sentence'
run quern-sample --plan --policy base --batch 4 --max-new 100; s=$?
[ $s = 0 ] && grep -q '^4 rows at once: .* of which 100 are new: fits$' out && [ ! -e base/plan ]
ok $? 'quern-sample names a model that is not there'
run quern-sample --plan --policy base --max-new 50000; s=$?
sentence $s 1 '--max-new is 50000'; ok $? 'more new tokens than the model has positions'

# ---- wrong combinations ----
refused() { # TEXT ARGUMENTS: quern-crl's usage error
    run quern-crl --base base --samples a --verdicts b --output c "${@:2}"
    sentence $? 2 "$1"; ok $? "$1"
}
refused "--loss expects one of dapo|grpo|dr-grpo|rloo|gspo|cispo|reinforce, found 'ppo'" --loss ppo
refused '--dual-clip expects 0 or more than 1 + --eps-high (1.28), found 1.1' --dual-clip 1.1
refused '--correction token needs a --ratio other than none' --loss reinforce --correction token
refused '--overlong penalty needs --overlong-margin' --overlong penalty
refused '--kl above 0 needs --reference' --loss=gspo --kl 0.1
refused '--rslora needs --lora' --rslora
refused '--lean needs a GPU' --lean
run quern-sft --dataset dataset.qa --output c --lora 4; sentence $? 2 '--lora needs --base'
ok $? 'an adapter needs a checkpoint'
run quern-sft --dataset dataset.qa --output c --trainer true; sentence $? 2 '--trainer needs --base'
ok $? 'a trainer needs a checkpoint'
run quern-sample --policy base --prompts p --output c --adapter base
sentence $? 2 '--adapter is for --policy openai:MODEL'
ok $? 'an adapter is for an endpoint'

# ---- stage 1: an adapter ----
sft() { run quern-sft --dataset dataset.qa --base base --epochs 1 --batch 4 --lora 4 --output "$@"; }
sft one/model; s=$?
[ $s = 0 ] && [ -s one/model/adapter_model.safetensors ] && [ ! -e one/model/model.safetensors ] &&
    grep -q '"r": *4' one/model/adapter_config.json
ok $? 'stage 1 trains an adapter'
[ "$(header one/model/manifest.qa | grep -c '"lora":"4"')" = 1 ] &&
    ! header base/manifest.qa | grep -q '"lora"'
ok $? 'the header of a model names its adapter, and nothing of it where there is none'
mkdir again && cp -r one/model again && echo '{{ other }}' >again/model/chat_template.jinja
run quern-sft --dataset dataset.qa --base base --epochs 1 --batch 4 --output again/model; s=$?
[ $s = 0 ] && [ -s again/model/model.safetensors ] && [ -s again/model/metrics.qa ] &&
    [ "$(ls again/model | grep -c 'adapter\|template')" = 0 ] && [ ! -e again/model.metrics.qa ]
ok $? 'nothing of an earlier model stays in the folder'
mkdir notes && echo kept >notes/thoughts.md
run quern-sft --dataset dataset.qa --base base --epochs 1 --batch 4 --output notes; s=$?
sentence $s 1 'notes holds thoughts.md' && [ -s notes/thoughts.md ]
ok $? 'a folder of something else is not emptied'
run quern-sft --dataset dataset.qa --base base --epochs 1 --batch 4 --output ./base; s=$?
sentence $s 1 './base is the folder of the model that is read' && [ -s base/model.safetensors ]
ok $? 'the folder of the base model is not emptied'
run quern-prompt --tasks relu --groups 3 --style brief -o prompts.qa
run quern-sample --policy one/model --prompts prompts.qa --copies 2 --max-new 8 --output native.qa; s=$?
[ $s = 0 ] && "$BIN/quern-artifact" export native.qa | grep -q '"logprobs"'
ok $? 'the engine samples with the adapter'

run quern-sample --policy base --prompts prompts.qa --copies 4 --max-new 40 --stop e --output stop.qa; s=$?
"$BIN/quern-artifact" export stop.qa >stop.jsonl
[ $s = 0 ] && python3 -c 'import json
rows = [json.loads(x) for x in open("stop.jsonl")]
assert rows and all("e" not in r["text"] and len(r["ids"]) == len(r["logprobs"]) for r in rows)
assert any(r["finish"] == "stop" for r in rows)' 2>>err; ok $? 'a stop text ends answers of the engine'
texts() { "$BIN/quern-artifact" export "$1" | sed 's/.*"text"://'; }
run quern-sample --policy one/model --prompts prompts.qa --copies 2 --max-new 8 --top-k 1 --output k.qa &&
    run quern-sample --policy one/model --prompts prompts.qa --copies 2 --max-new 8 --temperature 0 \
    --output t.qa; s=$?
[ $s = 0 ] && [ -n "$(texts k.qa)" ] && [ "$(texts k.qa)" = "$(texts t.qa)" ] &&
    [ "$(texts k.qa)" != "$(texts native.qa)" ]
ok $? '--top-k 1 is the likeliest token'

# ---- several devices: processes that share the work ----
loss_of() {
    "$BIN/quern-artifact" export "$1/metrics.qa" | sed -n 's/.*"name":"loss".*"value":\([-0-9.e]*\).*/\1/p'
}
sft pair/model --gpus 2; s=$?
[ $s = 0 ] && header pair/model/manifest.qa | grep -q '"gpus":"2"' &&
    [ "$(loss_of one/model | wc -l)" -ge 3 ] &&
    paste <(loss_of one/model) <(loss_of pair/model) |
    awk '{ d = ($1 - $2) / $1; if (NF != 2 || d * d > 1e-10) exit 1 }'
ok $? 'two processes train with the losses of one'
run quern-sample --policy one/model --prompts prompts.qa --copies 2 --max-new 8 --gpus 2 --output pair.qa
s=$?
[ $s = 0 ] && [ "$(digest native.qa)" = "$(digest pair.qa)" ] && [ -z "$(ls pair.qa.* 2>/dev/null)" ]
ok $? 'two processes sample what one samples'
"$BIN/quern-sft" --dataset dataset.qa --base base --epochs 1000 --batch 4 --lora 4 --gpus 2 \
    --output pair2/model 2>err &
pid=$!
wait_for '[ -e pair2/model ]'; kill -TERM $pid; wait $pid; s=$?
run quern-sft --dataset dataset.qa --base base --epochs 1 --batch 4 --lora 4 --gpus 2 --output pair3/model
[ $s = 143 ] && [ -e pair2/model.checkpoint/optimizer.safetensors ] &&
    cmp -s pair/model/adapter_model.safetensors pair3/model/adapter_model.safetensors
ok $? 'two processes that are stopped leave a checkpoint, and go on to the same model'

# ---- an endpoint that loads the adapters ----
ask() { # ADAPTER OUTPUT: without the line that says what the requests cost at most
  run quern-sample --policy openai:fake --adapter "$1" --prompts prompts.qa --copies 6 --concurrency 4 \
      --output "$2"
  sed -i '/: at most [0-9]* requests/d' err
  return $rc
}
requests() { grep -c '"messages"' log; }
: >log
ask one/model one.qa; s=$?
name=$(sed -n 's/.*load_lora_adapter".*"lora_name": "\([^"]*\)", "lora_path".*/\1/p' log)
[ $s = 0 ] && [ "${name%-*}" = "quern-$(digest one/model/manifest.qa | cut -c1-12)" ] &&
    grep -q "\"lora_path\": \"$tmp/one/model\"" log
ok $? 'an endpoint loads the adapter under the digest of its content'\''s name'
[ "$(requests)" = 18 ] && [ "$(grep -c "\"model\": \"$name\"" log)" = 18 ] &&
    tail -1 log | grep -q "/v1/unload_lora_adapter.*$name"
ok $? 'all requests name the adapter, and it is unloaded after them'
[ "$(grep -c '"return_token_ids": true' log)" = 18 ] && [ "$(grep -c '"top_k": -1' log)" = 18 ] &&
    [ "$("$BIN/quern-artifact" export one.qa | grep '"ids"' | grep '"prompt_ids"' | grep -c '"logprobs"')" = \
    18 ]
ok $? 'ids and log-probabilities are asked for, and recorded'
ask one/model one.qa && [ "$(requests)" = 18 ]; ok $? 'a finished sampling asks an endpoint for nothing'
mv one.qa first.qa
curl -s -d "{\"lora_name\": \"$name\", \"lora_path\": \"$tmp/one/model\"}" \
    "${OPENAI_BASE_URL}/load_lora_adapter" >out
ask one/model one.qa; s=$?
[ $s = 0 ] && [ "$(requests)" = 36 ] && [ "$(digest one.qa)" = "$(digest first.qa)" ]
ok $? 'an adapter that a killed run left at the endpoint is used'
ask one/model other.qa; s=$?
[ $s = 0 ] && [ "$(grep '"/v1/load_lora' log | tail -1 | grep -c "$name")" = 0 ] &&
    [ "$(digest one.qa)" = "$(digest other.qa)" ]
ok $? "a second sampler has an adapter's name of its own"
held_at=$(($(wc -l <log) + 6)); echo $held_at >log.hold # after the adapter and five answers
"$BIN/quern-sample" --policy openai:fake --adapter one/model --prompts prompts.qa --copies 6 --concurrency 4 \
    --output torn.qa 2>err &
pid=$!
wait_for '[ $(wc -l <log) -gt $held_at ]'; kill -9 $pid; wait $pid 2>/dev/null; rm log.hold
ask one/model torn.qa; s=$?
[ $s = 0 ] && [ "$(digest one.qa)" = "$(digest torn.qa)" ]
ok $? 'sampling that is killed on the way ends the same'
held_at=$(($(wc -l <log) + 6)); echo $held_at >log.hold # after the adapter and five answers
"$BIN/quern-sample" --policy openai:fake --adapter one/model --prompts prompts.qa --copies 6 --concurrency 4 \
    --output lost.qa 2>err &
pid=$!
wait_for '[ $(wc -l <log) -gt $held_at ]'
name=$(sed -n 's/.*load_lora_adapter".*"lora_name": "\([^"]*\)", "lora_path".*/\1/p' log | tail -1)
curl -s -d "{\"lora_name\": \"$name\"}" "${OPENAI_BASE_URL}/unload_lora_adapter" >out
rm log.hold; wait $pid; s=$?
[ $s = 0 ] && [ "$(grep -c 'given the adapter again' err)" = 1 ] &&
    [ "$(digest one.qa)" = "$(digest lost.qa)" ]
ok $? 'a server that has lost the adapter is given it again'

echo off >log.adapters; ask one/model no3.qa
sentence $? 3 'has no route to load adapters: start vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True'
ok $? "a server without the adapters' route: what to start it with is said"
echo sglang >log.adapters; : >log; ask one/model sglang.qa; s=$?
[ $s = 0 ] && grep -q '"path": "/load_lora_adapter"' log &&
    [ "$(grep -c '"model": "fake:quern-' log)" = 18 ] && [ "$(digest one.qa)" = "$(digest sglang.qa)" ]
ok $? "SGLang's routes and names are known"
rm log.adapters
run quern-sft --dataset dataset.qa --base base --epochs 1 --batch 8 --lora 64 --output wide/model
ask wide/model no1.qa; sentence $? 3 'start it with a larger --max-lora-rank'
ok $? 'a rank that the server does not take is said'
ask base no2.qa; sentence $? 1 'base holds whole weights, not an adapter'
ok $? 'whole weights cannot be given to an endpoint'

# ---- stages 2 and 3 on the endpoint's answers ----
"$BIN/quern-fleet" run --workers 1 --dir q -- bash \
    -c '"$BIN/quern-evaluate" one.qa --output one-verdicts.qa &&
        "$BIN/quern-evaluate" native.qa --output native-verdicts.qa' 2>>err
run quern-selfsup --base one/model --samples one.qa --verdicts one-verdicts.qa --output two/model --epochs 1 \
    --batch 4 --lr 1e-3 --lora 4; s=$?
grep -q 'new kernels that succeeded' err && ! grep -q 'without token ids' err; t=$?
[ $s$t = 00 ] && [ -s two/model/adapter_model.safetensors ] &&
    ! cmp -s one/model/adapter_model.safetensors two/model/adapter_model.safetensors
ok $? 'stage 2 trains the same adapter on, from the ids as sampled'
cmp -s one/model/adapter_config.json two/model/adapter_config.json &&
    cmp -s base/tokenizer.json two/model/tokenizer.json
ok $? "the base of stage 2's adapter is the checkpoint"
crl() {
    run quern-crl --base two/model --samples one.qa --verdicts one-verdicts.qa --epochs 1 --batch 4 \
        --lr 1e-3 --std-floor 0 --reference one/model "$@"
}
crl --output three/model --lora 4; s=$?
[ $s = 0 ] && ! cmp -s two/model/adapter_model.safetensors three/model/adapter_model.safetensors
ok $? 'stage 3 trains the same adapter on'
run quern-crl --base two/model --samples native.qa --verdicts native-verdicts.qa --epochs 1 --batch 4 \
    --lr 1e-3 --constant-groups keep --reference one/model --output near/model; s=$?
kl=$("$BIN/quern-artifact" export near/model/metrics.qa |
    sed -n 's/.*"reference.kl".*"value":\([-0-9.e]*\).*/\1/p')
[ $s = 0 ] && [ -n "$kl" ] && perl -e 'exit !(abs($ARGV[0]) < 1e-3)' -- "$kl"
ok $? "the model that sampled is not far from itself: ${kl:-nothing}"
crl --output no/model --lora 8; sentence $? 1 'has an adapter of rank 4 already'
ok $? 'an adapter of another rank is not trained on'
last=$(weights three/model/adapter_model.safetensors)
for loss in grpo dr-grpo rloo gspo cispo reinforce; do
    crl --output "loss/$loss/model" --loss $loss; s=$?
    now=$(weights "loss/$loss/model/adapter_model.safetensors")
    [ $s = 0 ] && [ "$now" != "$last" ] &&
        header "loss/$loss/model/manifest.qa" | grep -q "\"loss\":\"$loss\""
    ok $? "--loss $loss"
    last=$now
done
crl --output loss/more/model --correction token --correction-cap 1.5 --kl 0.1 --kl-form k2 \
    --overlong penalty --overlong-margin 300 --constant-groups keep --aggregation constant; s=$?
[ $s = 0 ] && "$BIN/quern-artifact" export loss/more/model/metrics.qa | grep -q '"correction"' &&
    "$BIN/quern-artifact" export loss/more/model/metrics.qa | grep -q '"kl"' &&
    grep -q 'log-probabilities of [0-9]* answers before the update' err
ok $? 'correction, KL and length train together'

# ---- an outside trainer ----
# Sets a variable for each field of the training's file that is a text.
cat >fields.sh <<'END'
eval "$(python3 -c 'import json, os, shlex
for k, v in json.load(open(os.environ["QUERN_TRAINING"])).items():
    if isinstance(v, str): print(k + "=" + shlex.quote(v))')"
END
cat >trainer.sh <<'END'
set -eu
. ./fields.sh
echo "trainer of $stage" >&2
python3 - <<'PY'
import json, os
h = json.load(open(os.environ["QUERN_TRAINING"]))
lines = [json.loads(x) for x in open(h["dataset"])]
assert lines and h["examples"] == len(lines)
for x in lines:
    assert x["prompt_ids"] and x["answer_ids"] and isinstance(x["advantage"], float)
    assert [m["role"] for m in x["messages"]] == ["user", "assistant"]
    assert h["stage"] != "crl" or len(x["old_logp"]) == len(x["answer_ids"])
json.dump(h, open(h["state"] + "/seen.json", "w"))
PY
[ -e "$base/tokenizer.json" ] && [ -z "$(ls -A "$output")" ]
cp "$FROM"/*.safetensors "$output"
cp "$FROM"/*config.json "$output" 2>/dev/null
if [ -e "$output/adapter_config.json" ]; then
  sed -i 's|\("base_model_name_or_path": "\)[^"]*"|\1Some/Hub-Name"|' "$output/adapter_config.json"
fi
END
export FROM="$tmp/one/model"
outside() {
    run quern-sft --dataset dataset.qa --base base --epochs 1 --batch 4 --trainer "$1" --output "${@:2}"
}
outside 'sh trainer.sh' out1/model; s=$?
[ $s = 0 ] && cmp -s one/model/adapter_model.safetensors out1/model/adapter_model.safetensors &&
    [ ! -e out1/model.trainer ] && grep -q "trainer of sft" err
ok $? 'a trainer is given the dataset, and its adapter taken back'
grep -q "\"base_model_name_or_path\": \"$tmp/base\"" out1/model/adapter_config.json &&
    [ "$("$BIN/quern-artifact" export out1/model/manifest.qa | grep -c '"name"')" -ge 3 ]
ok $? 'an adapter of a trainer names its base as it is here, and its manifest is there'
run quern-sample --policy out1/model --prompts prompts.qa --copies 1 --max-new 4 --output out1.qa
ok $? "a trainer's adapter is a model that answers"
FROM="$tmp/base" outside 'sh trainer.sh' out2/model --lr 1e-5; s=$?
[ $s = 0 ] && cmp -s base/model.safetensors out2/model/model.safetensors
ok $? "a trainer's whole checkpoint is a model that answers"
run quern-selfsup --base one/model --samples one.qa --verdicts one-verdicts.qa --output out3/model \
    --trainer 'sh trainer.sh'
ok $? 'a trainer trains in stage 2'
run quern-crl --base one/model --samples one.qa --verdicts one-verdicts.qa --std-floor 0 --output out4/model \
    --trainer 'sh trainer.sh'
ok $? 'a trainer trains in stage 3'
run quern-crl --base one/model --samples native.qa --verdicts native-verdicts.qa --output out5/model \
    --trainer false; s=$?
[ $s = 0 ] && grep -q 'the trainer is not called' err &&
    cmp -s one/model/adapter_model.safetensors out5/model/adapter_model.safetensors &&
    [ "$(digest one/model/manifest.qa)" = "$(digest out5/model/manifest.qa)" ]
ok $? 'without examples the model is carried over'

outside 'echo nothing; exit 3' bad/model; s=$?
sentence $s 1 "ended with exit 3" || { [ $s = 1 ] && grep -q 'ended with exit 3' err; }; t=$?
[ $t = 0 ] && [ ! -e bad/model/manifest.qa ] && [ -s bad/model.trainer/dataset.jsonl ]
ok $? 'a trainer that fails: its exit is told, what it was given stays'
outside 'kill -SEGV $$' bad/model; [ $? = 1 ] && grep -q 'ended by signal 11' err
ok $? 'a trainer that a signal ends: the signal is told'
outside true bad/model; [ $? = 1 ] &&
    grep -q 'what the trainer wrote is no model: expected config.json or adapter_config.json' err
ok $? 'a trainer that writes nothing is refused'
outside '. ./fields.sh; echo "{}" >"$output/config.json"' bad/model
[ $? = 1 ] && grep -q 'what the trainer wrote is no model: .*config.json' err
ok $? "a trainer's config that is none is refused"
torn='. ./fields.sh; cp "$FROM"/adapter_config.json "$output"; '
torn+='head -c 100 "$FROM/adapter_model.safetensors" >"$output/adapter_model.safetensors"'
outside "$torn" bad/model
[ $? = 1 ] && grep -q 'what the trainer wrote is no model: .*adapter_model.safetensors' err
ok $? "a trainer's torn weights are refused"
[ ! -e bad/model/manifest.qa ]; ok $? 'no output of a trainer that was refused is a model'
outside 'sleep 60' bad/model --trainer-hours 0.0003
[ $? = 1 ] && grep -q 'took more than 1 s and was ended' err
ok $? 'a trainer that takes too long is ended'
nap=1061.5$$ # no other test sleeps so long
slow() {
    exec "$BIN/quern-sft" --dataset dataset.qa --base base --epochs 1 --batch 4 \
        --trainer '. ./fields.sh; touch "$state/on"; sleep '$nap' & sleep '$nap --output slow/model 2>err
}
slow & pid=$!
wait_for '[ -e slow/model.trainer/state/on ]'; kill -TERM $pid
wait_for '! kill -0 $pid 2>/dev/null'; ended=$?; kill -9 $pid 2>/dev/null; wait $pid; s=$?
[ $s$ended = 1430 ] && grep -q 'the same command calls it again' err
ok $? 'SIGTERM reaches the trainer, exit 143'
gone() { ! pgrep -f "^sleep $nap" >/dev/null; }
wait_for gone; ok $? 'all that a stopped trainer started is gone'
rm -f slow/model.trainer/state/on; slow & pid=$!
wait_for '[ -e slow/model.trainer/state/on ]'; kill -KILL $pid; wait $pid 2>/dev/null
wait_for gone; ok $? 'all that a trainer started is gone after kill -9, too'

# ---- the pipeline's rules ----
. "$root/tests/shell/rules.sh"
rules() {
    (cd "$root" && rules_of "${BIN%/bin}" DEVICES=sim:h100 PROFILE=smoke RUN="test-$$-none" "$@" -n crl)
}
rules POLICY=openai:M BASE="$tmp/base" >rules.out
grep -q "quern-sft .*--base $tmp/base .*--engine auto --lora 16" rules.out &&
    grep -q 'quern-sample --policy openai:M --ledger .* --adapter runs/.*/sft/model ' rules.out &&
    grep -q 'quern-crl --base runs/' rules.out
ok $? 'BASE: adapters on what the endpoint serves'
rules POLICY=openai:M >rules.out; ! grep -qE 'quern-(sft|crl) ' rules.out &&
    grep -q 'quern-sample --policy openai:M --ledger [^ ]* *--prompts' rules.out
ok $? 'without a trainer nothing is trained on an endpoint'
rules POLICY=native:"$tmp/base" LORA=8 TRAINER="sh it's.sh" TRAINING='--lean --max-tokens 4096' >rules.out
[ "$(grep -cF -- "--lora 8 --lean --trainer 'sh it'\\''s.sh' --max-tokens 4096" rules.out)" -ge 2 ] \
    || grep -qF -- "--trainer 'sh it'\\''s.sh'" rules.out
ok $? 'LORA, TRAINER and TRAINING reach the stages'
rules >rules.out; ! grep -qE -- '--(lora|engine|trainer|adapter)' rules.out
ok $? 'the default run has no setting of an adapter'
wrong() { # SENTENCE SETTINGS: make ends with 2 and one sentence, and nothing is started
    rules "${@:2}" >rules.out
    [ $? = 2 ] && grep -qF -- "quern: $1" rules.out && [ "$(wc -l <rules.out)" = 1 ]; ok $? "${1%%[:;]*}"
}
start='needs a checkpoint to start from: POLICY=native:DIR, or POLICY=openai:MODEL with BASE=DIR'
wrong "LORA=8 $start" LORA=8
wrong "TRAINER=sh train.sh $start" TRAINER='sh train.sh'
wrong 'BASE=x: there is no x/config.json, so it is no model directory' POLICY=openai:M BASE=x
wrong 'BASE=x names the checkpoint that POLICY=openai:MODEL serves; POLICY is small' BASE=x

check_key
done_testing
