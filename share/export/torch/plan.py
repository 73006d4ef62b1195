"""The launch plan of a package: sizes and arguments of every launch for given axes.

It needs no torch. Expressions are those of C with 64-bit integers, over the task's axes; they mean
here what they mean in Quern.
"""

import re

_TOKEN = re.compile(r"\s*(0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&^|?:~!(),])")
_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"),
           ("+", "-"), ("*", "/", "%"))

_INDEX = 2**31 - 1


class PlanError(ValueError):
    """An expression that has no value, or sizes that do not fit the plan."""


def _divide(a, b):
    if b == 0:
        raise PlanError("division by zero")
    q = abs(a) // abs(b)
    return q if bool(a < 0) == bool(b < 0) else -q  # sizes may be symbols


def _apply(op, a, b):
    if op == "/":
        return _divide(a, b)
    if op == "%":
        return a - b * _divide(a, b)
    return {
        "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "<<": lambda: a << b,
        ">>": lambda: a >> b, "<": lambda: int(a < b), "<=": lambda: int(a <= b),
        ">": lambda: int(a > b), ">=": lambda: int(a >= b), "==": lambda: int(a == b),
        "!=": lambda: int(a != b), "&": lambda: a & b, "^": lambda: a ^ b, "|": lambda: a | b,
        "&&": lambda: int(bool(a) and bool(b)), "||": lambda: int(bool(a) or bool(b)),
    }[op]()


_FUNCTIONS = {
    "ceil_div": lambda a, b: -_divide(-a, b) if a % b == 0 else _divide(a, b) + 1,
    "min": min,
    "max": max,
    "log2": lambda a: a.bit_length() - 1,
}


class _Parser:
    def __init__(self, text, values):
        self.tokens = _TOKEN.findall(text)
        if "".join(self.tokens) != "".join(text.split()):
            raise PlanError(f"not an expression: {text!r}")
        self.at, self.values, self.text = 0, values, text
        self.skip = 0  # in a part that is not evaluated: a division by zero is no error

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, token=None):
        found = self.peek()
        if found is None or token not in (None, found):
            raise PlanError(f"expected {token or 'a value'} in {self.text!r}")
        self.at += 1
        return found

    def whole(self):
        value = self.ternary()
        if self.peek() is not None:
            raise PlanError(f"unexpected {self.peek()} in {self.text!r}")
        return value

    def ternary(self):
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take("?")
        yes = self.part(self.ternary, not condition)
        self.take(":")
        no = self.part(self.ternary, condition)
        return yes if condition else no

    def part(self, parse, skipped):
        self.skip += bool(skipped)
        value = parse()
        self.skip -= bool(skipped)
        return value

    def binary(self, level):
        if level == len(_LEVELS):
            return self.unary()
        value = self.binary(level + 1)
        while self.peek() in _LEVELS[level]:
            op = self.take()
            decided = (op == "&&" and not value) or (op == "||" and value)
            right = self.part(lambda: self.binary(level + 1), decided)
            value = 0 if self.skip else _apply(op, value, right)
        return value

    def unary(self):
        token = self.take()
        if token == "-":
            return -self.unary()
        if token == "+":
            return self.unary()
        if token == "!":
            return int(not self.unary())
        if token == "~":
            return ~self.unary()
        if token == "(":
            value = self.ternary()
            self.take(")")
            return value
        if token[0].isdigit():
            return int(token, 0) if token[:2] in ("0x", "0X") else int(token)
        if self.peek() == "(":
            return self.call(token)
        if token not in self.values and not self.skip:
            raise PlanError(f"unknown name {token} in {self.text!r}")
        return self.values.get(token, 0)

    def call(self, name):
        self.take("(")
        arguments = [self.ternary()]
        while self.peek() == ",":
            self.take(",")
            arguments.append(self.ternary())
        self.take(")")
        if name not in _FUNCTIONS:
            raise PlanError(f"unknown function {name} in {self.text!r}")
        return 0 if self.skip else _FUNCTIONS[name](*arguments)


def evaluate(text, values):
    """The value of an expression over `values`, a dict from names to integers."""
    return _Parser(str(text), values).whole()


