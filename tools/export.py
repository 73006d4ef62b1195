"""Writes a PyTorch module as an archive for `quern import`: PyTorch's exported program without its weights,
and the shape and statistics of each parameter.

    python3 tools/export.py model.py -o model.pt2      # Model or a factory, and get_inputs()
    python3 tools/export.py model.py:Block -o block.pt2        # a class, instance, factory or function of it
    python3 tools/export.py package.module:Class --init '[1024, 512]' --input 'float32[128,1024]' -o layer.pt2
    python3 tools/export.py definition.json --axes M=4096 -o gemm.pt2    # a FlashInfer-Bench definition

Runs where torch (2.8 or later) is. The module is built and traced on the meta device, where tensors have
shapes and no contents; a module that cannot be built there is built on the CPU. Exit status 1 with one
sentence: the module cannot be imported. 2: a wrong command line. Lines `export: note: ...` say what was found
and what of the module is not in the archive.
"""

import argparse
import gc
import json
import logging
import math
import os
import re
import sys
import tempfile
import warnings

gc.disable()  # what an import makes stays: not looking at it saves a sixth of the seconds (2026-11-30)
import torch  # noqa: E402
import torch._dynamo  # noqa: E402, F401

gc.freeze()
gc.enable()

from export_answers import answers_of  # noqa: E402
from export_source import (  # noqa: E402
    CONTENTS, Definition, Inputs, Named, Placed, Refused, blame, flatten, place, reason, watched
)
from export_trace import autocast_regions, trace  # noqa: E402

FORMAT = 1
MAX_BUILD = 6 << 30     # bytes of parameters and constants that are built on the CPU for their statistics
MAX_INPUTS = 256 << 20  # the same of example inputs
MAX_VALUES = 64         # elements of a constant that are stored as they are
FEW = 1024             # elements that tell most tensors from a constant
CORNER = 32            # of a matrix, which tells most from a triangle
# Operators that draw random numbers, whatever their arguments are.
WHOLE, ASKED, CUT = range(3)  # a trace, one with answers to what contents are asked, one up to there
RANDOM = re.compile(
    r"aten\.(rand|randn|randint|randperm|normal|bernoulli|multinomial|poisson|uniform|exponential|"
    r"geometric|cauchy|log_normal|random|rrelu_with_noise|gumbel\w*)(_like|_)?(\.|$)"
)


# ---- export ----

def build(source, device, mode):
    with Placed(device), torch.device(device):
        torch.manual_seed(0)
        try:
            module = source.build()
        except Refused:
            raise
        except Exception as e:
            raise Refused(f"{blame(source, e)}: the module cannot be built: {reason(e)}") from e
    if not isinstance(module, torch.nn.Module):
        kind = type(module).__name__
        raise Refused(f"{source.path}: {source.name} gives a value of the type {kind}, not a torch.nn.Module")
    return module.train(mode == "train")


def example_inputs(source, forward, device):
    with watched(source.file, "in get_inputs"), Placed(device), torch.device(device):
        torch.manual_seed(1)
        try:
            inputs = source.inputs()
        except Exception as e:
            raise Refused(f"{blame(source, e)}: the example inputs cannot be made: {reason(e)}") from e
    return Inputs(source, forward, inputs)


def says_mode(module, program, notes):
    """What of a module is another thing in training than in evaluation."""
    kinds = {type(m).__name__ for m in module.modules()}
    dropped = sorted(k for k in kinds if re.search("Drop", k))
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    if not dropped and any(re.match(r"aten\.\w*dropout", str(n.target)) and n.args[1] for n in calls):
        dropped = ["dropout"]
    normed = sorted(k for k in kinds if re.search("BatchNorm", k))
    said = [f"{', '.join(dropped)} left out"] if dropped else []
    said += [f"{', '.join(normed)} with running statistics"] if normed else []
    if said and not module.training:
        notes[f"in evaluation mode: {'; '.join(said)}"] = 1


def format_of(x):
    """The name of a tensor's memory format, where it is not contiguous."""
    if x.is_contiguous() or x.dim() not in (4, 5):
        return None
    name = "channels_last" if x.dim() == 4 else "channels_last_3d"
    return name if x.is_contiguous(memory_format=getattr(torch, name)) else None


