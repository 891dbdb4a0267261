#include "engine/python/record_queue.h"

#include <pybind11/stl.h>

#include <mutex>
#include <utility>

#include "engine/capture/entries/hook.h"
#include "engine/graph/serialize.h"
#include "engine/graph/symbol_values.h"
#include "engine/record/recorder.h"

namespace py = pybind11;

namespace fusebox::python {
namespace {

using namespace record;  // the names of records

/// Keeps what is heard, on any thread, until Python takes it.
class RecordQueue : public Listener {
 public:
  void heard(Heard heard) override {
    const bool tells = std::holds_alternative<CompileEndRecord>(heard.what) || std::holds_alternative<CudaGraphRecord>(heard.what) ||
                       std::holds_alternative<LossRecord>(heard.what);
    {
      std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(heard));
    }
    // Listeners of compiling come after a frame's; a backward graph is compiled on a thread of autograd's, by nobody who calls Python.
    if (tells) Py_AddPendingCall(&RecordQueue::hand, this);
  }

  std::vector<Heard> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(waiting_, {});
  }

  PyObject* taker = nullptr;  ///< called where something waits; owned, and never given up

 private:
  /// On the main thread, between two instructions of Python.
  static int hand(void* self) {
    auto& queue = *static_cast<RecordQueue*>(self);
    {
      std::lock_guard lock(queue.mutex_);
      if (queue.waiting_.empty() || !queue.taker) return 0;
    }
    capture::RegionPause pause;
    if (PyObject* none = PyObject_CallNoArgs(queue.taker)) Py_DECREF(none);
    else PyErr_WriteUnraisable(queue.taker);
    return 0;
  }

  std::mutex mutex_;
  std::vector<Heard> waiting_;
};

RecordQueue& theQueue() {
  static auto* queue = new RecordQueue();
  return *queue;
}

py::object text(const std::string& utf8) {
  return py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "replace"));
}

py::dict dictOf(const Place& p) {
  py::dict d;
  d["file"] = text(p.file);
  d["line"] = p.line;
  d["function"] = text(p.function);
  return d;
}

py::list listOf(const std::vector<Place>& stack) {
  py::list list;
  for (const Place& p : stack) list.append(dictOf(p));
  return list;
}

py::dict dictOf(const GraphBreakRecord::Instruction& i) {
  py::dict d;
  d["offset"] = i.offset;
  d["line"] = i.line;
  d["op"] = i.op;
  d["argument"] = text(i.argument);
  d["to"] = i.to;
  return d;
}

py::list listOf(const std::vector<GraphBreakRecord::Instruction>& code) {
  py::list list;
  for (const auto& i : code) list.append(dictOf(i));
  return list;
}

py::dict dictOf(const FrameRecord& r) {
  py::dict d;
  d["kind"] = "frame";
  d["parent"] = r.parent;
  d["name"] = text(r.name);
  d["place"] = dictOf(r.place);
  d["offset"] = r.resumeOffset;
  return d;
}

py::dict dictOf(const FrameStatusRecord& r) {
  py::dict d;
  d["kind"] = "frame_status";
  d["frame"] = r.frame;
  d["status"] = r.status;
  d["reason"] = text(r.reason);
  return d;
}

py::dict dictOf(const CompileRecord& r) {
  py::dict d;
  d["kind"] = "compile";
  d["frame"] = r.frame;
  d["parent"] = r.parent;
  d["attempt"] = r.attempt;
  d["of"] = r.kind;
  d["backend"] = r.backend;
  d["mode"] = r.mode;
  d["cause"] = r.cause;
  d["stack"] = listOf(r.stack);
  d["logs"] = r.logs;
  return d;
}

py::dict dictOf(const CompileEndRecord& r) {
  py::dict d;
  d["kind"] = "compile_end";
  d["compile"] = r.compile;
  d["ok"] = r.end.ok;
  d["error"] = text(r.end.error);
  return d;
}

py::dict dictOf(const GraphBreakRecord& r) {
  py::dict d;
  d["kind"] = "graph_break";
  d["compile"] = r.compile;
  d["what"] = text(r.kind);
  d["reason"] = text(r.reason);
  d["hint"] = text(r.hint);
  d["place"] = dictOf(r.place);
  d["opcode"] = r.opcode;
  d["stack"] = listOf(r.stack);
  d["offset"] = r.offset;
  d["instructions"] = listOf(r.bytecode);
  return d;
}

py::dict row(const GuardRecord& r) {
  py::dict d;
  d["guard"] = r.kind;
  d["source"] = text(r.source);
  d["expected"] = text(r.expected);
  d["code"] = text(r.code);
  d["reason"] = text(r.reason);
  d["place"] = dictOf(r.place);
  d["stack"] = listOf(r.stack);
  return d;
}

