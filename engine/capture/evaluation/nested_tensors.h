#pragma once

#include <Python.h>

#include <functional>
#include <string_view>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/source.h"

namespace fusebox::capture {

class Evaluation;
struct CallArguments;

// Nested tensors of the jagged layout (torch.nested). A nested tensor is an object with attributes, whose values and offsets are tensors of the graph; the
// history of gradients is that of its values. Operators are computed by torch's own functions for its class, which are interpreted; the size of a ragged
// dimension is an object that is equal to no other but that of the same offsets. What else is done with them in Python or C of torch's is in _nested.py.

/// Whether a class is torch's class of nested tensors of the jagged layout.
bool isNestedClass(PyTypeObject* type);
/// What follows needs is made, once.
void setUpNested();
bool isNestedTensor(PyObject* object);
/// Whether it is one, or a tuple or list with one.
bool holdsNested(PyObject* given);
/// The size of a ragged dimension: a torch.SymInt of no number.
bool isRaggedSize(PyObject* object);
/// The tensor of offsets or lengths that such a size of this capture counts by; null: it is a multiple, or none of this capture's.
PyRef raggedBy(PyObject* size);
/// The values of a nested tensor of the program with their history; null without error where it is none.
PyRef valuesOfNested(PyObject* nested);

/// Guards of a nested tensor of the program what its values do not say.
void guardNested(Evaluation& e, PyObject* nested, const Source* source);
/// An attribute. Null without error: it is one like those of other objects.
PyRef nestedAttribute(Evaluation& e, PyObject* nested, PyObject* name);
/// NestedTensor(values, offsets, …)
PyRef makeNested(Evaluation& e, const CallArguments& a);
/// A function of torch's binding that is given a nested tensor; `name` is its own.
PyRef callOfNested(Evaluation& e, PyObject* callable, std::string_view name, const CallArguments& a, PyObject* self);
/// What the class makes of an operator. `decompose` computes an operator by those that it consists of, which are asked again.
PyRef askNested(Evaluation& e, PyObject* function, PyObject* args, PyObject* keywords, const std::function<PyRef()>& decompose);
/// A comparison in which one is a ragged size, which both are where both are not numbers.
PyRef compareRagged(Evaluation& e, int op, PyObject* a, PyObject* b);

}  // namespace fusebox::capture
