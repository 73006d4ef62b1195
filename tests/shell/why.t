#!/bin/bash
# quern why: the limiting resource, the line that takes the time, its excess, and the change that helps. TAP
# on stdout.
. "$(dirname "$0")/tap.sh"
export QUERN_LOG=quiet
says() { grep -qF -- "$1" out; } # WORDS

# The transposition with strided stores: the line of the store, with its sectors a request.
run quern-why transpose "$root/tasks/transpose/baseline.cu"
ok $rc 'a kernel is explained'
says 'It is limited by L2'; ok $? 'the limit of a kernel is named'
line=$(grep -n 'y\[i\] = x' "$root/tasks/transpose/baseline.cu" | cut -d: -f1)
grep -q "line $line: 9[0-9]%, L2: 18 sectors a request, 4 at best" out
ok $? 'the strided line takes the time, with its sectors'
grep -A1 "line $line:" out | grep -q '^ *y\[i\] = x'; ok $? 'the text of a costly line follows'
says 'neighbouring addresses'; ok $? 'coalescing is advised'

# A tile whose columns share a bank, and one that is padded.
kernel() { # WIDTH: a transposition through a tile of 32 rows of so many words
  cat <<EOF
//@ launch turn<<<dim3(ceil_div(cols, 32), ceil_div(rows, 32)), dim3(32, 8)>>>(x, y, rows, cols)
extern "C" __global__ void turn(const float *x, float *y, int rows, int cols)
{
    __shared__ float tile[32][$1];
    for (int i = threadIdx.y; i < 32; i += 8) {
        int r = blockIdx.y * 32 + i, c = blockIdx.x * 32 + threadIdx.x;
        if (r < rows && c < cols) tile[i][threadIdx.x] = x[(long long)r * cols + c];
    }
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8) {
        int r = blockIdx.y * 32 + threadIdx.x, c = blockIdx.x * 32 + i;
        if (r < rows && c < cols) y[(long long)c * rows + r] = tile[threadIdx.x][i];
    }
}
EOF
}
kernel 32 >tight.cu
kernel 33 >padded.cu
run quern-why transpose tight.cu
ok $rc 'a kernel with bank conflicts is explained'
grep -q 'line 12: [0-9]*%, L1 and shared memory: 32 times its ideal shared wavefronts' out
ok $? 'the line with 32-way conflicts is named'
says 'bank conflicts: pad the rows'; ok $? 'padding is advised'
run quern-why transpose padded.cu --against tight.cu
ok $rc 'two kernels are compared'
says 'tight.cu is limited most by L1 and shared memory.' && says 'has fewer bank conflicts: 0 instead of'
ok $? 'the difference between two kernels is named: the conflicts'
grep -q '^  bank conflicts .* 0  better$' out; ok $? 'fewer conflicts are said to be better'
says 'line 12: '; [ $? = 0 ] && ! says 'ideal shared wavefronts'; ok $? 'the padded tile has no conflict'

sed 's/= tile\[threadIdx.x\]\[i\]/= 0/' padded.cu >wide.cu
run quern-why transpose wide.cu
[ $rc = 1 ] && says 'wide.cu is not correct: wrong_result'
ok $? 'a wrong kernel is status 1, with its verdict'

run quern-why transpose absent.cu
[ $rc = 2 ] && sentence quern-why 'absent.cu'; ok $? 'why of a file that is not there is refused'
run quern-why no_such_task padded.cu
[ $rc = 2 ] && sentence quern-why 'no_such_task'; ok $? 'why of a task that is not there is refused'
done_testing
