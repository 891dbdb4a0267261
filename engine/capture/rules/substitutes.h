#pragma once

#include <Python.h>

namespace fusebox::capture {

/// What torch.compiler.substitute_in_graph and torch._dynamo.disallow_in_graph said of callables: the function of Python to follow in
/// a callable's place, None: a call of it is a break. A dict, null while it is empty; kept for good.
PyObject*& substitutesInGraph();

/// Functions whose calls may come after the graph (torch._dynamo.config.reorderable_logging_functions): a set, or null.
PyObject*& reorderedInGraph();

/// Functions and methods of which a call does nothing in compiled code (torch._dynamo.config.ignore_logging_functions): a set, or null.
PyObject*& ignoredInGraph();

}  // namespace fusebox::capture
