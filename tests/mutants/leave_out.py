"""Writes kernels that leave out work of a right one, each in its own way: leave_out.py KERNEL.cu FOLDER.

A way of a kind `large` leaves it out at large sizes alone. The files are FOLDER/WAY.cu; ways that do not
apply give none. A judge may take one where nothing is missing, as a grid of fewer blocks whose threads go on;
none may score above the right kernel by more than such a change explains.
"""
import os
import re
import sys

LARGE = 600  # blocks or elements from which a way of the kind `large` begins


def split(text):
    """The parts of a list at its outer commas."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return parts + [part.strip()]


def launches(lines):
    """Of each launch: line, kernel, grid, the rest of the configuration, arguments."""
    found = []
    for i, line in enumerate(lines):
        m = re.match(r"//@ launch (\w+)<<<(.*)>>>\((.*)\)(.*)$", line)
        if m:
            grid, *rest = split(m.group(2))
            found.append((i, m.group(1), grid, rest, split(m.group(3)), m.group(4)))
    return found


def with_launch(lines, launch, grid=None, args=None):
    i, name, old, rest, old_args, tail = launch
    out = list(lines)
    out[i] = f"//@ launch {name}<<<{', '.join([grid or old] + rest)}>>>({', '.join(args or old_args)}){tail}"
    return out


def first_of(grid):
    """The grid's first extent, and the grid with another one."""
    m = re.match(r"dim3\((.*)\)$", grid)
    if not m:
        return grid, lambda x: x
    parts = split(m.group(1))
    return parts[0], lambda x: f"dim3({', '.join([x] + parts[1:])})"


def integers(text, launch):
    """The places of a launch's integer arguments."""
    m = re.search(r"__global__ void (?:__\w+__\(.*?\) )?%s\((.*?)\)\s*\{" % launch[1], text, re.S)
    if not m:
        return []
    types = split(m.group(1))
    integer = r"(const )?(unsigned |long )*(int|unsigned|long|size_t)\b[^*]*$"
    return [i for i, t in enumerate(types) if re.match(integer, t)]


def grids(lines, launch):
    extent, put = first_of(launch[2])
    yield "grid_half", with_launch(lines, launch, put(f"max(1, ({extent}) / 2)"))
    yield "grid_last", with_launch(lines, launch, put(f"max(1, ({extent}) - 1)"))
    yield "grid_eighth_large", with_launch(
        lines, launch, put(f"({extent}) - ({extent}) / 8 * min(1, ({extent}) / {LARGE})"))


def arguments(text, lines, launch):
    at = integers(text, launch)
    for name, i in (("first", at[:1]), ("second", at[1:2]), ("last", at[2:][-1:])):
        for k in i:
            a = launch[4][k]
            for way, x in (("half", f"max(1, ({a}) / 2)"),
                           ("eighth_large", f"({a}) - ({a}) / 8 * min(1, ({a}) / {LARGE})")):
                args = launch[4][:k] + [x] + launch[4][k + 1:]
                yield f"{name}_{way}", with_launch(lines, launch, args=args)


def bodies(text, launch):
    """Blocks or threads return at once."""
    large = f"gridDim.x > {LARGE}"
    ways = {"blocks_eighth": "blockIdx.x % 8 == 7",
            "blocks_eighth_large": f"{large} && blockIdx.x % 8 == 7",
            "blocks_late_large": f"{large} && blockIdx.x >= gridDim.x - gridDim.x / 8",
            "blocks_hashed_large": f"{large} && (blockIdx.x * 2654435761u >> 29) == 5",
            "threads_large": f"{large} && threadIdx.x >= blockDim.x / 2"}
    m = re.search(r"__global__ void (?:__\w+__\(.*?\) )?%s\(.*?\)\s*\{" % launch[1], text, re.S)
    for way, condition in ways.items():
        if m:
            yield way, (text[:m.end()] + f"\n    if ({condition}) return;" + text[m.end():]).split("\n")


def loops(text):
    """The first and the last loop with a bound that has a name."""
    found = list(re.finditer(r"for \((?:int|long long) (\w+) = [^;]*; \1 < ([a-z]\w*); ([^)]*)\)", text))
    for name, m in (("first", found[:1]), ("last", found[1:][-1:])):
        for x in m:
            b = x.group(2)
            large = f"({b} > {LARGE} ? {b} - {b} / 8 : {b})"
            for way, bound in (("half", f"{b} / 2"), ("eighth_large", large)):
                yield f"{name}_loop_{way}", (text[:x.start(2)] + bound + text[x.end(2):]).split("\n")


def ways(text):
    lines = text.split("\n")
    of = launches(lines)
    for name, launch in [("a", x) for x in of[-1:]] + [("b", x) for x in of[:-1][:1]]:
        for found in (grids(lines, launch), arguments(text, lines, launch), bodies(text, launch)):
            for way, out in found:
                yield f"{name}_{way}", out
        if len(of) > 1:
            yield f"{name}_launch", lines[:launch[0]] + lines[launch[0] + 1:]
    for way, out in loops(text):
        yield way, out


def main(path, folder):
    os.makedirs(folder, exist_ok=True)
    text = open(path).read()
    for way, out in ways(text):
        with open(os.path.join(folder, way + ".cu"), "w") as f:
            f.write("\n".join(out))


if __name__ == "__main__":
    main(*sys.argv[1:3])
