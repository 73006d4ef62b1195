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
        self.launch = self.lib.cuLaunchKernel
        self.launch.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3

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
        driver.check(driver.lib.cuDeviceGetAttribute(ctypes.byref(limit), _SHARED_OPTIN, device), "asking for shared memory")
        for name in names:
            f = ctypes.c_void_p()
            driver.check(driver.lib.cuModuleGetFunction(ctypes.byref(f), module, name.encode()), f"finding {name}")
            driver.check(driver.lib.cuFuncGetAttribute(ctypes.byref(fixed), _STATIC_SHARED, f), f"asking about {name}")
            driver.check(driver.lib.cuFuncSetAttribute(f, _MAX_DYNAMIC_SHARED, limit.value - fixed.value),
                         f"giving shared memory to {name}")
            self.functions.append(f)


class Prepared:
    """The launches for one set of shapes. Only the pointers change from call to call; each thread has
    its own memory for them."""

    def __init__(self, kernels, launches):
        self.kernels, self.launches = kernels, launches
        self.local = threading.local()

    def _need_context(self):
        """A thread in which PyTorch has not used the device yet has no context."""
        lib, current = self.kernels.driver.lib, ctypes.c_void_p()
        self.kernels.driver.check(lib.cuCtxGetCurrent(ctypes.byref(current)), "asking for the context")
        if not current:
            self.kernels.driver.check(lib.cuCtxSetCurrent(self.kernels.context), "entering the context")

    def _build(self):
        self._need_context()
        calls, pointers = [], []
        for kernel, grid, block, shared, arguments in self.launches:
            cells = []
            for kind, value, extra in arguments:
                if kind == "pointer":
                    cells.append(ctypes.c_uint64())
                    pointers.append((cells[-1], value, extra))
                elif kind == "float":
                    cells.append((ctypes.c_double if extra == 8 else ctypes.c_float)(value))
                else:
                    cells.append(_INTEGERS[extra](value))
            table = (ctypes.c_void_p * max(1, len(cells)))(*[ctypes.addressof(c) for c in cells])
            calls.append((self.kernels.functions[kernel], grid + block + (shared,), table, cells))
        self.local.calls, self.local.pointers = calls, pointers

    def run(self, tensors, stream):
        """tensors: by name, with data_ptr(), the inputs, outputs and buffers."""
        local = self.local
        if not hasattr(local, "calls"):
            self._build()
        for cell, name, offset in local.pointers:
            cell.value = tensors[name].data_ptr() + offset
        launch = self.kernels.driver.launch
        for function, numbers, table, _ in local.calls:
            status = launch(function, *numbers, stream, table, None)
            if status:
                self.kernels.driver.check(status, "a launch")
