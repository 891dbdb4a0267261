#pragma once

#include <Python.h>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/source.h"

namespace fusebox::capture {

class Evaluation;
struct CallArguments;

// Distributed tensors (torch.distributed.tensor.DTensor): a local tensor and a spec, which says how the whole is laid over a mesh of ranks. Inside a capture
// one is the real class around a tensor of the graph. libtorch records its history and asks torch's own code for every operator, which decides by specs
// alone what is sent and computed: it runs as it is, and the graph has what it does with local tensors, collectives among it. Specs are guarded.
// What is done in Python is in _distributed.py.

/// Whether it is torch's class of distributed tensors.
bool isDistributedClass(PyTypeObject* type);
bool isDistributed(PyObject* object);
/// A distributed tensor around a tensor of a trace.
bool isDistributedStandIn(PyObject* object);

/// The stand-in of a distributed tensor of the program, guarded: its spec, whether it requires a gradient, and its local tensor.
PyRef distributedStandIn(Evaluation& e, PyObject* object, const Source* source);
/// A torch.distributed.device_mesh.DeviceMesh, which stays as it is made.
bool isDeviceMesh(PyObject* object);
/// How one dimension of a mesh holds a tensor (Shard, Replicate, …), which never changes.
bool isPlacement(PyObject* object);
/// A call of one of torch's functions for distributed tensors, of a class of placements or of a placement's method in C, that is run as it is. `handled`
/// is false where it is none, or its arguments are not known enough.
PyRef callOfDistributed(Evaluation& e, PyObject* callable, const CallArguments& a, bool* handled);
/// The local tensor of a distributed tensor that the region made, as a result of the graph, and what makes the whole of it again (to be called with both).
struct DistributedParts {
  PyRef local, spec, whole;
};
DistributedParts partsOfDistributed(Evaluation& e, PyObject* object);

/// The local tensor of a distributed tensor of the program, with the history of the whole, whose gradient is laid as `gradient` (a _distributed.Gradient)
/// says. Null without error where it is none.
PyRef localOfDistributed(PyObject* object, PyObject* gradient);

}  // namespace fusebox::capture