py::dict row(const SymbolRecord& r) {
  py::dict d;
  d["name"] = r.name;
  d["source"] = text(r.source);
  d["of"] = r.kind;
  d["hint"] = r.hint;
  d["lower"] = r.lower;
  d["upper"] = r.upper;
  d["policy"] = r.policy;
  d["reason"] = text(r.reason);
  d["place"] = dictOf(r.place);
  d["stack"] = listOf(r.stack);
  return d;
}

py::dict row(const RelationRecord& r) {
  py::dict d;
  d["of"] = r.kind;
  d["expression"] = r.left + " " + r.op + " " + r.right;
  d["reason"] = text(r.reason);
  d["place"] = dictOf(r.place);
  d["stack"] = listOf(r.stack);
  return d;
}

py::dict row(const SpecialisationRecord& r) {
  py::dict d;
  d["of"] = r.kind;
  d["symbols"] = r.symbols;
  d["source"] = text(r.source);
  d["value"] = r.value;
  d["reason"] = text(r.reason);
  d["place"] = dictOf(r.place);
  d["stack"] = listOf(r.stack);
  return d;
}

const char* nameOf(const GuardRecord&) { return "guards"; }
const char* nameOf(const SymbolRecord&) { return "symbols"; }
const char* nameOf(const RelationRecord&) { return "relations"; }
const char* nameOf(const SpecialisationRecord&) { return "specialisations"; }

template <class Record>
py::dict dictOf(const Listed<Record>& r) {
  py::dict d;
  d["kind"] = nameOf(Record());
  d["compile"] = r.compile;
  py::list rows;
  for (const Record& one : r.rows) rows.append(row(one));
  d["rows"] = rows;
  return d;
}

py::dict dictOf(const GuardFailureRecord& r) {
  py::dict d;
  d["kind"] = "guard_failure";
  d["frame"] = r.frame;
  d["compile"] = r.compile;
  d["text"] = text(r.text);
  d["expected"] = text(r.expected);
  d["found"] = text(r.found);
  d["outcome"] = r.outcome;
  d["place"] = dictOf(r.place);
  d["stack"] = listOf(r.stack);
  return d;
}

py::dict dictOf(const HeardGraph& r) {
  py::dict d;
  d["kind"] = "graph";
  d["compile"] = r.record.compile;
  d["stage"] = r.record.stage;
  d["direction"] = r.record.direction;
  d["name"] = text(r.record.name.empty() ? r.graph->name : r.record.name);
  d["from"] = r.record.from.id;
  d["same_positions"] = r.record.samePositions;
  d["saved"] = text(graph::writeSavedGraph(*r.graph));
  return d;
}

py::dict dictOf(const FusionGroupRecord& r) {
  py::dict d;
  d["kind"] = "group";
  d["compile"] = r.compile;
  d["graph"] = r.graph.id;
  d["position"] = r.position;
  d["name"] = text(r.name);
  d["of"] = r.kind;
  d["kernel"] = r.kernel;
  d["nodes"] = r.nodes;
  d["results"] = r.results;
  d["read_bytes"] = r.readBytes;
  d["write_bytes"] = r.writeBytes;
  d["bytes_saved"] = r.bytesSaved;
  d["reason"] = text(r.reason);
  return d;
}

py::dict dictOf(const FusionDecisionRecord& r) {
  py::dict d;
  d["kind"] = "decision";
  d["compile"] = r.compile;
  d["graph"] = r.graph.id;
  d["a"] = text(r.a);
  d["b"] = text(r.b);
  d["of"] = r.kind;
  d["fused"] = r.fused;
  d["reason"] = text(r.reason);
  d["score_bytes"] = r.scoreBytes;
  return d;
}

py::dict dictOf(const BufferRecord& r) {
  py::dict d;
  d["kind"] = "buffer";
  d["compile"] = r.compile;
  d["graph"] = r.graph.id;
  d["name"] = text(r.name);
  d["of"] = r.kind;
  d["dtype"] = r.dtype;
  d["shape"] = r.shape;
  d["device"] = r.device;
  d["bytes"] = r.bytes;
  return d;
}

py::dict dictOf(const KernelRecord& r) {
  py::dict d;
  d["kind"] = "kernel";
  d["compile"] = r.compile;
  d["graph"] = r.graph.id;
  d["name"] = text(r.name);
  d["of"] = r.kind;
  d["op"] = text(r.op);
  d["device"] = r.device;
  d["loop_ir"] = text(r.loopIr);
  d["reason"] = text(r.reason);
  d["read_bytes"] = r.readBytes;
  d["write_bytes"] = r.writeBytes;
  d["flops"] = r.flops;
  d["nodes"] = r.nodes;
  d["code_of"] = r.codeOf;
  return d;
}