def says_formats(inputs, module, notes):
    for name, x in [*zip(inputs.names, inputs.tensors), *module.named_parameters()]:
        if not x.is_contiguous() and x.numel() > 1:
            last = format_of(x)
            what = f"in {last}" if last else "not contiguous"
            copied = ", and a package copies it in each call" if last else ""
            notes[f"{name} is {what}: it is judged as a contiguous tensor{copied}"] = 1


def built(source, device, mode):
    """A module on a device, and its example inputs. A large tensor that is an attribute becomes a buffer that
    no checkpoint has: where forward detaches it, a trace keeps no name of it."""
    module = build(source, device, mode)
    for m in module.modules():
        for name, t in list(vars(m).items()):
            if type(t) is torch.Tensor and t.numel() > MAX_VALUES:
                delattr(m, name)
                m.register_buffer(name, t, persistent=False)
    return module, example_inputs(source, getattr(module, "function", module.forward), device)


def asked(source, mode):
    """Answers to what the module asks of contents, or None."""
    try:
        module, inputs = built(source, "cpu", mode)
    except Refused:
        return None
    if size(tensors_of(module)) > MAX_BUILD:
        return None
    flatten(source, module, inputs, {})
    with watched(source.file, "when it is called"):
        return answers_of(module, inputs.tensors)


def export(source, mode, notes):
    """On the meta device, else on the CPU; where contents decide what is computed, with their answers, else
    up to there.
    Returns the program, the names of parameters that are its inputs, the module on its device, the example
    inputs, and why the program is a part of the module, or None."""
    errors = []
    for device, way in (("meta", WHOLE), ("meta", ASKED), ("meta", CUT), ("cpu", WHOLE), ("cpu", ASKED),
                        ("cpu", CUT)):
        if (way != WHOLE) != bool(errors and str(errors[-1]).endswith(CONTENTS)):
            continue
        try:
            module, inputs = built(source, device, mode)
            if device == "cpu" and size(tensors_of(module)) > MAX_BUILD:
                raise errors[0]
            answers = asked(source, mode) if way == ASKED else []
            if answers is None:
                continue
            says_formats(inputs, module, notes)
            flatten(source, module, inputs, notes, way == CUT)
            program, parameters = trace(source, module, inputs.tensors, answers)
            says_mode(module, program, notes)
            check(source, program, module.training)
            told = inputs.decided and (
                f"{os.path.basename(source.file)}: {source.name} returns {inputs.decided}, a number that the "
                "contents of a tensor decide, and no kernel gives")
            return program, parameters, module, inputs, str(errors[-1]) if way == CUT else told
        except Refused as e:
            errors.append(e)
            if not re.search(r"cannot be (built|exported|made)", str(e)) and not str(e).endswith(CONTENTS):
                break
    raise errors[-1] if "Meta" in str(errors[0]) or "meta" in str(errors[0]) else errors[0]


def node_place(source, node):
    m = re.findall(r'File "([^"]*)", line (\d+)', node.meta.get("stack_trace") or "")
    own = [x for x in m if x[0] == source.file] or m
    return place(own[-1][0], int(own[-1][1])) if own else source.path


def check(source, program, in_training):
    """Refuses operators that draw random numbers, a loop over as many tensors as contents decide, which a
    trace goes through without a step, and constants of forward that the meta device has no contents of."""
    for name, value in program.constants.items():
        if name.startswith("lifted_tensor") and isinstance(value, torch.Tensor) and value.is_meta:
            raise Refused(f"{source.path}: the module cannot be exported: {name} has no contents")
    for node in reversed(program.graph.nodes):  # as of a layer that may be skipped
        if node.op == "call_function" and RANDOM.match(str(node.target)) and not node.users:
            program.graph.erase_node(node)
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        name = str(node.target)
        if RANDOM.match(name):
            raise Refused(
                f"{node_place(source, node)}: {name} draws random numbers, so that there is no right result"
            )
        endless = re.match(r"aten\.(unbind|split|chunk)\b", name) and node.meta.get("val") is None
        if endless or re.match(r"aten\.(item|_local_scalar_dense)\.", name):
            raise Refused(
                f"{node_place(source, node)}: {name}: {CONTENTS}"
            )
        if "dropout" in name and len(node.args) > 2 and node.args[2] is True and node.args[1]:
            way = "export with --mode eval, or with a rate of 0"
            if not in_training:
                way = "its mode is fixed there: pass the module's own, self.training"
            raise Refused(
                f"{node_place(source, node)}: {name} is active in training mode, so that there is no "
                f"right result; {way}"
            )


