#include "profiler/session/row_statements.h"

#include <fmt/format.h>

namespace fusebox::session {
namespace {

struct RowStatement {
  RowKind kind;
  const char* table;
  int columns;
  const char* sql = nullptr;  ///< when not a plain insert of `columns` values
};

constexpr RowStatement kStatements[] = {
    {RowKind::Info, "t_info", 2},
    {RowKind::Thread, "t_thread", 3},
    {RowKind::Frame, "t_frame", 10},
    {RowKind::FrameStatus, "t_frame", 3, "UPDATE t_frame SET status = ?2, reason = ?3 WHERE id = ?1"},
    {RowKind::Compile, "t_compile", 18},
    {RowKind::CompileEnd, "t_compile", 6,
     "UPDATE t_compile SET end_ns = ?2, status = ?3, error = ?4, cache = ?5, cache_key = ?6 WHERE id = ?1"},
    {RowKind::Stage, "t_stage", 14},
    {RowKind::GraphBreak, "t_graph_break", 16},
    {RowKind::Guard, "t_guard", 11},
    {RowKind::GuardFailure, "t_guard_failure", 12},
    {RowKind::Symbol, "t_symbol", 17},
    {RowKind::Relation, "t_relation", 14},
    {RowKind::Specialisation, "t_specialisation", 15},
    {RowKind::Graph, "t_graph", 12},
    {RowKind::Stack, "t_stack", 2},
    {RowKind::Node, "t_node", 19},
    {RowKind::Edge, "t_edge", 5},
    {RowKind::NodeOrigin, "t_node_origin", 2},
    {RowKind::FusionGroup, "t_fusion_group", 13},
    // A group's and a kernel's place is that of its last node that has one: what the user sees last of a chain.
    {RowKind::FusionGroupPlace, "t_fusion_group", 1,
     "UPDATE t_fusion_group SET (file, line) = (SELECT n.file, n.line FROM t_fusion_member m JOIN t_node n "
     "ON n.id = m.node_id WHERE m.group_id = ?1 AND n.file IS NOT NULL ORDER BY m.position DESC LIMIT 1) WHERE id = ?1"},
    {RowKind::FusionMember, "t_fusion_member", 4},
    {RowKind::FusionDecision, "t_fusion_decision", 14},
    {RowKind::Buffer, "t_buffer", 14},
    {RowKind::Kernel, "t_kernel", 17},
    {RowKind::KernelPlace, "t_kernel", 2,
     "UPDATE t_kernel SET (file, line) = (SELECT file, line FROM t_node WHERE id = ?2) "
     "WHERE id = ?1 AND EXISTS(SELECT 1 FROM t_node WHERE id = ?2 AND file IS NOT NULL)"},
    {RowKind::KernelCode, "t_kernel_code", 9},
    {RowKind::KernelBinary, "t_kernel_binary", 3, "INSERT OR REPLACE INTO t_kernel_binary VALUES(?, ?, CAST(? AS BLOB))"},
    {RowKind::LaunchStats, "t_launch_stats", 9,
     "INSERT INTO t_launch_stats VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT(kernel_id, group_id) DO UPDATE SET "
     "launches = launches + excluded.launches, total_ns = total_ns + excluded.total_ns, "
     "min_ns = min(min_ns, excluded.min_ns), max_ns = max(max_ns, excluded.max_ns), bytes = bytes + excluded.bytes, "
     "first_ns = min(first_ns, excluded.first_ns), last_ns = max(last_ns, excluded.last_ns)"},
    // Many at once: see RowBatch.
    {RowKind::Launch, "t_launch", 0, "INSERT INTO t_launch SELECT c0, c1, c2, c3, c4, c5, c6 FROM row_batch"},
    {RowKind::Call, "t_call", 0, "INSERT INTO t_call SELECT c0, c1, c2, c3, c4 FROM row_batch"},
    {RowKind::CallStats, "t_call_stats", 6,
     "INSERT INTO t_call_stats VALUES(?,?,?,?,?,?) ON CONFLICT(kind, compile_id) DO UPDATE SET "
     "calls = calls + excluded.calls, total_ns = total_ns + excluded.total_ns, min_ns = min(min_ns, excluded.min_ns), "
     "max_ns = max(max_ns, excluded.max_ns)"},
    {RowKind::Block, "t_block", 6},
    {RowKind::CpuEvent, "t_cpu_event", 11},
    {RowKind::GpuEvent, "t_gpu_event", 19},
    {RowKind::GpuShape, "t_gpu_shape", 13},
    {RowKind::GpuStats, "t_gpu_stats", 8,
     "INSERT INTO t_gpu_stats VALUES(?,?,?,?,?,?,?,?) ON CONFLICT(kernel_id) DO UPDATE SET launches = launches + excluded.launches, "
     "events = events + excluded.events, total_ns = total_ns + excluded.total_ns, min_ns = min(min_ns, excluded.min_ns), "
     "max_ns = max(max_ns, excluded.max_ns), first_ns = min(first_ns, excluded.first_ns), last_ns = max(last_ns, excluded.last_ns)"},
    {RowKind::GpuShapeStats, "t_gpu_shape_stats", 4,
     "INSERT INTO t_gpu_shape_stats VALUES(?,?,?,?) ON CONFLICT(kernel_id, shape_id) DO UPDATE SET "
     "events = events + excluded.events, total_ns = total_ns + excluded.total_ns"},
    {RowKind::GpuDevice, "t_gpu_device", 15},
    {RowKind::GpuDeviceCopy, "t_gpu_device", 2, "UPDATE t_gpu_device SET copy_bytes_per_s = ?2 WHERE device = ?1"},
    {RowKind::GpuCounter, "t_gpu_counter", 3, "INSERT OR REPLACE INTO t_gpu_counter VALUES(?, ?, ?)"},
    {RowKind::GpuSampling, "t_gpu_sampling", 5},
    {RowKind::GpuSample, "t_gpu_sample", 15},
    {RowKind::GpuSampleSum, "t_gpu_sample_sum", 9,
     "INSERT INTO t_gpu_sample_sum VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET count = count + excluded.count, "
     "covered_ns = covered_ns + excluded.covered_ns, sum = sum + excluded.sum, least = min(least, excluded.least), "
     "most = max(most, excluded.most)"},
    {RowKind::CacheEvent, "t_cache_event", 8},
    {RowKind::Artifact, "t_artifact", 11},
    {RowKind::Flow, "t_flow", 9},
    {RowKind::SavedGraph, "t_saved_graph", 3},
    {RowKind::Numerics, "t_numerics", 16},
    {RowKind::CudaGraph, "t_cuda_graph", 19},
    {RowKind::CudaGraphNode, "t_cuda_graph_node", 6},
    {RowKind::SourceFile, "t_source_file", 7},
    // The count is the total so far, so that a repeated write does no harm.
    {RowKind::Loss, "t_loss", 5,
     "INSERT INTO t_loss VALUES(?,?,?,?,?) ON CONFLICT(what) DO UPDATE SET count = excluded.count, "
     "detail = coalesce(excluded.detail, detail), last_ns = excluded.last_ns"},
    {RowKind::Pyramid, "t_pyramid", 8,
     "INSERT INTO t_pyramid VALUES(?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET count = count + excluded.count, "
     "busy_ns = busy_ns + excluded.busy_ns, "
     "example_id = CASE WHEN excluded.max_dur_ns > max_dur_ns THEN excluded.example_id ELSE example_id END, "
     "max_dur_ns = max(max_dur_ns, excluded.max_dur_ns)"},
    {RowKind::Long, "t_long", 6},
};
static_assert(std::size(kStatements) == static_cast<size_t>(RowKind::Count));

}  // namespace

std::string rowSql(RowKind kind) {
  for (const auto& statement : kStatements) {
    if (statement.kind != kind) continue;
    if (statement.sql) return statement.sql;
    std::string parameters = "?";
    for (int i = 1; i < statement.columns; ++i) parameters += ",?";
    return fmt::format("INSERT OR REPLACE INTO {} VALUES({})", statement.table, parameters);
  }
  return {};
}

}  // namespace fusebox::session