py::dict dictOf(const KernelCodeRecord& r) {
  py::dict d;
  d["kind"] = "kernel_code";
  d["kernel"] = r.kernel;
  d["tier"] = r.tier;
  d["target"] = r.target;
  d["llvm_ir"] = text(r.llvmIr);
  d["assembly"] = text(r.assembly);
  d["compile_ns"] = r.compileNs;
  return d;
}

py::dict dictOf(const IrRecord& r) {
  py::dict d;
  d["kind"] = "ir";
  d["compile"] = r.compile;
  d["stage"] = r.stage;
  d["direction"] = r.direction;
  d["text"] = text(r.text);
  return d;
}

py::dict dictOf(const StageRecord& r) {
  py::dict d;
  d["kind"] = "stage";
  d["compile"] = r.compile;
  d["phase"] = r.phase;
  d["name"] = text(r.name);
  d["start_ns"] = r.startNs;
  d["end_ns"] = r.endNs;
  d["changed"] = r.changed;
  d["nodes_before"] = r.nodesBefore;
  d["nodes_after"] = r.nodesAfter;
  d["detail"] = text(r.detail);
  return d;
}

py::dict dictOf(const CacheRecord& r) {
  py::dict d;
  d["kind"] = "cache";
  d["compile"] = r.compile;
  d["cache"] = r.cache;
  d["outcome"] = r.outcome;
  d["key"] = r.key;
  d["reason"] = text(r.reason);
  d["saved_ns"] = r.savedNs;
  return d;
}

py::dict dictOf(const CudaGraphRecord& r) {
  py::dict d;
  d["kind"] = "cuda_graph";
  d["compile"] = r.compile;
  d["event"] = r.event;
  d["number"] = r.number;
  d["reason"] = text(r.reason);
  d["device"] = r.device;
  d["nodes"] = r.nodeCount;
  d["stretches"] = r.stretches;
  d["plain_steps"] = r.plainSteps;
  d["plain_reason"] = text(r.plainReason);
  d["static_inputs"] = r.staticInputs;
  d["copied_inputs"] = r.copiedInputs;
  d["copied_bytes"] = r.copiedBytes;
  return d;
}

py::dict dictOf(const TracedInstruction& r) {
  py::dict d = dictOf(r.instruction);
  d["kind"] = "instruction";
  d["place"] = dictOf(r.place);
  d["depth"] = r.depth;
  d["stack"] = r.stack;
  d["column"] = r.column;
  d["end_line"] = r.endLine;
  d["end_column"] = r.endColumn;
  d["made"] = r.made;
  return d;
}

py::dict dictOf(const BytecodeRecord& r) {
  py::dict d;
  d["kind"] = "bytecode";
  d["compile"] = r.compile;
  d["instructions"] = listOf(r.instructions);
  return d;
}

py::dict dictOf(const EffectsRecord& r) {
  py::dict d;
  d["kind"] = "effects";
  d["compile"] = r.compile;
  py::list lines;
  for (const std::string& line : r.lines) lines.append(text(line));
  d["lines"] = lines;
  return d;
}

py::dict dictOf(const SessionBegins&) {
  py::dict d;
  d["kind"] = "session";
  d["first_other_id"] = kFirstIdWithoutSession;
  return d;
}

py::dict dictOf(const LossRecord& r) {
  py::dict d;
  d["kind"] = "loss";
  d["what"] = text(r.what);
  d["detail"] = text(r.detail);
  d["count"] = r.count;
  return d;
}

/// Oldest first. `time_ns` is of the clock that time.monotonic_ns() reads.
py::list takeRecords() {
  py::list list;
  for (const Heard& heard : theQueue().take()) {
    py::dict d = std::visit([](const auto& record) { return dictOf(record); }, heard.what);
    d["id"] = heard.id;
    d["time_ns"] = heard.timeNs;
    list.append(d);
  }
  return list;
}

}  // namespace

void bindRecordQueue(py::module_& m) {
  m.def("listen_to_records", [](const py::object& taker, bool code, bool instructions) {
    RecordQueue& queue = theQueue();
    queue.wantsCode = code;
    queue.wantsInstructions = instructions;
    if (!taker.is_none() && !queue.taker) queue.taker = py::object(taker).release().ptr();
    Recorder::listen(taker.is_none() ? nullptr : &queue);
  }, py::arg("taker"), py::arg("code") = false, py::arg("instructions") = false);
  m.def("take_records", &takeRecords);
}

}  // namespace fusebox::python
