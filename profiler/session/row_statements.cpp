#include "profiler/session/row_statements.h"

#include <fmt/format.h>

#include "profiler/session/rows.h"

namespace fusebox::session {
namespace {

struct RowStatement {
  RowKind kind;
  std::string_view table, columns;
  std::string_view sql;  ///< behind the insertion of the columns' values; without a table: the whole statement
};

template <class Row>
constexpr RowStatement insert(std::string_view table, std::string_view onConflict = {}) {
  return {Row::kKind, table, Row::kColumns, onConflict};
}

/// Parameters are numbered in the order of the row's columns.
template <class Row>
constexpr RowStatement update(std::string_view sql) {
  return {Row::kKind, {}, Row::kColumns, sql};
}

constexpr RowStatement kStatements[] = {
    insert<rows::Info>("t_info"),
    insert<rows::Thread>("t_thread"),
    insert<rows::Frame>("t_frame"),
    update<rows::FrameStatus>("UPDATE t_frame SET status = ?2, reason = ?3 WHERE id = ?1"),
    insert<rows::Compile>("t_compile"),
    update<rows::CompileCache>("UPDATE t_compile SET cache = ?2, cache_key = ?3 WHERE id = ?1"),
    update<rows::CompileEnd>("UPDATE t_compile SET end_ns = ?2, status = ?3, error = ?4, cache = coalesce(?5, cache), cache_key = coalesce(?6, cache_key) WHERE id = ?1"),
    insert<rows::Stage>("t_stage"),
    insert<rows::GraphBreak>("t_graph_break"),
    insert<rows::Guard>("t_guard"),
    insert<rows::GuardFailure>("t_guard_failure"),
    insert<rows::Symbol>("t_symbol"),
    insert<rows::Relation>("t_relation"),
    insert<rows::Specialisation>("t_specialisation"),
    insert<rows::Graph>("t_graph"),
    insert<rows::Stack>("t_stack"),
    insert<rows::Node>("t_node"),
    insert<rows::Edge>("t_edge"),
    insert<rows::NodeOrigin>("t_node_origin"),
    insert<rows::FusionGroup>("t_fusion_group"),
    // A group's and a kernel's place is that of its last node that has one: what the user sees last of a chain.
    update<rows::FusionGroupPlace>("UPDATE t_fusion_group SET (file, line) = (SELECT n.file, n.line FROM t_fusion_member m JOIN t_node n "
                                   "ON n.id = m.node_id WHERE m.group_id = ?1 AND n.file IS NOT NULL ORDER BY m.position DESC LIMIT 1) WHERE id = ?1"),
    insert<rows::FusionMember>("t_fusion_member"),
    insert<rows::FusionDecision>("t_fusion_decision"),
    insert<rows::Buffer>("t_buffer"),
    insert<rows::Kernel>("t_kernel"),
    update<rows::KernelPlace>("UPDATE t_kernel SET (file, line) = (SELECT file, line FROM t_node WHERE id = ?2) "
                              "WHERE id = ?1 AND EXISTS(SELECT 1 FROM t_node WHERE id = ?2 AND file IS NOT NULL)"),
    insert<rows::KernelCode>("t_kernel_code"),
    update<rows::KernelBinary>("INSERT OR REPLACE INTO t_kernel_binary(kernel_id, format, bytes) VALUES(?, ?, CAST(? AS BLOB))"),
    insert<rows::LaunchStats>("t_launch_stats",
                              "ON CONFLICT(kernel_id, group_id) DO UPDATE SET launches = launches + excluded.launches, total_ns = total_ns + excluded.total_ns, "
                              "min_ns = min(min_ns, excluded.min_ns), max_ns = max(max_ns, excluded.max_ns), bytes = bytes + excluded.bytes, "
                              "first_ns = min(first_ns, excluded.first_ns), last_ns = max(last_ns, excluded.last_ns)"),
    // Many at once: see RowBatch.
    {RowKind::Launch, {}, {}, "INSERT INTO t_launch(id, kernel_id, group_id, start_ns, dur_ns, bytes, thread) SELECT c0, c1, c2, c3, c4, c5, c6 FROM row_batch"},
    {RowKind::Call, {}, {}, "INSERT INTO t_call(id, compile_id, start_ns, dur_ns, thread) SELECT c0, c1, c2, c3, c4 FROM row_batch"},
    insert<rows::CallStats>("t_call_stats", "ON CONFLICT(kind, compile_id) DO UPDATE SET calls = calls + excluded.calls, total_ns = total_ns + excluded.total_ns, "
                                            "min_ns = min(min_ns, excluded.min_ns), max_ns = max(max_ns, excluded.max_ns)"),
    insert<rows::Block>("t_block"),
    insert<rows::CpuEvent>("t_cpu_event"),
    insert<rows::GpuEvent>("t_gpu_event"),
    insert<rows::GpuShape>("t_gpu_shape"),
    insert<rows::GpuStats>("t_gpu_stats", "ON CONFLICT(kernel_id) DO UPDATE SET launches = launches + excluded.launches, events = events + excluded.events, "
                                          "total_ns = total_ns + excluded.total_ns, min_ns = min(min_ns, excluded.min_ns), max_ns = max(max_ns, excluded.max_ns), "
                                          "first_ns = min(first_ns, excluded.first_ns), last_ns = max(last_ns, excluded.last_ns)"),
    insert<rows::GpuShapeStats>("t_gpu_shape_stats", "ON CONFLICT(kernel_id, shape_id) DO UPDATE SET events = events + excluded.events, "
                                                     "total_ns = total_ns + excluded.total_ns"),
    insert<rows::GpuDevice>("t_gpu_device"),
    update<rows::GpuDeviceCopy>("UPDATE t_gpu_device SET copy_bytes_per_s = ?2 WHERE device = ?1"),
    insert<rows::GpuCounter>("t_gpu_counter"),
    insert<rows::GpuSampling>("t_gpu_sampling"),
    insert<rows::GpuSample>("t_gpu_sample"),
    insert<rows::GpuSampleSum>("t_gpu_sample_sum", "ON CONFLICT DO UPDATE SET count = count + excluded.count, covered_ns = covered_ns + excluded.covered_ns, "
                                                   "sum = sum + excluded.sum, least = min(least, excluded.least), most = max(most, excluded.most)"),
    insert<rows::CacheEvent>("t_cache_event"),
    insert<rows::Artifact>("t_artifact"),
    insert<rows::Flow>("t_flow"),
    insert<rows::SavedGraph>("t_saved_graph"),
    insert<rows::Numerics>("t_numerics"),
    insert<rows::CudaGraph>("t_cuda_graph"),
    insert<rows::CudaGraphNode>("t_cuda_graph_node"),
    insert<rows::SourceFile>("t_source_file"),
    // The count is the total so far, so that a repeated write does no harm.
    insert<rows::Loss>("t_loss", "ON CONFLICT(what) DO UPDATE SET count = excluded.count, detail = coalesce(excluded.detail, detail), last_ns = excluded.last_ns"),
    insert<rows::Pyramid>("t_pyramid", "ON CONFLICT DO UPDATE SET count = count + excluded.count, busy_ns = busy_ns + excluded.busy_ns, "
                                       "example_id = CASE WHEN excluded.max_dur_ns > max_dur_ns THEN excluded.example_id ELSE example_id END, "
                                       "max_dur_ns = max(max_dur_ns, excluded.max_dur_ns)"),
    insert<rows::Long>("t_long"),
};
static_assert(std::size(kStatements) == static_cast<size_t>(RowKind::Count));
static_assert([] {
  for (size_t i = 0; i < std::size(kStatements); ++i)
    if (kStatements[i].kind != static_cast<RowKind>(i)) return false;
  return true;
}());

}  // namespace

std::string rowSql(RowKind kind) {
  const RowStatement& statement = kStatements[static_cast<size_t>(kind)];
  if (statement.table.empty()) return std::string(statement.sql);
  std::string columns, parameters;
  for (const char c : statement.columns) {
    if (c == ',') parameters += "?,";
    if (c == ',' && columns.ends_with('_')) columns.pop_back();
    columns += c;
  }
  return fmt::format("INSERT {}INTO {}({}) VALUES({}?) {}", statement.sql.empty() ? "OR REPLACE " : "", statement.table, columns, parameters, statement.sql);
}

}  // namespace fusebox::session
