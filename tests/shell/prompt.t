#!/bin/bash
# The worked candidates of full prompts are correct, and what the prompt allows compiles. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
mkdir tasks refs

# A task in ./tasks from relu's, with another name, tensors and reference.
task() { # NAME EDIT-OF-TASK.JSON FORMULA
  mkdir "tasks/$1"
  perl -0pe \
    "s/\"name\": \"relu\"/\"name\": \"$1\"/; s/\"turns\"[^\n]*\n//; s/\"special\"[^\n]*\n//;
    s/ *\"exact\"[^\n]*\n//; $2" "$root/tasks/relu/task.json" >"tasks/$1/task.json"
  {
    printf '#include <math.h>\n#include <stdint.h>\nvoid reference(const int64_t *axis, '
    printf 'const double *const *in, double *const *out)\n{\n%s\n}\n' "$3"
  } >"tasks/$1/reference.c"
  echo "const char reference_source[] = \"$(sha256sum <"tasks/$1/reference.c" | cut -c1-64)\";" |
    "${QUERN_CC:-gcc}" -O2 -fPIC -shared -o "refs/$1.so" "tasks/$1/reference.c" -x c - -lm
}
# The worked candidate in the prompt of a task.
worked() {
  "$BIN/quern-prompt" --tasks "$1" --style full --groups 1 --plain 1 --output prompts.qa &&
    "$BIN/quern-artifact" export prompts.qa |
    perl -MJSON::PP \
    -ne '$t = decode_json($_)->{text}; print $1 if $t =~ /^# A worked candidate.*?^```cuda\n(.*?)^```/ms'
}
worked relu >rows.cu; worked softmax >elements.cu
task elements 's/"x": (\{[^}]*\})/"a": $1, "b": $1/' \
  'for (int64_t i = 0; i < axis[0]; i++) out[0][i] = in[0][i] * in[1][i] + 1;'
perl -pi -e 's/"atol": 0/"atol": 1e-5/' tasks/elements/task.json
task rows \
  's/"n": \{"description": "elements"\}/"rows": {"description": "rows"}, "cols": {"description": "columns"}/;
      s/"x": \{"dtype": "float32", "shape": \["n"\]/"x": {"dtype": "float32", "shape": ["rows", "cols"]/;
      s/"y": \{"dtype": "float32", "shape": \["n"\]/"y": {"dtype": "float32", "shape": ["rows"]/;
      s/"8 \* n"/"4 * rows * cols"/; s/"flops": "n"/"flops": "rows * cols"/;
      s/\{"n": (\d+)\}/{"rows": 37, "cols": $1}/g; s/16777216/65536/; s/524288/4096/' \
  'for (int64_t r = 0; r < axis[0]; r++) { double m = 0; for (int64_t c = 0; c < axis[1];
      c++) m = fmax(m, fabs(in[0][r * axis[1] + c])); out[0][r] = m; }'
cp rows.cu tasks/rows/baseline.cu; cp elements.cu tasks/elements/baseline.cu
for t in rows elements; do
  QUERN_REFERENCES=$PWD/refs "$BIN/quern-eval" --task-root tasks --task $t $t.cu >out 2>&1
  is "the worked candidate of $t" "$(head -1 out)" "$t on sim:h100: ok"
done

{ printf '#include <%s>\n' cuda_fp16.h cuda_bf16.h mma.h cuda_pipeline.h cooperative_groups.h \
  cub/block/block_reduce.cuh math.h stdint.h
  echo 'extern "C" __global__ void k(float *y) { if (threadIdx.x == 0) y[0] = sqrtf(2.0f); }'; } >all.cu
"$BIN/quern-compile" all.cu >out 2>err; ok $? 'all headers that the prompt allows compile'
done_testing