def solve_axes(package, shapes):
    """The axes of input shapes (a list in the order of package["inputs"]). PlanError: they do not fit."""
    axes = {}
    for spec, shape in zip(package["inputs"], shapes):
        if len(shape) != len(spec["shape"]):
            raise PlanError(f"{spec['name']} has {len(shape)} dimensions, expected {len(spec['shape'])}")
        for expression, size in zip(spec["shape"], shape):
            if expression in package["axes"] and axes.setdefault(expression, size) != size:
                raise PlanError(
                    f"{spec['name']} has size {size} for {expression}, expected {axes[expression]}"
                )
    missing = [a for a in package["axes"] if a not in axes]
    if missing:
        raise PlanError(f"the shapes do not tell {', '.join(missing)}")
    for spec, shape in zip(package["inputs"], shapes):
        want = [evaluate(e, axes) for e in spec["shape"]]
        if want != list(shape):
            raise PlanError(f"{spec['name']} has shape {list(shape)}, expected {want}")
    return axes


def _python(text):
    """An expression of a shape as Python's, or None. Sizes are not negative, so that / is //."""
    tokens = _TOKEN.findall(str(text))
    names = [t for t, after in zip(tokens, tokens[1:] + [""]) if t[0].isalpha() and after == "("]
    if not all(t[0].isalnum() or t in "_+-*/%()," for t in tokens) or set(names) - {"ceil_div", "min", "max"}:
        return None
    own = {"/": "//", "ceil_div": "ceil_div", "min": "min", "max": "max"}
    return "(" + " ".join(own.get(t, f"a_{t}" if t[0].isalpha() or t[0] == "_" else t) for t in tokens) + ")"


def _comparison(text):
    """"c % 8 == 0" as Python's, or None."""
    sides = re.split("(==|!=|<=|>=|<|>)", text)
    if len(sides) != 3:
        return None
    sides[0], sides[2] = _python(sides[0]), _python(sides[2])
    return None if None in sides else f"({' '.join(sides)})"


def fits(package):
    """A function of the inputs' shapes: whether they are at most what was judged or the module's own. It is a
    plain Python function of sizes, which torch.compile can follow where these are symbols. None: a shape's
    expression is of another kind."""
    axes, wrong, checks = {}, [], []
    for i, spec in enumerate(package["inputs"]):
        wrong.append(f"len(shapes[{i}]) != {len(spec['shape'])}")
        for d, e in enumerate(spec["shape"]):
            if e in package["axes"]:
                axes.setdefault(e, f"shapes[{i}][{d}]")
    if set(axes) != set(package["axes"]):
        return None
    own = own_sizes(package)
    for name, bounds in package["axes"].items():
        checks.append(f"{bounds['low']} <= a_{name} <= {own[name]}")
    for i, spec in enumerate(package["inputs"] + package["outputs"]):
        sizes = [_python(e) for e in spec["shape"]]
        if None in sizes:
            return None
        if i < len(package["inputs"]):
            checks += [f"shapes[{i}][{d}] == {size}" for d, size in enumerate(sizes)
                       if axes.get(spec["shape"][d]) != f"shapes[{i}][{d}]"]
        checks.append(f"{' * '.join(sizes) or 1} <= {most(package, spec)}")
    for text in package.get("constraints", []):
        parts = [_comparison(part) for part in text.split("&&")]
        if None in parts:
            return None
        checks += parts
    lines = ["def fits(shapes):", f"    if {' or '.join(wrong)}:", "        return False"]
    lines += [f"    a_{name} = {place}" for name, place in axes.items()]
    lines.append(f"    return {' and '.join(checks)}")
    scope = {"ceil_div": _FUNCTIONS["ceil_div"], "min": min, "max": max}
    exec(compile("\n".join(lines), "<whether shapes fit>", "exec"), scope)
    return scope["fits"]


# The workspace's name, which no tensor has, and the alignment of the buffers in it, as cudaMalloc's.
WORKSPACE, _APART = "0", 256


