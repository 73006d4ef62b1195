"""The few calls of the CUDA driver that a package needs, through ctypes. Nothing is compiled."""

import ctypes
import threading

_INTEGERS = {1: ctypes.c_int8, 2: ctypes.c_int16, 4: ctypes.c_int32, 8: ctypes.c_int64}
_MAX_DYNAMIC_SHARED, _STATIC_SHARED, _SHARED_OPTIN = 8, 1, 97


class DriverError(RuntimeError):
    pass


class Driver:
    """libcuda. Another library with the same functions may be given, for tests."""

    def __init__(self, library="libcuda.so.1"):
        self.lib = ctypes.CDLL(library)
        self.launch = self.lib.cuLaunchKernelEx

    def check(self, status, what):
        if status:
            raise DriverError(f"{what} failed: CUDA error {status}")


class Kernels:
    """A package's binary, loaded into the current context of one device."""

    def __init__(self, driver, cubin, names):
        self.driver, self.context = driver, ctypes.c_void_p()
        driver.check(driver.lib.cuCtxGetCurrent(ctypes.byref(self.context)), "asking for the context")
        module = ctypes.c_void_p()
        driver.check(driver.lib.cuModuleLoadData(ctypes.byref(module), cubin), "loading the kernels")
        self.functions = []
        limit, fixed, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        driver.check(driver.lib.cuCtxGetDevice(ctypes.byref(device)), "asking for the device")
        driver.check(
            driver.lib.cuDeviceGetAttribute(ctypes.byref(limit), _SHARED_OPTIN, device),
            "asking for shared memory",
        )
        for name in names:
            f = ctypes.c_void_p()
            driver.check(
                driver.lib.cuModuleGetFunction(ctypes.byref(f), module, name.encode()), f"finding {name}"
            )
            driver.check(
                driver.lib.cuFuncGetAttribute(ctypes.byref(fixed), _STATIC_SHARED, f), f"asking about {name}"
            )
            driver.check(driver.lib.cuFuncSetAttribute(f, _MAX_DYNAMIC_SHARED, limit.value - fixed.value),
                         f"giving shared memory to {name}")
            self.functions.append(f)


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute, whose value is a union of 64 bytes."""

    _fields_ = [("id", ctypes.c_int), ("unused", ctypes.c_int), ("value", ctypes.c_int * 16)]


_COOPERATIVE = _Attribute(2, 0, (1,))


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


class _Map:
    """A CUtensorMap, made again where the tensor lies elsewhere. Maps of some places are kept, since PyTorch
    gives the same memory again and again."""

    KEPT = 64

    def __init__(self, driver, what, cell):
        self.memory = ctypes.create_string_buffer(128 + 64)
        self.at = -(-ctypes.addressof(self.memory) // 64) * 64
        self.driver, self.cell, self.address, self.kept = driver, cell, None, {}
        kind, swizzle, size, stride, box = what
        many, few, rank = ctypes.c_uint64 * 5, ctypes.c_uint32 * 5, len(size)
        self.before = (kind, rank)
        # No interleave; L2 takes lines of 128 bytes; zeros outside.
        self.after = (many(*size), many(*stride), few(*box), few(*[1] * 5), 0, swizzle, 2, 0)

    def refresh(self, address):
        if address == self.address:
            return
        if address not in self.kept:
            status = self.driver.lib.cuTensorMapEncodeTiled(
                ctypes.c_void_p(self.at), *self.before, ctypes.c_void_p(address), *self.after)
            self.driver.check(status, "making a tensor map")
            if len(self.kept) == self.KEPT:
                self.kept.clear()
            self.kept[address] = ctypes.string_at(self.at, 128)
        ctypes.memmove(self.at, self.kept[address], 128)
        self.address = address


def _place(argument):
    """Where in its tensor an argument begins, in bytes; None: it is a number."""
    kind, _, extra = argument
    return extra if kind == "pointer" else extra[0] if kind == "map" else None


class Prepared:
    """The launches for one set of shapes. Only the pointers and the stream change from call to call; each
    thread has its own memory for them. slots: the place of each tensor by its name, or those alone that the
    launches take."""

    def __init__(self, kernels, launches, slots=None):
        pointers = [(a[1], _place(a)) for launch in launches for a in launch[4] if _place(a) is not None]
        self.kernels, self.launches = kernels, launches
        self.slots = slots or {name: i for i, name in enumerate(dict.fromkeys(n for n, _ in pointers))}
        # A tensor's address lies at its slot, where the launches read it; an address within a tensor has a
        # cell of its own, behind them.
        self.inside = list(dict.fromkeys((self.slots[name], extra) for name, extra in pointers if extra))
        self.mapped = [i for i, launch in enumerate(launches) if any(a[0] == "map" for a in launch[4])]
        self.local = threading.local()

    def _need_context(self):
        """A thread in which PyTorch has not used the device yet has no context."""
        lib, current = self.kernels.driver.lib, ctypes.c_void_p()
        self.kernels.driver.check(lib.cuCtxGetCurrent(ctypes.byref(current)), "asking for the context")
        if not current:
            self.kernels.driver.check(lib.cuCtxSetCurrent(self.kernels.context), "entering the context")

    def _build(self):
        self._need_context()
        cell_of = {place: i for i, place in enumerate(self.inside, len(self.slots))}
        pointers = (ctypes.c_uint64 * (len(self.slots) + len(cell_of)))()
        calls, kept, configs, maps = [], [], [], {}
        for kernel, grid, block, shared, arguments, cooperative in self.launches:
            cells = []
            for kind, value, extra in arguments:
                inside = _place((kind, value, extra))
                if inside is not None:
                    cell = self.slots[value]
                    cell = cell_of[cell, inside] if inside else cell
                    at = ctypes.addressof(pointers) + 8 * cell
                    if kind == "map":
                        one = _Map(self.kernels.driver, extra[1], cell)
                        maps.setdefault(len(calls), []).append(one)
                        at = one.at
                    cells.append(at)
                    continue
                kept.append((ctypes.c_double if extra == 8 else ctypes.c_float)(value) if kind == "float"
                            else _INTEGERS[extra](value))
                cells.append(ctypes.addressof(kept[-1]))
            table = (ctypes.c_void_p * max(1, len(cells)))(*cells)
            configs.append(_Config(grid, block, shared))
            if cooperative:
                configs[-1].attributes = ctypes.addressof(_COOPERATIVE)
                configs[-1].count = 1
            kept.append(table)
            calls.append((ctypes.c_void_p(ctypes.addressof(configs[-1])), self.kernels.functions[kernel],
                          ctypes.c_void_p(ctypes.addressof(table)), None))
        self.local.ready = [None, pointers, calls, configs, kept, maps]
        return self.local.ready

    def refresh(self, launch):
        """Makes the maps that a launch of this thread takes, for the addresses in the cells."""
        for one in self.local.ready[5][launch]:
            one.refresh(self.local.ready[1][one.cell])

    def begin(self, stream):
        """(cells of addresses, arguments of each launch) of this thread, for launches on a stream."""
        ready = getattr(self.local, "ready", None) or self._build()
        if stream != ready[0]:
            for config in ready[3]:
                config.stream = stream
            ready[0] = stream
        return ready[1], ready[2]

    def cells_of(self, launch):
        """Where the addresses that a launch takes lie in the cells."""
        places = [(self.slots[a[1]], _place(a)) for a in self.launches[launch][4] if _place(a) is not None]
        return {len(self.slots) + self.inside.index(p) if p[1] else p[0] for p in places}

    def failed(self, status):
        self.kernels.driver.check(status, "a launch")

    def run(self, addresses, stream):
        """addresses: a list of those of the inputs, outputs and buffers by their slots."""
        pointers, calls = self.begin(stream)
        pointers[:] = addresses + [addresses[slot] + offset for slot, offset in self.inside]
        for i in self.mapped:
            self.refresh(i)
        launch = self.kernels.driver.launch
        for call in calls:
            status = launch(*call)
            if status:
                self.failed(status)
