#!/bin/bash
# The generator's first candidates are right: pointwise, over rows and over columns, split sums, scans,
# views, casts, products, also of half types, and convolutions.
# TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$tmp" || exit 1
is_right() { # TASK: its first kernel is
  "$BUILD/bin/quern-kernel" --task $1 >$1.cu &&
    "$BUILD/bin/quern-eval" --task $1 --device sim:h100 $1.cu >out 2>&1
  ok $? "$1: $(sed -n 's/^ *score *//p' out)"
}
# Each line of stdin, outcomes and a change of the source, is judged as one of these.
mistakes() { # TASK SOURCE WHAT
  local outcome e lines=() files=() verdicts i
  while read -r outcome e; do
    sed -E "$e" "$2" >"less-${#lines[@]}.cu"
    files+=("less-${#lines[@]}.cu") lines+=("$outcome $e")
  done
  readarray -t verdicts < <("$BIN/quern-eval" --task "$1" --device sim:h100 --json "${files[@]}" 2>out)
  for i in "${!lines[@]}"; do
    read -r outcome e <<<"${lines[i]}"
    ! cmp -s "$2" "${files[i]}" && [[ ${verdicts[i]-} =~ \"outcome\":\"($outcome)\" ]]
    ok $? "$3: $outcome: $e"
  done
}
for t in gate_norm_silu_bf16 clamp_colsum scale_bias_flip hswish_gate_f16 mm_tanh k1_93_masked_cumsum; do
  is_right $t
done
task=k2_94_gemm_biasadd_hardtanh_mish_groupnorm
mkdir -p fewer/$task # sums of a quarter, by the same kernel
sed '/"role": "time"/s/"cols": 8192/"cols": 2048/' "$root/tasks/kernelbench/level2/$task/task.json" \
  >fewer/$task/task.json
QUERN_TASKS=$PWD/fewer is_right $task
export QUERN_TASKS=$root/tests/fixtures/layout
is_right small_l1 # tasks/composed/leaky_l1 with an eighth of its rows
is_right stored_pad # a padded tensor that is an output, in another padded one
is_right scan_chain
[ "$(grep -c '^//@ launch' scan_chain.cu)" = 2 ] && grep -q 'dim3(32, 16)' scan_chain.cu
ok $? "running sums, one behind the other, are one kernel; where columns lie side by side 32 to a block"
is_right mish_norm
[ "$(grep -cE 't[0-9]+_1 = ' mish_norm.cu)" = "$(grep -cE '= .*[^"]t[0-9]+_1\b' mish_norm.cu)" ]
ok $? "what a row keeps in registers is not computed again"
is_right far_norm # equal elements, far from zero, have no spread, also where several blocks fold a row
is_right gather_rows
grep -q '\*(const Pack<float, V> \*)(w + ' gather_rows.cu
ok $? "a row that a number chooses is read in vectors"
is_right state_sum
grep -q 'ceil_div(cols, 1) \* (rows)' state_sum.cu; ok $? "a thread adds up a row of few columns, in vectors"
is_right pool_last
grep -q '^    __shared__ float turned' pool_last.cu; ok $? "a pool of channels that lie last stores tiles"
is_right join_last
grep -q 'y, x, s, v, c' join_last.cu && grep -q 'keep.*\[64\]\[33\]' join_last.cu
ok $? "joined tensors are stored for windows, by tiles where one has channels last"
is_right tile_piece
grep -q 'ceil_div(height \* width, 64)' tile_piece.cu; ok $? "tiles go on from an image's row to the next"
(unset QUERN_TASKS; "$BUILD/bin/quern-kernel" --task k3_44_minigptblock --own >block.cu) &&
  ! grep -q 'aten.linear' block.cu && [ "$(grep -c '^//@ schedule linear.* route=tensor' block.cu)" = 4 ]
ok $? "products of four sizes are kernels"
# Found by drawn graphs (2026-11-30), each a kernel that NVRTC refused or that was wrong at some sizes:
for t in scan_fold scan_loop turned_rows one_term kept_loop chosen_loop; do is_right $t; done
"$BUILD/bin/quern-kernel" --task two_depths >depths.cu && grep -q left_parts_2 depths.cu &&
  "$BUILD/bin/quern-eval" --task two_depths --device sim:h100 depths.cu >out 2>&1 &&
  [ "$(sed -n 's/^ *score *\([0-9]*\).*/\1/p' out)" -gt 1 ]
ok $? "products of two depths write all of their halves: $(sed -n 's/^ *score *//p' out)"
sed '/buffer half left_parts\[/s/\[/[2 * /' depths.cu >holes.cu
"$BUILD/bin/quern-eval" --task two_depths --device sim:h100 holes.cu >out 2>&1
grep -q '^  score *1.000' out &&
  grep -q '^  timed size: no speedup counts, since .* buffer left_parts is written' out
ok $? "a verdict says why a speedup does not count"
for t in rotations camera warped_grid; do
  is_right $t
  ! grep -q '^//@ op' $t.cu; ok $? "$t: products of few terms, stacks of many parts and steps are no op lines"
done
is_right resized
! grep -q '^//@ op' resized.cu; ok $? "an image between its neighbours is no op line"
is_right depthwise_filters
! grep -q '^//@ op' depthwise_filters.cu; ok $? "convolutions of one channel a group are no op lines"
"$BUILD/bin/quern-kernel" --task conv_chain --schedule '//@ schedule h route=library' >chain.cu &&
  "$BUILD/bin/quern-eval" --task conv_chain --device sim:h100 chain.cu >out 2>&1
ok $? "conv_chain: $(sed -n 's/^ *score *//p' out)"
[ "$(grep -c 'aten.permute' chain.cu)" -ge 3 ]; ok $? "its first convolution has channels last"
sed '/^.*launch/s/(h_last,/(h_raw,/' chain.cu >raw.cu
"$BUILD/bin/quern-eval" --task conv_chain --device sim:h100 raw.cu >out 2>&1
grep -q 'h_raw is a view whose elements do not lie one after another' out
ok $? "a kernel that takes such a result as one in C order is refused"
for how in async 'tensor tile=128' 'tensor tile=256'; do
  "$BUILD/bin/quern-kernel" --task conv_packed >packed.cu \
    --schedule "//@ schedule h route=tensor copy=$how; //@ schedule y route=tensor copy=$how" &&
    [ "$(grep -c '^//@ launch kernel_' packed.cu)" = 3 ] && ! grep -q pack_input packed.cu &&
    [ "$(grep -c '^//@ launch pack_filters_.*dim3(max(' packed.cu)" = 1 ] && # both's by one launch
    "$BUILD/bin/quern-eval" --task conv_packed --device sim:h100 packed.cu >out 2>&1
  ok $? "what convolutions read is computed as they read it, copy=$how: $(sed -n 's/^ *score *//p' out)"
done
while read -r e; do
  sed -E "$e" packed.cu >less.cu
  ! cmp -s packed.cu less.cu && "$BUILD/bin/quern-eval" --task conv_packed --device sim:h100 less.cu >out 2>&1
  [ $? = 1 ] && grep -q 'wrong_result\|out_of_bounds\|race' out; ok $? "the same with a mistake: $e"
done <<'END'
s/(one\(2, sums.)z/\1y/
s/quads \+ row \/ 4\)/quads + row \/ 8)/
s/value\(batch, min\(row \+ i,/value(batch, min(row,/
END
is_right depthwise_chain
! grep -qE '^//@ op|pack_input_.*\((a|s),' depthwise_chain.cu &&
  grep -q '  depthwise<5, 3, 1, 2, 2, 1,' depthwise_chain.cu
ok $? "a depthwise convolution between two others reads and writes as their kernels do"
mistakes depthwise_chain depthwise_chain.cu 'a depthwise convolution with a mistake' <<'END'
wrong_result s/from, top \+ k \* LOW/from, top + (KW - k) * LOW/
wrong_result s/sums\[r\]\.z \+= a\.z/sums[r].z += a.y/
END
"$BUILD/bin/quern-kernel" --task conv_folds >folds.cu \
  --schedule '//@ schedule h route=tensor; //@ schedule g route=tensor' &&
  [ "$(grep -cE 'convolve_fold_(outputs|filters)<[0-9]' folds.cu)" = 2 ] &&
  "$BUILD/bin/quern-eval" --task conv_folds --device sim:h100 folds.cu >out 2>&1
ok $? "conv_folds, in its convolutions' kernels: $(sed -n 's/^ *score *//p' out)"
maps='//@ schedule h route=tensor copy=tensor tile=128; //@ schedule g route=tensor copy=tensor tile=128'
"$BUILD/bin/quern-kernel" --task conv_folds --schedule "${maps//128/256}" >folds.cu &&
  [ "$(grep -c '//@ map .*_map_' folds.cu)" = 4 ] &&
  "$BUILD/bin/quern-eval" --task conv_folds --device sim:h100 folds.cu >out 2>&1
ok $? "the same by tensor maps: $(sed -n 's/^ *score *//p' out)"
mistakes conv_folds folds.cu 'what all taps read, with a mistake' <<'END'
timeout s/^ *barrier_wait\(room.barriers \+ Z::EMPTY_INPUT.*//
wrong_result s/y \+= s\[1\].turn/y += 1/
END
one="${maps%;*}; //@ schedule g route=library" # one convolution compiles in half the time
"$BUILD/bin/quern-kernel" --task conv_folds --schedule "${one/128/256}" >folds.cu
mistakes conv_folds folds.cu 'what all taps read, with a mistake' <<'END'
race s/^ *barrier_wait\(room.barriers \+ Z::FULL_INPUT \+ 8 \* room.*//
timeout s/^ *barrier_wait\(room.barriers \+ 8 \* \(STAGES.*//
race s/(wgmma.wait_group.sync.aligned) 1;/\1 2;/
wrong_result s/WIDE \* 16\);/WIDE * 16 + 16);/
END
"$BUILD/bin/quern-kernel" --task conv_folds --schedule "$maps" >folds.cu &&
  [ "$(grep -c 'ConvolveMaps source' folds.cu)" = 2 ] &&
  "$BUILD/bin/quern-eval" --task conv_folds --device sim:h100 folds.cu >out 2>&1
ok $? "and by boxes of each tap: $(sed -n 's/^ *score *//p' out)"
"$BUILD/bin/quern-kernel" --task conv_folds --schedule "$one" >folds.cu
mistakes conv_folds folds.cu 'boxes of a convolution with a mistake' <<'END'
race s/^ *barrier_wait\(ring.full.*//
timeout s/^ *barrier_wait\(ring.empty.*//
race s/(wgmma.wait_group.sync.aligned) 1;/\1 2;/
timeout s/"r"\(STAGE\)/"r"(STAGE - LEFT)/
wrong_result s/"r"\(at.x\)/"r"(at.x + 1)/
END
"$BUILD/bin/quern-kernel" --task conv_pools --schedule "$maps" >pools.cu &&
  [ "$(grep -cE 'convolve_fold_(windows|classes)<[0-9]' pools.cu)" = 2 ] &&
  [ "$(grep -c '//@ launch kernel_' pools.cu)" = 2 ] && # what follows is theirs, too
  "$BUILD/bin/quern-eval" --task conv_pools --device sim:h100 pools.cu >out 2>&1
ok $? "pools in their convolutions' kernels: $(sed -n 's/^ *score *//p' out)"
"$BUILD/bin/quern-kernel" --task conv_pools --schedule "$one" >pools.cu
mistakes conv_pools pools.cu 'a pool with a mistake' <<'END'
wrong_result s/y < WY; y\+\+/y < 1; y++/
wrong_result|out_of_bounds s/to.x >= pooled.x/to.x > pooled.x/
END
norms='//@ schedule h route=tensor; //@ schedule part_7 less=yes
//@ schedule g route=tensor; //@ schedule part_18 less=yes'
"$BUILD/bin/quern-kernel" --task conv_norms --schedule "$norms; $maps" >norms.cu &&
  [ "$(grep -c '//@ map .*_map_' norms.cu)" = 4 ] &&
  "$BUILD/bin/quern-eval" --task conv_norms --device sim:h100 norms.cu >out 2>&1
ok $? "statistics of norms by tensor maps: $(sed -n 's/^ *score *//p' out)"
"$BUILD/bin/quern-kernel" --task conv_norms --schedule "$norms" >norms.cu &&
  [ "$(grep -c '  convolve_statistics<' norms.cu)" = 2 ] &&
  "$BUILD/bin/quern-eval" --task conv_norms --device sim:h100 norms.cu >out 2>&1
ok $? "statistics of norms in their convolutions' kernels: $(sed -n 's/^ *score *//p' out)"
"$BUILD/bin/quern-kernel" --task conv_norms >norms.cu \
  --schedule "${norms%%$'\n'*}; //@ schedule g route=library"
mistakes conv_norms norms.cu 'statistics with a mistake' <<'END'
wrong_result|race s/there\[i\] \? x\[i\] : 0.f/true ? x[i] : 0.f/
wrong_result|race s/of\[r\].add\(of\[r\].other\(2\)\);//
wrong_result|race s/\.add\(shared\[8 \* r\]\)/.add({0, 0, 0})/
END
export QUERN_TASKS=$root/tests/fixtures/products
while read -r t schedule; do
  "$BUILD/bin/quern-kernel" --task "$t" --schedule "$schedule" >half.cu &&
    [ "$(grep -c '^//@ op' half.cu)" -le 1 ] && # a view
    "$BUILD/bin/quern-eval" --task "$t" --device sim:h100 half.cu >out 2>&1
  ok $? "$t with $schedule: $(sed -n 's/^ *score *//p' out)"
done <<'END'
swiglu_bf16 //@ schedule g route=tensor tile=128 split=2
swiglu_bf16 //@ schedule g route=tensor tile=160
bmm_bias_f16 //@ schedule h route=tensor stages=3
bmm_bias_f16 //@ schedule h route=tensor stages=3 copy=async
up_gelu //@ schedule h route=tensor
triangles //@ schedule h route=tensor
masked_bf16 //@ schedule h route=tensor tile=128
residual_bf16 //@ schedule h route=tensor tile=128
residual_bf16 //@ schedule h route=tensor tile=128 split=4
swiglu_bf16 //@ schedule g route=tensor tile=128
states //@ schedule h own=yes
skinny //@ schedule h route=tensor copy=load split=64; //@ schedule g route=tensor copy=load split=2
skinny //@ schedule h route=tensor copy=async split=8; //@ schedule g route=rows split=64
END
"$BUILD/bin/quern-kernel" --task triangles --schedule '//@ schedule h route=tensor' >whole.cu
mistakes triangles whole.cu 'a triangle that is too small' <<'END'
wrong_result s/\{\{-150, /{{50, /
wrong_result s/\}, \{-1073741824, 0\}, /}, {-1073741824, -64}, /
wrong_result s/\{-3, 1073741824\}\}/{64, 1073741824}}/
END
"$BUILD/bin/quern-kernel" --task residual_bf16 --schedule '//@ schedule h route=tensor tile=128' >whole.cu
mistakes residual_bf16 whole.cu 'sums that begin with another bias' <<'END'
wrong_result s/x == 4 \* y \?/x == 4 * y + 1 ?/
wrong_result s/BIAS \|\| k \+ i > 0/k + i > 0/
race /bar.sync %0, 128;" ::"r"\(group \+ 1\) : "memory"\);$/d
END
"$BUILD/bin/quern-kernel" --task swiglu_bf16 >whole.cu \
  --schedule '//@ schedule g route=tensor tile=128 stages=3 copy=tensor' # all tiles by one block
sed -i -E 's/<<<min.*, 384, /<<<1, 384, /' whole.cu
mistakes swiglu_bf16 whole.cu 'warp groups that make tiles in turns' <<'END'
ok s/<<<1, 384, /<<<2, 384, /
timeout|race|wrong_result s/half_skip<STAGES>\(s, steps_of\(item.*//
wrong_result|race s/now.row -= 64 \* own_turn;//
END
"$BUILD/bin/quern-kernel" --task skinny >whole.cu && [ "$(grep -c 'copy=load split=64' whole.cu)" = 2 ]
ok $? "sums of many terms and few tiles are split, and their factors with them"
"$BUILD/bin/quern-kernel" --task skinny >whole.cu \
  --schedule '//@ schedule h route=tensor copy=load split=64; //@ schedule g route=library'
mistakes skinny whole.cu 'a split sum with a mistake' <<'END'
out_of_bounds s/"n"\(DIRECT_STAGES - 2\)/"n"(DIRECT_STAGES - 1)/
race s/^.*fence.proxy.async.shared::cta.*//
wrong_result s/(i < 64; i\+\+\) first \+= part_sums\[)i \*/\10 */
END
"$BUILD/bin/quern-kernel" --task residual_bf16 --schedule '//@ schedule h route=tensor tile=128' >whole.cu
sed 's/J ? both & 0xffff0000u : both << 16/J ? both << 16 : both \& 0xffff0000u/' whole.cu >less.cu
! cmp -s whole.cu less.cu && [ "$(grep -cE 'half_read\(of, |half_ahead<128>\(r_, ' whole.cu)" = 2 ] &&
  ! "$BUILD/bin/quern-eval" --task residual_bf16 --device sim:h100 less.cu >out 2>&1 &&
  grep -q wrong_result out
ok $? "a residual is read by words, and neighbours that change places are wrong"
copied_wrong() { # COPY: mistakes of copies that do not wait, or of less
  "$BUILD/bin/quern-kernel" --task bmm_bias_f16 \
    --schedule "//@ schedule h route=tensor stages=3 copy=$1" >whole.cu
  mistakes bmm_bias_f16 whole.cu "copies by $1"
}
copied_wrong async <<'END'
race s/^ *barrier_wait\(f.full.*//
race s/^ *barrier_wait\(room.empty.*//
race s/^.*fence.proxy.async.*//
race s/(wgmma.wait_group.sync.aligned) 1;/\1 2;/
race s/"n"\(AHEAD\)/"n"(AHEAD + 1)/
END
copied_wrong tensor <<'END'
race s/^ *barrier_wait\(f.full.*//
race s/^ *barrier_wait\(room.empty.*//
race s/(wgmma.wait_group.sync.aligned) 1;/\1 2;/
out_of_bounds s/"r"\(STAGE\)/"r"(STAGE - HALF_GROUP)/
wrong_result s/k \* HALF_TERMS, p.batch, full\);/(k - k % 2) * HALF_TERMS, p.batch, full);/
END
export QUERN_TASKS=$root/tests/fixtures/together
apart=$(printf '//@ schedule %s store=no; ' abs_1 sigmoid sub mul part_14)
while read -r launches schedule; do
  "$BUILD/bin/quern-kernel" --task heads --schedule "$schedule" >heads.cu &&
    [ "$(grep -c '^//@ launch' heads.cu)" = "$launches" ] &&
    "$BUILD/bin/quern-eval" --task heads --device sim:h100 heads.cu >out 2>&1
  ok $? "five results by $launches kernels: $(sed -n 's/^ *score *//p' out)"
done <<END
5 //@ schedule part_14_parts join=yes
9 $apart//@ schedule part_14_parts join=no; //@ schedule sum_2 join=no; //@ schedule sub_1 join=no
END
"$BUILD/bin/quern-kernel" --task qknorm >rotary.cu && [ "$(grep -c '^//@ launch' rotary.cu)" = 2 ] &&
  [ "$(grep -c 'unsigned)V);' rotary.cu)" -ge 4 ] &&
  [ "$(grep -c 'float u[0-9]*\[V\];' rotary.cu)" -ge 4 ] && grep -q 'const bool u[0-9]* = from_' rotary.cu &&
  "$BUILD/bin/quern-eval" --task qknorm --device sim:h100 rotary.cu >out 2>&1
ok $? "norms of rows whose halves change places, by vectors and by halves: $(sed -n 's/^ *score *//p' out)"
mkdir -p bound
us=$(sed -n 's/^ *time *\([0-9.]*\).*/\1/p' out)
env -u QUERN_LOG "$BUILD/bin/quern-tune" --task qknorm --device sim:h100 --bound only --output bound 2>err &&
  awk -v bound="$(sed 's/.*the bound is \([0-9.]*\) us.*/\1/' err)" -v us="$us" \
    'BEGIN { exit !(bound > 0 && bound < us) }'
ok $? "the bound of a tensor that is read at several places counts it once: $(cut -c1-200 err)"
while read -r t launches operators most what; do # most: the predicted time of the judge, in us
  "$BUILD/bin/quern-kernel" --task "$t" >own.cu && [ "$(grep -c '^//@ launch' own.cu)" = "$launches" ] &&
    [ "$(grep -c '^//@ op' own.cu)" = "$operators" ] &&
    "$BUILD/bin/quern-eval" --task "$t" --device sim:h100 --json own.cu >out 2>&1 &&
    awk -v most="$most" -F '"time_us":' '{ split($2, us, ","); exit !(us[1] < most) }' out
  ok $? "$t: $what: $(sed -n 's/.*"time_us":\([0-9]*\).*/\1 us/p' out)"
done <<'END'
ada_ln_zero 1 0 70 a result and its norm are one kernel, whose stores are vectors
giou_loss 2 0 20 losses over the same rows have their parts by one kernel, and a sum that is there twice once
tversky_binary 3 0 30 so have three sums over the same maps
bbox_distribution 2 0 40 a thread folds a row that it keeps
window_softmax 1 0 130 rows of two parts are folded by part, and choose no element
moe_combine 1 0 110 a sum of two terms is added up by each element of a row
fake_quant 1 0 115 a row's scale and its codes are results of one kernel
short_conv 1 0 105 taps of a causal convolution and its gates are vectors
anchor_grid 1 0 145 parts of a channel are brought through shared memory, and read once
group_dequant 1 0 100 bits of bytes, and neighbours of a row by their halves
END
mkdir drawn
"$BUILD/bin/quern-kernel" --task window_softmax --seed 5 --count 16 --mistakes 0 --output drawn >out 2>&1 &&
  "$BUILD/bin/quern-eval" --task window_softmax --device sim:h100 drawn/window_softmax-16.cu >out 2>&1
ok $? "a plain kernel whose row has other columns than its result stores each element once"
while read -r t seed what; do
  "$BUILD/bin/quern-kernel" --task "$t" >own.cu &&
    "$BUILD/bin/quern-eval" --task "$t" --device sim:h100 --seed "$seed" own.cu >out 2>&1
  ok $? "$t, seed $seed: $what"
done <<'END'
top_k_gate 12 equal elements of a row have equal results, whichever thread has them
fake_quant 2 codes of whole rows at the timed size may be either neighbour of a tie
END
unset QUERN_TASKS
"$BUILD/bin/quern-kernel" --task kernelbench/level3/k3_34_vanillarnnhidden >many.cu &&
  head -n 1 many.cu | grep -q 'a plan of .* buffers, at most 256'
ok $? "a plan of too many buffers is one of op lines"
lines() { sed -n '/^\/\/@ schedule/p' "$1"; }
has_all() { # SOURCE SCHEDULE: each gene of the schedule is in the source's lines
  local word
  for word in $2; do
    case $word in *=*) lines "$1" | grep -qF " ${word%;}" || return 1 ;; esac
  done
}
"$BUILD/bin/quern-kernel" --task clamp_colsum --schedule clamp_colsum.cu >again.cu &&
  cmp clamp_colsum.cu again.cu
ok $? "a schedule that is read back writes the same kernel"
while read -r t schedule; do
  [ -f "$t.cu" ] || "$BUILD/bin/quern-kernel" --task "$t" >"$t.cu"
  "$BUILD/bin/quern-kernel" --task "$t" --schedule "$schedule" >other.cu && ! cmp -s "$t.cu" other.cu &&
    has_all other.cu "$schedule" &&
    "$BUILD/bin/quern-eval" --task "$t" --device sim:h100 other.cu >out 2>&1
  ok $? "$t with $schedule: $(sed -n 's/^ *score *//p' out)"
done <<'EOF'
gate_norm_silu_bf16 //@ schedule part_6 store=yes
clamp_colsum //@ schedule y split=64 lanes=32; //@ schedule y_parts lanes=4
k1_92_cumsum_exclusive //@ schedule cat vec=2 lanes=32 block=64
scale_bias_flip //@ schedule y vec=2 block=64 items=4
linear_silu_rowmul //@ schedule h route=rows
EOF
"$BUILD/bin/quern-kernel" --task leaky_l1 --schedule '//@ schedule y vec=3' >out 2>err
[ $? = 1 ] && grep -q 'vec is one of 1 2 4 8, found "3"' err; ok $? "a value that a gene has not is refused"
"$BUILD/bin/quern-kernel" --task leaky_l1 --schedule '//@ schedule z vec=4' >out 2>err
[ $? = 1 ] && grep -q 'schedule of z: vec=4 is no choice there' err; ok $? "a line of no kernel is refused"
# Until 2026-12-01 each thread of such a kernel added up half of a row, and stored that.
"$BUILD/bin/quern-kernel" --task k1_44_average_pooling_1d --schedule '//@ schedule avg_pool1d lanes=2' \
  >out 2>err
[ $? = 1 ] && grep -q 'lanes=2 is no choice there' err; ok $? "rows that a thread has alone have no lanes"
"$BUILD/bin/quern-kernel" --task relu >out 2>err; [ $? = 1 ] && grep -q 'task relu has no graph' err
ok $? "a task without a graph is refused in one sentence"
"$BUILD/bin/quern-kernel" --task nothing >out 2>err; [ $? = 2 ] && [ "$(wc -l <err)" = 1 ]
ok $? "a wrong name is refused in one sentence"
done_testing
