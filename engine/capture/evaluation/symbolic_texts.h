#pragma once

#include <Python.h>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

class Evaluation;
struct CallArguments;
struct Source;

// A str that is made of symbolic numbers (symbolic_numbers.h), as an f-string of a loss or the name of a step, or an argument that was another text
// before. Like the numbers it may be handed on, put away, said and returned, and is made from them where a recipe needs it; a text that is read,
// compared or given to C code makes constants of them (Evaluation::settled), or is a graph break there where data decide the numbers.

/// What turns a number into text: str(), repr(), ascii(), format(number, detail) and "detail" % number.
enum class TextBy : char { Str = 's', Repr = 'r', Ascii = 'a', Format = 'f', Percent = '%' };

bool isSymbolicText(PyObject* object);
/// Whether there is any in this process.
bool anySymbolicTexts();
/// Whether C code with such a rule only hands a text on, or says it: print, list.append, logging. All other is given texts settled.
bool handsTextsOn(PyObject* callable);

/// New reference: the text of a symbolic number or text. `detail`: the specification or the format, a str; null: none. Null without error: the type
/// does not take it, or whether it raises depends on the number.
PyRef newSymbolicText(TextBy by, PyObject* of, PyObject* detail);
/// What a method of str gives that makes a text of texts: upper(), ljust(), join() of a list. Null without error: another function, no symbolic text among
/// its arguments, or others than texts and constants.
PyRef symbolicTextOfCall(Evaluation& e, PyObject* callable, const CallArguments& a);
/// Such a method, borrowed; null: the attribute of str is none.
PyObject* methodOfTexts(PyObject* name);

/// New reference: a text of the program's, at `source`, that changes from call to call; nothing is guarded but that it is one.
PyRef newSymbolicText(Evaluation& e, PyObject* text, const Source* source);

/// "".join of a tuple or list of texts; a symbolic text where one is among them. Null with the error set.
PyRef joinedTexts(PyObject* parts);

/// What a symbolic text that is none of the program's is made by, all borrowed: `callable(*arguments)`; `callable` null: a join of the `arguments`, a tuple.
struct TextParts {
  PyObject* callable;
  PyObject* arguments;
  PyObject* plain;  ///< the text, once it is settled
};
TextParts partsOfText(PyObject* text);

/// New reference: the text itself, whose numbers are constants of the capture from now on. The same object each time.
PyRef settledText(PyObject* text);

}  // namespace fusebox::capture
