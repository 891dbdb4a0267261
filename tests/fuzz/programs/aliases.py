"""Tensors that share memory, change it, or change what memory they have; results written to given memory."""

from .corners import cautious
from .grammar import statement

SHARED = ["t = {x} * 1\nu = t.detach()\nu.add_(1)\n{x} = t + u", "t = {x} * 1\nu = t.data\nu.mul_(2)\nLOG.append(t._version)\n{x} = t + u",
          "t = {x}.detach().clone()\nt.data = torch.ones(2, 3)\nLOG.append(tuple(t.shape))\n{x} = {x} + t.sum()",
          "t = {x}.detach().clone()\nu = t.view(-1)\nt.add_(1)\n{x} = {x} + u.sum()\nu.zero_()\n{x} = {x} + t",
          "t = torch.zeros(4)\nu, v = t[:3], t[1:]\nu.add_(1)\nv.mul_(3)\n{x} = {x} + t.sum() + v[0]",
          "t = torch.zeros(3, 4)\nfor r in t:\n    r += {n}\n{x} = {x} + t.sum()", "t = torch.zeros(3, 4)\nt.t()[1] = {n}\nt.diagonal().add_(1)\n{x} = {x} + t.sum()",
          "t = torch.zeros(4)\nt[[0, 0, 1]] += 1\n{w} = t", "t = torch.zeros(2, 2)\nt.T.copy_(torch.arange(4.0).view(2, 2))\n{w} = t",
          "t = torch.zeros(4)\nt.index_put_((torch.tensor([0, 0]),), torch.ones(2), accumulate=True)\n{w} = t",
          "t = torch.arange(4.0)\nt[1:3].mul_(t[2:4].clone())\n{w} = t", "t = torch.zeros(5)[::2]\nt.add_({n})\n{w} = t._base if t._base is not None else t",
          "t = torch.arange(8.0)\nu = t.as_strided((3, 3), (2, 1))\nLOG.append(u.sum().item())\nu[0] = 5\n{w} = t",
          "t = torch.arange(8.0)\nu = t.as_strided((3, 4), (2, 1))\nu.add_(1)\n{w} = t", "t = torch.ones(1, 3).expand(2, 3)\nt.mul_(2)\n{w} = t",
          "t = torch.ones(1, 3).expand(2, 3)\nu = t + 1\nu[0] = 0\n{w} = u", "t = torch.ones(3, 1).expand(3, 2)\nt[0] = 2\n{w} = t",
          "t = {x}.detach()[:1].clone()\nu = t.expand(2, -1)\nt.add_(1)\n{x} = {x} + u.sum(0)", "t = torch.ones(3)\nu = t\nu += 1\nLOG.append(t is u)\n{w} = t",
          "t = torch.ones(3)\nt, u = t + 1, t\nu.zero_()\n{w} = t", "a, b = torch.arange(6.0).chunk(2)\na.add_(b)\nb.copy_(a)\n{w} = a._base",
          "a, *b = torch.zeros(3, 2).unbind()\na.add_(1)\nb[0] += a\n{w} = b[0]", "parts = torch.zeros(4).split([1, 3])\nparts[1].fill_(2)\n{w} = torch.cat(parts)",
          "parts = [p for p in torch.zeros(4).tensor_split(2)]\nparts[0] += 1\n{w} = parts[0]"]
OF_OTHER_TYPES = ["c = torch.complex(torch.ones(3), torch.ones(3) * {n})\nc.real.add_(1)\nc.imag.mul_(2)\n{w} = c",
                  "c = torch.complex(torch.ones(2), torch.ones(2))\nu = c.conj()\nc.mul_(2)\n{w} = u.resolve_conj()",
                  "c = torch.complex(torch.ones(2), torch.ones(2))\nu = c.conj()\nu.add_(1j)\n{w} = c", "c = torch.ones(2, dtype=torch.complex64)\ntorch.view_as_real(c)[..., 1] = 5\n{w} = c",
                  "c = torch.full((2,), 1 + 2j).conj()\nu = c.imag\nu += 1\n{w} = (c * 1).resolve_conj()", "t = torch.tensor([1.0, 2.0])\nt.view(torch.int32).zero_()\n{w} = t",
                  "t = torch.tensor([1.0, -2.0])\nu = t.view(torch.int32)\nt.neg_()\n{w} = u", "t = torch.ones(4, dtype=torch.uint8)\nu = t.view(torch.int16)\nt[0] = 0\n{w} = u",
                  "t = torch.ones(3, dtype=torch.bool)\nt &= {x}.sum() > 0\n{w} = t", "t = torch.arange(3)\nt *= 2\nt[1] += True\n{w} = t",
                  "t = torch.arange(3)\nt[0] = 2.7\n{w} = t", "t = torch.arange(3)\nt.add_(0.5)\n{w} = t", "t = torch.zeros(3, dtype=torch.bool)\nt[1] = 5\n{w} = t",
                  "t = torch.zeros(2, dtype=torch.int8)\nt.fill_(127)\nt += 1\n{w} = t", "t = torch.ones(2, dtype=torch.float16)\nt.mul_(70000.0)\n{w} = t",
                  "t = torch.ones(2, dtype=torch.bfloat16)\nt += torch.ones(2, dtype=torch.float64) / 3\n{w} = t", "t = torch.ones(2)\nt.copy_(torch.tensor([1 + 2j, 3j]).real)\n{w} = t"]
