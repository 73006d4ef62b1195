// Reads a file of the machine by way of the assembler.
// task: relu
// expect: compile_error
// never: root:
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    asm volatile(".file 1 \"/etc/passwd\"\n.incbin \"/etc/passwd\"");
    y[0] = x[0];
}
