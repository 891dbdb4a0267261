#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/capture/cpython/py_ref.h"
#include "engine/support/result.h"

namespace fusebox::capture {

/// Every kind of instruction of CPython 3.11 and 3.12, by the interpreter's own name. Names of one version only are kinds of
/// their own where they mean something else; where they mean the same (jumps by direction) they share a kind.
#define FUSEBOX_OPS(X)                                                                                                     \
  X(NOP) X(CACHE) X(RESUME) X(EXTENDED_ARG) X(PRECALL) X(PUSH_NULL) X(POP_TOP) X(COPY) X(SWAP) X(END_FOR) X(END_SEND)        \
  X(LOAD_CONST) X(LOAD_FAST) X(LOAD_FAST_CHECK) X(LOAD_FAST_AND_CLEAR) X(STORE_FAST) X(DELETE_FAST)                          \
  X(LOAD_GLOBAL) X(STORE_GLOBAL) X(DELETE_GLOBAL) X(LOAD_NAME) X(STORE_NAME) X(DELETE_NAME)                                  \
  X(MAKE_CELL) X(COPY_FREE_VARS) X(LOAD_CLOSURE) X(LOAD_DEREF) X(STORE_DEREF) X(DELETE_DEREF) X(LOAD_CLASSDEREF)             \
  X(LOAD_ATTR) X(LOAD_METHOD) X(STORE_ATTR) X(DELETE_ATTR) X(LOAD_SUPER_ATTR)                                               \
  X(BINARY_SUBSCR) X(STORE_SUBSCR) X(DELETE_SUBSCR) X(BINARY_SLICE) X(STORE_SLICE)                                          \
  X(UNARY_POSITIVE) X(UNARY_NEGATIVE) X(UNARY_NOT) X(UNARY_INVERT) X(BINARY_OP) X(COMPARE_OP) X(IS_OP) X(CONTAINS_OP)        \
  X(BUILD_TUPLE) X(BUILD_LIST) X(BUILD_SET) X(BUILD_MAP) X(BUILD_CONST_KEY_MAP) X(BUILD_STRING) X(BUILD_SLICE)               \
  X(FORMAT_VALUE) X(LIST_APPEND) X(SET_ADD) X(MAP_ADD) X(LIST_EXTEND) X(SET_UPDATE) X(DICT_UPDATE) X(DICT_MERGE)             \
  X(LIST_TO_TUPLE) X(UNPACK_SEQUENCE) X(UNPACK_EX) X(GET_LEN)                                                               \
  X(GET_ITER) X(FOR_ITER) X(GET_YIELD_FROM_ITER) X(SEND) X(YIELD_VALUE) X(RETURN_GENERATOR)                                  \
  X(GET_AWAITABLE) X(GET_AITER) X(GET_ANEXT) X(END_ASYNC_FOR) X(BEFORE_ASYNC_WITH)                                          \
  X(RETURN_VALUE) X(RETURN_CONST)                                                                                           \
  X(JUMP) X(JUMP_IF_FALSE_OR_POP) X(JUMP_IF_TRUE_OR_POP) X(POP_JUMP_IF_FALSE) X(POP_JUMP_IF_TRUE) X(POP_JUMP_IF_NONE)        \
  X(POP_JUMP_IF_NOT_NONE)                                                                                                   \
  X(KW_NAMES) X(CALL) X(CALL_FUNCTION_EX) X(MAKE_FUNCTION) X(CALL_INTRINSIC_1) X(LOAD_BUILD_CLASS)                           \
  X(IMPORT_NAME) X(IMPORT_FROM)                                                                                             \
  X(PUSH_EXC_INFO) X(CHECK_EXC_MATCH) X(POP_EXCEPT) X(RERAISE) X(RAISE_VARARGS) X(WITH_EXCEPT_START) X(BEFORE_WITH)          \
  X(LOAD_ASSERTION_ERROR) X(CLEANUP_THROW) X(CHECK_EG_MATCH) X(CALL_INTRINSIC_2)                     \
  X(MATCH_MAPPING) X(MATCH_SEQUENCE) X(MATCH_KEYS) X(MATCH_CLASS) X(UNKNOWN)

enum class Op : uint8_t {
#define X(name) name,
  FUSEBOX_OPS(X)
#undef X
};
const char* name(Op op);

/// One instruction with its argument assembled; caches and EXTENDED_ARG prefixes are gone.
struct Instruction {
  Op op = Op::NOP;
  int32_t arg = 0;
  int32_t target = -1;  ///< jumps: index into DecodedCode::instructions
  int32_t offset = 0;   ///< code unit of the instruction (its first EXTENDED_ARG, if any)
  uint8_t opcode = 0;   ///< CPython's number, for messages
};

/// A range of instructions covered by a handler.
struct HandlerRange {
  int32_t first = 0, last = 0;  ///< instruction indices [first, last)
  int32_t target = 0;           ///< handler's first instruction index
  int32_t depth = 0;            ///< stack depth to unwind to
  bool pushLasti = false;       ///< push the offset of the raising instruction below the exception
};

/// The version-neutral form of a code object. Immutable; cached per code object for its life.
struct DecodedCode {
  PyCodeObject* code = nullptr;        ///< borrowed: this dies with it
  std::vector<Instruction> instructions;
  std::vector<int32_t> indexOfOffset;  ///< code unit -> instruction index (caches map to the next instruction)
  std::vector<HandlerRange> handlers;
  PyRef names, consts;                 ///< co_names, co_consts
  int freeOffset = 0;                  ///< localsplus index of the first free variable

  /// The innermost handler of an instruction, or null.
  const HandlerRange* handlerOf(int index) const;
  /// CPython walks over the table of lines for every question, so answers are kept. The GIL must be held.
  int lineOf(int index) const;

 private:
  mutable std::vector<int32_t> lines_;  ///< by instruction; -2 where nobody asked yet
};

/// Decodes (or finds) a code object. The GIL must be held. The result is of use as long as the code lives.
/// Unknown opcodes decode to Op::UNKNOWN, so that meeting one is an ordinary graph break.
std::shared_ptr<const DecodedCode> decodeCode(PyCodeObject* code);

/// CPython's name of an opcode number.
std::string opcodeName(int opcode);

}  // namespace fusebox::capture