OTHER_MEMORY = ["t = torch.empty(0)\nt.resize_(2, 3).fill_(1.5)\n{w} = t", "t = torch.arange(6.0)\nt.resize_(2, 2)\n{w} = t", "t = torch.arange(6.0)\nu = t[2:]\nt.resize_(3)\n{w} = u",
                "t = torch.arange(6.0)\nt.set_(t[2:4])\nLOG.append((tuple(t.shape), t.storage_offset()))\n{w} = t", "t = {x}.detach().clone()\nu = torch.empty(0)\nu.set_(t)\nu.add_(1)\n{x} = {x} + t",
                "t = torch.zeros(4)\nu = torch.ones(4)\nt.data = u\nu.add_(1)\n{w} = t", "t = torch.zeros(4)\nv = t[1:]\nt.data = torch.ones(2)\nv.add_(1)\n{w} = t",
                "b = torch.zeros(2, 3)\nw = torch.nn.Parameter(b)\nb.add_(1)\n{w} = w.detach()", "p = torch.nn.Parameter(torch.ones(3))\nwith torch.no_grad():\n    p.mul_({n})\n{w} = p.detach()",
                "p = torch.nn.Parameter(torch.ones(3))\np.add_(1)\n{w} = p", "t = torch.ones(4)\nLOG.append((t[1:].data_ptr() - t.data_ptr(), t.untyped_storage().nbytes(), t[1:].untyped_storage().nbytes()))",
                "a = numpy.ones(3, dtype='float32')\nt = torch.from_numpy(a)\nt.add_({n})\nLOG.append(a.tolist())\n{w} = t", "a = numpy.ones(3, dtype='float32')\nt = torch.from_numpy(a)\na[0] = 5\n{w} = t * 1",
                "t = torch.ones(3)\na = t.numpy()\na += 1\n{w} = t", "t = torch.ones(3)\na = t[::2].numpy()\nt.mul_(3)\nLOG.append(a.tolist())", "t = torch.ones(2, 3)\nt.t_()\nt.squeeze_().unsqueeze_(0)\n{w} = t",
                "t = torch.ones(2, 3)\nu = t.view(3, 2)\nt.transpose_(0, 1)\nu[0, 1] = 4\n{w} = t", "t = torch.arange(4.0)\nu = t.reshape(2, 2)\nu.t_()\nu[0] = 9\n{w} = t",
                "t = torch.ones(3)\nt.grad = torch.ones(3)\nt.grad += 1\n{w} = t.grad", "t = torch.ones(3).requires_grad_()\n(t * {n}).sum().backward()\nt.grad.mul_(2)\n{w} = t.grad",
                "t = torch.ones(2, 2)\nk = t.clone(memory_format=torch.preserve_format)\nt[:] = 3\n{w} = k + t"]
WRITTEN = ["o = torch.empty(2, 3)\ntorch.add(torch.ones(3), torch.ones(2, 1) * {n}, out=o)\n{w} = o", "o = torch.empty(3, dtype=torch.int64)\ntorch.add(torch.ones(3), 1, out=o)\n{w} = o",
           "o = torch.ones(3)\ntorch.cumsum(o, 0, out=o)\n{w} = o", "o = torch.empty(0)\n{w} = torch.mul(o, 2, out=o)", "o = torch.zeros(4)\ntorch.add(o[:2], {n}, out=o[2:])\n{w} = o",
           "o = torch.zeros(4)\ntorch.add(o[:3], 1, out=o[1:])\n{w} = o", "o, p = torch.empty(0), torch.empty(0, dtype=torch.int64)\ntorch.max({x}.detach().float(), 1, out=(o, p))\n{w} = o",
           "o = torch.empty(2, 2)\ntorch.where(torch.tensor([True, False]), torch.ones(2, 2), torch.zeros(2), out=o)\n{w} = o", "o = torch.empty(3, 2).t()\ntorch.stack([torch.ones(3), torch.zeros(3)], out=o)\n{w} = o",
           "o = torch.empty(2, 2)\ntorch.matmul(torch.ones(2, 3), torch.ones(3, 2), out=o[:])\n{w} = o", "o = torch.zeros(2, 3)\ntorch.sum(torch.ones(2, 3), 1, out=o[:, 0])\n{w} = o",
           "o = torch.empty(2, dtype=torch.float64)\ntorch.mul(torch.ones(2, dtype=torch.float32), 1 / 3, out=o)\n{w} = o", "o = torch.empty(2, dtype=torch.complex64)\ntorch.sqrt(torch.tensor([4.0, 9.0]), out=o)\n{w} = o",
           "o = torch.empty(1, 3).expand(2, 3)\ntorch.add(torch.ones(2, 3), 1, out=o)\n{w} = o", "o = torch.empty(3).requires_grad_()\ntorch.add(torch.ones(3), 1, out=o)\n{w} = o",
           "o = torch.zeros(2)\ntorch.index_select(torch.arange(4.0), 0, torch.tensor([3, 0]), out=o)\n{w} = o", "o = torch.zeros(4)\ntorch.cat([o[2:], o[:2] + 1], out=torch.empty(4))\n{w} = o",
           "o = torch.zeros(3, dtype=torch.bool)\ntorch.isnan(torch.tensor([1.0, math.nan, math.inf]), out=o)\n{w} = o", "o = torch.zeros(3)\ntorch.clamp(o, min=torch.tensor([1.0, math.nan, -1.0]), out=o)\n{w} = o",
           "o = torch.ones(2)\ntorch.nn.functional.relu(o - 2, inplace=True)\ntorch.div(o, 0, out=o)\n{w} = o", "o = torch.full((3,), {n})\ntorch.bitwise_not(o, out=o)\n{w} = o"]


@statement(1)
def tensors_that_share(g):
    cautious(g, g.pick(g.pick([SHARED, SHARED, OF_OTHER_TYPES, OTHER_MEMORY])))


@statement(0.5)
def given_memory(g):
    cautious(g, g.pick(WRITTEN))
