#pragma once

#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "profiler/session/cell.h"
#include "profiler/session/row_statements.h"

/// What is written into a session, by the names of its columns (schema_tables.cpp has them with their types): a column that is
/// not named is NULL, and one that a table gets later shifts no other. A name that is a word of C++ ends in `_` here.
namespace fusebox::session::rows {

#define FUSEBOX_ROW(Name, ...)                               \
  struct Name {                                              \
    static constexpr RowKind kKind = RowKind::Name;          \
    static constexpr std::string_view kColumns = #__VA_ARGS__; \
    Cell __VA_ARGS__;                                        \
  };

FUSEBOX_ROW(Info, key, value)
FUSEBOX_ROW(Thread, id, os_tid, name)
FUSEBOX_ROW(Frame, id, parent_id, name, qualname, file, line, resume_offset, status, reason, first_seen_ns)
FUSEBOX_ROW(FrameStatus, id, status, reason)
FUSEBOX_ROW(Compile, id, frame_id, parent_id, attempt, kind, backend, mode, dynamic, start_ns, end_ns, status, error, cache, cache_key,
            failure_id, thread, file, line, log_id)
FUSEBOX_ROW(CompileCache, id, cache, cache_key)
FUSEBOX_ROW(CompileEnd, id, end_ns, status, error, cache, cache_key)
FUSEBOX_ROW(Stage, id, compile_id, parent_id, depth, phase, name, start_ns, end_ns, thread, changed, nodes_before, nodes_after, error,
            detail)
FUSEBOX_ROW(GraphBreak, id, frame_id, compile_id, kind, reason, hint, file, line, end_line, col, end_col, opcode, offset, stack, time_ns,
            bytecode)
FUSEBOX_ROW(Guard, id, compile_id, position, kind, source, expected, code, reason, file, line, stack)
FUSEBOX_ROW(GuardFailure, id, frame_id, compile_id, guard_id, guard, expected, found, outcome, file, line, time_ns, stack)
FUSEBOX_ROW(Symbol, id, compile_id, position, name, kind, source, hint, lower, upper, policy, reason, before, after, file, line, stack,
            time_ns)
FUSEBOX_ROW(Relation, id, compile_id, position, guard_id, kind, op, left, right, symbols, reason, file, line, stack, time_ns)
FUSEBOX_ROW(Specialisation, id, compile_id, position, guard_id, kind, expression, symbols, source, value, operator_, reason, file, line,
            stack, time_ns)
FUSEBOX_ROW(Graph, id, compile_id, stage, direction, name, parent_id, node_count, edge_count, input_count, output_count, text, time_ns)
FUSEBOX_ROW(Stack, id, text)
FUSEBOX_ROW(Node, id, graph_id, position, name, kind, op, args, dtype, shape, stride, device, outputs, bytes, is_backward, module_path,
            file, line, function, stack)
FUSEBOX_ROW(Edge, graph_id, src, dst, output, arg)
FUSEBOX_ROW(NodeOrigin, node_id, origin_id)
FUSEBOX_ROW(FusionGroup, id, compile_id, graph_id, position, name, kind, kernel_id, read_bytes, write_bytes, bytes_saved, reason, file,
            line)
FUSEBOX_ROW(FusionGroupPlace, id)
FUSEBOX_ROW(FusionMember, group_id, node_id, position, role)
FUSEBOX_ROW(FusionDecision, id, compile_id, graph_id, position, a, b, a_node, b_node, group_id, kind, fused, reason, detail, score_bytes)
FUSEBOX_ROW(Buffer, id, compile_id, graph_id, name, kind, node_id, dtype, shape, device, bytes, first_use, last_use, pool_offset, reuses_id)
FUSEBOX_ROW(Kernel, id, compile_id, graph_id, group_id, name, kind, op, device, loop_ir, reason, read_bytes, write_bytes, flops, file, line,
            time_ns, code_of)
FUSEBOX_ROW(KernelPlace, id, node_id)
FUSEBOX_ROW(KernelCode, kernel_id, tier, target, llvm_ir, assembly, code_bytes, compile_ns, cache, time_ns)
FUSEBOX_ROW(KernelBinary, kernel_id, format, bytes)
FUSEBOX_ROW(LaunchStats, kernel_id, group_id, launches, total_ns, min_ns, max_ns, bytes, first_ns, last_ns)
FUSEBOX_ROW(CallStats, kind, compile_id, calls, total_ns, min_ns, max_ns)
FUSEBOX_ROW(Block, track, first_id, last_id, thread, start_ns, end_ns)
FUSEBOX_ROW(CpuEvent, id, kind, name, start_ns, dur_ns, thread, depth, compile_id, detail, file, line)
FUSEBOX_ROW(GpuEvent, id, kind, name, device, stream, start_ns, dur_ns, correlation, kernel_id, launch_id, bytes, shape_id, lane, thread,
            called_ns, call_dur_ns, cpu_event, graph, graph_node)
FUSEBOX_ROW(GpuShape, id, name, symbol, device, grid, block, threads, registers, static_shared, dynamic_shared, local_bytes, occupancy,
            occupancy_limit)
FUSEBOX_ROW(GpuStats, kernel_id, launches, events, total_ns, min_ns, max_ns, first_ns, last_ns)
FUSEBOX_ROW(GpuShapeStats, kernel_id, shape_id, events, total_ns)
FUSEBOX_ROW(GpuDevice, device, name, capability, multiprocessors, threads_per_multiprocessor, registers_per_multiprocessor,
            shared_per_multiprocessor, memory_bytes, l2_bytes, clock_khz, memory_clock_khz, memory_bus_bits, peak_bytes_per_s, peak_flops,
            copy_bytes_per_s)
FUSEBOX_ROW(GpuDeviceCopy, device, copy_bytes_per_s)
FUSEBOX_ROW(GpuCounter, event_id, metric, value)
FUSEBOX_ROW(GpuSampling, device, position, metric, scale, interval_ns)
FUSEBOX_ROW(GpuSample, device, start_ns, dur_ns, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11)
FUSEBOX_ROW(GpuSampleSum, device, position, level, bucket, count, covered_ns, sum, least, most)
FUSEBOX_ROW(CacheEvent, id, compile_id, cache, outcome, key, reason, saved_ns, time_ns)
FUSEBOX_ROW(Artifact, id, compile_id, graph_id, kind, name, format, text, detail, damaged, time_ns, thread)
FUSEBOX_ROW(Flow, id, kind, name, from_thread, from_ns, to_thread, to_ns, from_event, to_event)
FUSEBOX_ROW(SavedGraph, graph_id, format, text)
FUSEBOX_ROW(Numerics, graph_id, node_id, output, dtype, elements, eager_abs, eager_rel, compiled_abs, compiled_rel, difference_abs,
            difference_ulp, local_abs, magnitude, mismatches, is_divergent, note)
FUSEBOX_ROW(CudaGraph, id, compile_id, event, number, reason, replaces, device, nodes, stretches, plain_steps, plain_reason, static_inputs,
            copied_inputs, copied_bytes, kept_bytes, time_ns, dur_ns, kernel_id, pool_bytes)
FUSEBOX_ROW(CudaGraphNode, graph_id, stretch, first_node, node_count, group_id, kernel_id)
FUSEBOX_ROW(SourceFile, id, path, text, bytes, hash, truncated, time_ns)
FUSEBOX_ROW(Loss, what, count, detail, first_ns, last_ns)
FUSEBOX_ROW(Pyramid, track, thread, level, bucket, count, busy_ns, max_dur_ns, example_id)
FUSEBOX_ROW(Long, track, thread, level, start_ns, dur_ns, id)

#undef FUSEBOX_ROW

/// The cells of a row in the order of its columns.
template <class Row>
std::span<Cell> cellsOf(Row& row) {
  static_assert(sizeof(Row) % sizeof(Cell) == 0 && alignof(Row) == alignof(Cell));  // cells, one behind the other, and nothing else
  return {reinterpret_cast<Cell*>(&row), sizeof(Row) / sizeof(Cell)};
}

template <class Row>
std::vector<Cell> takeCells(Row row) {
  const std::span<Cell> cells = cellsOf(row);
  return {std::make_move_iterator(cells.begin()), std::make_move_iterator(cells.end())};
}

}  // namespace fusebox::session::rows
