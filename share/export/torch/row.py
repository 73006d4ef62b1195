"""The launches of a call as one CUDA graph. The host changes the nodes that take other addresses than in the
last call, and enqueues all of them at once."""

import ctypes


class _Node(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS."""

    _fields_ = [("function", ctypes.c_void_p), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("shared", ctypes.c_uint), ("arguments", ctypes.c_void_p), ("extra", ctypes.c_void_p),
                ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p)]


class Row:
    """One behind the other on a stream. calls: the arguments of each launch; configs: its CUlaunchConfig.
    change: of each launch, the arguments of `set`, which reads its kernel's arguments again; launch: those of
    `replay`."""

    def __init__(self, driver, calls, configs, stream):
        self.driver, self.graph, self.exec = driver, ctypes.c_void_p(), ctypes.c_void_p()
        self.set, self.replay = driver.lib.cuGraphExecKernelNodeSetParams_v2, driver.lib.cuGraphLaunch
        self._check("cuGraphCreate", ctypes.byref(self.graph), 0)
        nodes = [_Node(function.value, config.grid, config.block, config.shared, table.value)
                 for (_, function, table, _), config in zip(calls, configs)]
        self.kept, places = (calls, configs, nodes), []
        for node in nodes:
            places.append(ctypes.c_void_p())
            before = ctypes.byref(places[-2]) if len(places) > 1 else None
            self._check("cuGraphAddKernelNode_v2", ctypes.byref(places[-1]), self.graph, before,
                        ctypes.c_size_t(before is not None), ctypes.byref(node))
        self._check("cuGraphInstantiateWithFlags", ctypes.byref(self.exec), self.graph, ctypes.c_ulonglong(0))
        self.change = [(self.exec, place, ctypes.c_void_p(ctypes.addressof(node)))
                       for place, node in zip(places, nodes)]
        self.launch = self.exec, ctypes.c_void_p(stream)

    def _check(self, name, *given):
        self.driver.check(getattr(self.driver.lib, name)(*given), name)

    def __del__(self):
        if self.exec:
            self.driver.lib.cuGraphExecDestroy(self.exec)
        if self.graph:
            self.driver.lib.cuGraphDestroy(self.graph)