# ---- statistics ----

def tensors_of(module):
    """Parameters, buffers and plain tensor attributes, by their names."""
    out = dict(module.named_parameters(remove_duplicate=False))
    out.update(module.named_buffers(remove_duplicate=False))
    for prefix, m in module.named_modules():
        for name, v in vars(m).items():
            if isinstance(v, torch.Tensor):
                out.setdefault(f"{prefix}.{name}" if prefix else name, v)
    return out


def size(tensors):
    return sum(t.numel() * t.element_size() for t in tensors.values() if isinstance(t, torch.Tensor))


def pattern(t):
    """The name of what a constant is made by: all elements equal, or a triangle of such elements. A part of
    them tells most tensors."""
    t = t.float() if t.dtype.is_floating_point and t.element_size() == 1 else t
    first = t.flatten()[:1]
    if all(bool((part == first).all()) for part in (t.flatten()[:FEW], t)):
        return "full", float(first)
    if t.dim() >= 2:
        plane = t.reshape(-1, *t.shape[-2:])[0]
        for name, value in (("tril", plane[-1, 0]), ("triu", plane[0, -1])):
            own = getattr(torch, name)
            if all(bool((part == own(torch.full_like(part, value))).all()) for part in
                   (plane[:CORNER, :CORNER], plane, t)):
                return name, float(value)
    return None, None


def statistics(t):
    """mean, std, min and max, and what a constant is made of."""
    t = t.detach()
    out = {"shape": list(t.shape), "dtype": str(t.dtype).split(".")[1]}
    if t.device.type == "meta" or t.numel() == 0 or t.is_complex():
        return out
    sample = t.flatten()
    if sample.numel() > 1 << 22:
        sample = sample[:: sample.numel() // (1 << 22) + 1]
    sample = sample.double()
    out.update(mean=float(sample.mean()), std=float(sample.std(correction=0)), min=float(sample.min()),
               max=float(sample.max()))
    name, value = pattern(t)
    if name:
        out.update(pattern=name, value=value)
    if t.numel() <= MAX_VALUES:
        out["values"] = [float(v) for v in t.flatten().tolist()]
    for key in ("mean", "std", "min", "max", "value"):
        if key in out and not math.isfinite(out[key]):
            out[key] = str(out[key])
    if "values" in out:
        out["values"] = [v if math.isfinite(v) else str(v) for v in out["values"]]
    return out


def describe(source, program, parameters, module, inputs):
    """What the archive says beside the program: what each input of the graph is. Contents are drawn on the
    CPU where they are not too large."""
    tensors, examples = tensors_of(module), None
    mode = "train" if module.training else "eval"
    buffers = {name for name, _ in module.named_buffers(remove_duplicate=False)}
    if any(t.device.type == "meta" for t in tensors.values()) and size(tensors) <= MAX_BUILD:
        try:
            tensors = tensors_of(build(source, "cpu", mode))
        except (Refused, RuntimeError, MemoryError):
            pass
    if size(dict(enumerate(inputs.tensors))) <= MAX_INPUTS:
        try:
            examples = example_inputs(source, inputs.forward, "cpu").tensors
        except (Refused, RuntimeError, MemoryError):
            examples = None
    specs, out, at = program.graph_signature.input_specs, [], 0
    for s in specs:
        entry = {"placeholder": getattr(s.arg, "name", "")}
        if s.kind.name == "USER_INPUT":
            if at < len(parameters):
                entry.update(parameter=parameters[at], **statistics(tensors[parameters[at]]))
                entry.update({"buffer": True} if parameters[at] in buffers else {})
                own = tensors[parameters[at]]
            else:
                k = at - len(parameters)
                entry["argument"], own = inputs.names[k], inputs.tensors[k]
                if examples:
                    entry.update(statistics(examples[k]))
                    entry.pop("values", None)
            entry.update({"format": format_of(own)} if format_of(own) else {})
            at += 1
        else:
            name = s.target.removeprefix("program.")
            value = tensors.get(name)
            value = program.constants.get(s.target) if value is None else value
            known = name in tensors and not name.startswith("lifted_tensor")
            entry.update(
                {"parameter" if known else "constant": name},
                **(statistics(value) if value is not None else {}),
                **({"buffer": True} if name in buffers else {}),
                **({"format": format_of(value)} if known and format_of(value) else {}),
            )
        out.append(entry)
    return {"format": FORMAT, "source": os.path.basename(source.file), "class": source.name, "mode": mode,
            "torch": torch.__version__, "inputs": out, "call": inputs.record()}


def save(program, path, text):
    """Writes the archive with weights that have no contents."""
    empty = {
        k: (
            torch.nn.Parameter(v.detach().to("meta"), v.requires_grad)
            if isinstance(v, torch.nn.Parameter)
            else v.to("meta")
        )
        for k, v in program.state_dict.items()
    }
    program._state_dict = empty
    program._constants = {
        k: v.to("meta") if isinstance(v, torch.Tensor) else v for k, v in program.constants.items()
    }
    program._example_inputs = None
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(path))) as folder:
        temporary = os.path.join(folder, os.path.basename(path))
        torch.export.save(program, temporary, extra_files={"quern.json": json.dumps(text, sort_keys=True)})
        os.replace(temporary, path)


