"""Passes of the program over graphs, which torch._inductor.config and options= name: each gets the torch.fx graph that TorchInductor would give it.

Capture is this engine's. The graph of torch's calls goes through PyTorch's AOTAutograd, and what the passes leave of its graphs is compiled here again.
"""

import threading

import torch

from ._engine_access import _engine

NAMES = ("pre_grad_custom_pass", "joint_custom_pre_pass", "joint_custom_post_pass", "custom_partitioner_fn", "post_grad_custom_pre_pass",
         "post_grad_custom_post_pass")


def chosen(options, config):
    """The passes that options= or PyTorch's configuration (None: nobody has looked at it) name."""
    passes = {name: options[name] if name in options else getattr(config, name, None) for name in NAMES}
    return {name: given for name, given in passes.items() if given is not None}


class WithPasses:
    """The backend in Python that runs them, between capture and a compiler with these settings."""

    __name__ = "inductor"

    def __init__(self, passes, settings):
        self.passes, self.settings = passes, settings

    def __call__(self, module, inputs):
        from torch._dynamo.backends.common import aot_autograd
        from torch._inductor.decomposition import select_decomp_table
        self.apply("pre_grad_custom_pass", module)
        return aot_autograd(fw_compiler=self.compile_forward, bw_compiler=self.compile, inference_compiler=self.compile_inference, partition_fn=self.partition,
                            decompositions=select_decomp_table(), keep_inference_input_mutations=True)(module, inputs)

    def apply(self, name, module):
        given = self.passes.get(name)
        if given is None:
            return
        from torch._inductor.fx_passes.post_grad import stable_topological_sort
        given(module.graph)
        stable_topological_sort(module.graph)
        module.graph.lint()
        module.recompile()

    def joint(self, module):
        for name in ("joint_custom_pre_pass", "joint_custom_post_pass"):
            self.apply(name, module)

    def partition(self, module, joint_inputs, **how):
        self.joint(module)
        partitioner = self.passes.get("custom_partitioner_fn")
        if partitioner is None:
            from torch._functorch.partitioners import min_cut_rematerialization_partition as partitioner
        return partitioner(module, joint_inputs, compiler="inductor", **how)

    def compile_inference(self, module, inputs):
        self.joint(module)
        return self.compile_forward(module, inputs)

    def compile_forward(self, module, inputs):
        from torch.utils._python_dispatch import _disable_current_modes
        compiled = self.compile(module, inputs)

        def call(args):
            with _disable_current_modes():  # AOTAutograd's own, in which it looks at the operators of the first call
                return compiled(args)

        call._boxed_call = True
        return call

    def compile(self, module, _inputs):
        from torch._functorch.aot_autograd import make_boxed_func
        for name in ("post_grad_custom_pre_pass", "post_grad_custom_post_pass"):
            self.apply(name, module)
        forward = module.forward
        return make_boxed_func(_engine.compiled(forward, self.settings, getattr(forward, "__func__", forward)))


_lock = threading.Lock()
_known = {}  # compiled code refers to its backend for as long as the process lives


def backend(passes, settings):
    """The same object for the same passes and settings: what was compiled with it serves."""
    key = (tuple((name, id(given)) for name, given in passes.items()), repr(sorted(settings.items())))
    with _lock:
        return _known.setdefault(key, WithPasses(passes, settings))