def apart(count):
    """Bytes from the begin of a buffer to that of the next one."""
    return -(-count // _APART) * _APART


def _elements(spec, axes):
    n = 1
    for e in spec["shape"]:
        n *= evaluate(e, axes)
    return n


def broken(package, axes):
    """A sentence about a constraint of the task that does not hold, or None."""
    for text in package.get("constraints", []):
        if not evaluate(text, axes):
            return f"the constraint {text} does not hold"
    return None


def unverified(package, axes):
    """A sentence that says why these axes are outside of what was judged, or None."""
    why = broken(package, axes)
    if why:
        return why
    for name, bounds in package["axes"].items():
        if not bounds["low"] <= axes[name] <= bounds["high"]:
            return f"{name}={axes[name]} is outside of {bounds['low']} to {bounds['high']}, which were judged"
    for spec in package["inputs"] + package["outputs"]:
        n = _elements(spec, axes)
        if n > spec["most"]:
            return f"{spec['name']} has {n} elements, more than the {spec['most']} that were judged"
    return None


def own_sizes(package):
    """The module's own sizes, which may be larger than what was judged."""
    return {name: max(b["high"], b.get("own", 0)) for name, b in package["axes"].items()}


def most(package, spec):
    """The largest number of elements of a tensor, at the module's own sizes or in what was judged."""
    if not any("own" in b for b in package["axes"].values()):
        return spec["most"]
    return max(spec["most"], _elements(spec, own_sizes(package)))


def is_own(package, axes):
    """Whether the axes are at most the module's own sizes, where an index of 32 bits has room."""
    own = own_sizes(package)
    specs = package["inputs"] + package["outputs"]
    return (not broken(package, axes) and
            all(b["low"] <= axes[name] <= own[name] for name, b in package["axes"].items()) and
            all(_elements(s, axes) <= min(most(package, s), _INDEX) for s in specs) and
            all(evaluate(b["count"], axes) <= _INDEX for b in package["buffers"]))


def resolve(package, axes):
    """(output shapes, buffer bytes, launches). A launch is (kernel index, grid, block, shared bytes,
    arguments, whether it is cooperative); an argument is ("pointer", name, bytes from its start),
    ("map", name, (bytes from its start, what the driver encodes)), ("integer", value, bytes) or
    ("float", value, bytes). A step that runs an operator is its line, a string,
    between the launches."""
    outputs = [[evaluate(e, axes) for e in spec["shape"]] for spec in package["outputs"]]
    buffers = [evaluate(b["count"], axes) * b["element"] for b in package["buffers"]]
    launches = []
    for step in package["steps"]:
        if not evaluate(step.get("when", "1"), axes):
            continue
        if "op" in step:
            launches.append(step["op"])
            continue
        loop = step.get("loop")
        turns = range(evaluate(loop["from"], axes), evaluate(loop["to"], axes)) if loop else [None]
        for turn in turns:
            values = dict(axes, **{loop["name"]: turn}) if loop else axes
            launches.append(
                (
                    step["kernel"],
                    _dims(step["grid"], values),
                    _dims(step["block"], values),
                    evaluate(step["shared"], values),
                    [_argument(a, values, axes) for a in step["arguments"]],
                    step.get("cooperative", False),
                )
            )
    return outputs, buffers, launches


def one_workspace(memory, outputs, launches):
    """(memory, launches), where those buffers that kernels alone take lie in one, since each allocation costs
    the host of a call half a microsecond. memory: (name, bytes) of the outputs, then of the buffers."""
    lines = {word for step in launches if isinstance(step, str) for word in re.findall(r"\w+", step)}
    inside, size, kept = {}, 0, memory[:outputs]
    for name, count in memory[outputs:]:
        if name in lines:
            kept.append((name, count))
        else:
            inside[name] = size
            size += apart(count)
    if not inside:
        return kept, launches

    def moved(argument):
        kind, value, extra = argument
        if kind == "map" and value in inside:
            return kind, WORKSPACE, (inside[value] + extra[0], extra[1])
        return (kind, WORKSPACE, inside[value] + extra) if kind == "pointer" and value in inside else argument

    return kept + [(WORKSPACE, size)], [
        step if isinstance(step, str) else (*step[:4], [moved(a) for a in step[4]], step[5])
        for step in launches]


def _dims(texts, values):
    return tuple(evaluate(t, values) for t in texts) + (1,) * (3 - len(texts))


def _map(a, axes):
    """The driver's arguments of a tensor map, whose lists begin with the innermost dimension: (type, swizzle,
    sizes, strides in bytes but the first, box)."""
    size, box = ([evaluate(t, axes) for t in a[key]] for key in ("size", "box"))
    stride = [evaluate(t, axes) for t in a["stride"]] if "stride" in a else [1] * len(size)
    for d in reversed(range(len(size) - 1)):
        if "stride" not in a:
            stride[d] = stride[d + 1] * size[d + 1]
    return (a["type"], {0: 0, 32: 1, 64: 2, 128: 3}[a["swizzle"]], tuple(size[::-1]),
            tuple(s * a["element"] for s in stride[-2::-1]), tuple(box[::-1]))


def _argument(a, values, axes):
    if a["kind"] == "map":
        return ("map", a["name"], (evaluate(a["offset"], axes) * a["element"], _map(a, axes)))
    if a["kind"] == "pointer":
        return ("pointer", a["name"], evaluate(a["offset"], values) * a["element"])
    value = a["value"] if isinstance(a["value"], (int, float)) else None
    if value is None:
        text = a["value"]
        value = float(text) if text in ("inf", "-inf", "nan") else evaluate(text, values)
    return (a["kind"], value, a["bytes"])