def load(args):
    kind = Definition if args.source.endswith(".json") else Named
    try:
        return kind(args.source, args)
    except Refused:
        raise
    except FileNotFoundError as e:
        raise Refused(f"there is no file {e.filename}") from e
    except (OSError, json.JSONDecodeError, UnicodeDecodeError, ValueError) as e:
        raise Refused(f"{args.source} cannot be read: {e}") from e
    except Exception as e:
        raise Refused(f"{args.source} cannot be imported: {reason(e)}") from e


def archive(args, notes):
    source = load(args)
    if source.told:
        notes[source.told] = 1
    program, parameters, module, inputs, cut = export(source, args.mode, notes)
    if cut:
        notes[f"{cut}: the task ends before it"] = 1
    text = {**describe(source, program, parameters, module, inputs), **({"cut": cut} if cut else {})}
    try:
        save(program, args.output, text)
    except torch._export.serde.serialize.SerializeError as e:
        holds = [n for n in program.graph.nodes if isinstance(n.target, torch._ops.HigherOrderOperator)]
        if not holds:
            raise Refused(f"{source.path}: PyTorch cannot save the program: {reason(e)}") from e
        raise Refused(f"{node_place(source, holds[0])}: {holds[0].target} holds a graph that PyTorch cannot "
                      "save") from e


def main():
    p = argparse.ArgumentParser(description="Writes a PyTorch module as an archive for `quern import`.")
    p.add_argument(
        "source",
        help="FILE.py with a module and get_inputs; FILE.py:NAME or package.module:NAME, a class, instance, "
        "factory or function; or a FlashInfer-Bench definition, FILE.json",
    )
    p.add_argument("-o", "--output", required=True, metavar="FILE.pt2")
    p.add_argument("--mode", choices=("eval", "train"), default="eval")
    p.add_argument("--init", metavar="JSON", help="arguments of a class or factory: a list or an object")
    p.add_argument(
        "--input", action="append", metavar="TYPE[N,...]", help="an example input; repeat it"
    )
    p.add_argument(
        "--axes", metavar="NAME=N,...", help="sizes of a definition's free axes; 64 where none is given"
    )
    args = p.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    notes = {}
    try:
        with autocast_regions():
            archive(args, notes)
        for note in notes:
            print(f"export: note: {note}", file=sys.stderr)
    except Refused as e:
        print(f"export: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
