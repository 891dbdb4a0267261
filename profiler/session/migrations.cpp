#include "profiler/session/migrations.h"

#include <fmt/format.h>

#include "profiler/session/schema.h"

namespace fusebox::session {
namespace {

/// Temporary views that make a file of `version` look like version + 1 to the public views. They may only read `main.t_…`.
struct Migration {
  int version;
  const char* sql;
  int since = 1;  ///< for files of this version or a later one: before, the table was not there
};
constexpr Migration kMigrations[] = {
    {1, "CREATE TEMP VIEW t_kernel AS SELECT *, NULL AS code_of FROM main.t_kernel;"
        "CREATE TEMP VIEW t_stack AS SELECT NULL AS id, NULL AS text WHERE 0"},
    {2, "CREATE TEMP VIEW t_artifact AS SELECT NULL AS id, NULL AS compile_id, NULL AS graph_id, NULL AS kind, NULL AS name,"
        "  NULL AS format, NULL AS text, NULL AS detail, NULL AS damaged, NULL AS time_ns, NULL AS thread WHERE 0;"
        "CREATE TEMP VIEW t_flow AS SELECT NULL AS id, NULL AS kind, NULL AS name, NULL AS from_thread, NULL AS from_ns,"
        "  NULL AS to_thread, NULL AS to_ns, NULL AS from_event, NULL AS to_event WHERE 0"},
    {3, "CREATE TEMP VIEW t_graph_break AS SELECT *, NULL AS bytecode FROM main.t_graph_break;"
        "CREATE TEMP VIEW t_guard AS SELECT *, NULL AS stack FROM main.t_guard;"
        "CREATE TEMP VIEW t_guard_failure AS SELECT *, NULL AS stack FROM main.t_guard_failure;"
        "CREATE TEMP VIEW t_saved_graph AS SELECT NULL AS graph_id, NULL AS format, NULL AS text WHERE 0;"
        "CREATE TEMP VIEW t_numerics AS SELECT NULL AS graph_id, NULL AS node_id, NULL AS output, NULL AS dtype, NULL AS elements,"
        "  NULL AS eager_abs, NULL AS eager_rel, NULL AS compiled_abs, NULL AS compiled_rel, NULL AS difference_abs,"
        "  NULL AS difference_ulp, NULL AS local_abs, NULL AS magnitude, NULL AS mismatches, NULL AS is_divergent, NULL AS note WHERE 0;"
        "CREATE TEMP VIEW t_cuda_graph AS SELECT NULL AS id, NULL AS compile_id, NULL AS event, NULL AS number, NULL AS reason,"
        "  NULL AS replaces, NULL AS device, NULL AS nodes, NULL AS stretches, NULL AS plain_steps, NULL AS plain_reason,"
        "  NULL AS static_inputs, NULL AS copied_inputs, NULL AS copied_bytes, NULL AS kept_bytes, NULL AS time_ns, NULL AS dur_ns,"
        "  NULL AS kernel_id, NULL AS pool_bytes WHERE 0;"
        "CREATE TEMP VIEW t_cuda_graph_node AS SELECT NULL AS graph_id, NULL AS stretch, NULL AS first_node, NULL AS node_count,"
        "  NULL AS group_id, NULL AS kernel_id WHERE 0"},
    // One step may have several parts.
    {3, "CREATE TEMP VIEW t_gpu_event AS SELECT *, NULL AS shape_id, NULL AS lane, NULL AS thread, NULL AS called_ns,"
        "  NULL AS call_dur_ns, NULL AS cpu_event, NULL AS graph, NULL AS graph_node FROM main.t_gpu_event;"
        "CREATE TEMP VIEW t_gpu_shape AS SELECT NULL AS id, NULL AS name, NULL AS symbol, NULL AS device, NULL AS grid, NULL AS block,"
        "  NULL AS threads, NULL AS registers, NULL AS static_shared, NULL AS dynamic_shared, NULL AS local_bytes,"
        "  NULL AS occupancy, NULL AS occupancy_limit WHERE 0;"
        "CREATE TEMP VIEW t_gpu_stats AS SELECT NULL AS kernel_id, NULL AS launches, NULL AS events, NULL AS total_ns,"
        "  NULL AS min_ns, NULL AS max_ns, NULL AS first_ns, NULL AS last_ns WHERE 0;"
        "CREATE TEMP VIEW t_gpu_shape_stats AS SELECT NULL AS kernel_id, NULL AS shape_id, NULL AS events, NULL AS total_ns WHERE 0;"
        "CREATE TEMP VIEW t_gpu_device AS SELECT NULL AS device, NULL AS name, NULL AS capability, NULL AS multiprocessors,"
        "  NULL AS threads_per_multiprocessor, NULL AS registers_per_multiprocessor, NULL AS shared_per_multiprocessor,"
        "  NULL AS memory_bytes, NULL AS l2_bytes, NULL AS clock_khz, NULL AS memory_clock_khz, NULL AS memory_bus_bits,"
        "  NULL AS peak_bytes_per_s, NULL AS peak_flops, NULL AS copy_bytes_per_s WHERE 0;"
        "CREATE TEMP VIEW t_kernel_binary AS SELECT NULL AS kernel_id, NULL AS format, NULL AS bytes WHERE 0"},
    {4, "CREATE TEMP VIEW t_gpu_counter AS SELECT NULL AS event_id, NULL AS metric, NULL AS value WHERE 0"},
    {5, "CREATE TEMP VIEW t_gpu_sampling AS SELECT NULL AS device, NULL AS position, NULL AS metric, NULL AS scale, NULL AS interval_ns WHERE 0;"
        "CREATE TEMP VIEW t_gpu_sample AS SELECT NULL AS device, NULL AS start_ns, NULL AS dur_ns,"
        "  NULL AS v0, NULL AS v1, NULL AS v2, NULL AS v3, NULL AS v4, NULL AS v5,"
        "  NULL AS v6, NULL AS v7, NULL AS v8, NULL AS v9, NULL AS v10, NULL AS v11 WHERE 0;"
        "CREATE TEMP VIEW t_gpu_sample_sum AS SELECT NULL AS device, NULL AS position, NULL AS level, NULL AS bucket, NULL AS count,"
        "  NULL AS covered_ns, NULL AS sum, NULL AS least, NULL AS most WHERE 0"},
    {5, "CREATE TEMP VIEW t_cuda_graph AS SELECT *, NULL AS pool_bytes FROM main.t_cuda_graph", 4},
    {6, "CREATE TEMP VIEW t_symbol AS SELECT NULL AS id, NULL AS compile_id, NULL AS position, NULL AS name, NULL AS kind,"
        "  NULL AS source, NULL AS hint, NULL AS lower, NULL AS upper, NULL AS policy, NULL AS reason, NULL AS before,"
        "  NULL AS after, NULL AS file, NULL AS line, NULL AS stack, NULL AS time_ns WHERE 0;"
        "CREATE TEMP VIEW t_relation AS SELECT NULL AS id, NULL AS compile_id, NULL AS position, NULL AS guard_id, NULL AS kind,"
        "  NULL AS op, NULL AS left, NULL AS right, NULL AS symbols, NULL AS reason, NULL AS file, NULL AS line,"
        "  NULL AS stack, NULL AS time_ns WHERE 0;"
        "CREATE TEMP VIEW t_specialisation AS SELECT NULL AS id, NULL AS compile_id, NULL AS position, NULL AS guard_id,"
        "  NULL AS kind, NULL AS expression, NULL AS symbols, NULL AS source, NULL AS value, NULL AS operator, NULL AS reason,"
        "  NULL AS file, NULL AS line, NULL AS stack, NULL AS time_ns WHERE 0"},
    {7, "CREATE TEMP VIEW t_compile AS SELECT *, NULL AS log_id FROM main.t_compile"},
};

Result<void> createViews(Database& database, const char* prefix) {
  std::string sql;
  for (const auto& view : publicViews()) sql += fmt::format("CREATE {} {} AS {};\n", prefix, view.name, view.select);
  return database.execute(sql);
}

}  // namespace

Result<void> createSchema(Database& database) {
  auto created = database.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; BEGIN; {}",
                                              kApplicationId, kSchemaVersion, tableSql()));
  if (!created) return created;
  if (auto views = createViews(database, "VIEW"); !views) return views;
  return database.execute("COMMIT");
}

Result<void> adoptForReading(Database& database) {
  auto application = database.integer("PRAGMA application_id");
  if (!application) return tl::unexpected(application.error());
  if (application->value_or(0) != kApplicationId) {
    return fail(ErrorCode::Corrupt, "this is not a Fusebox session (a database of another program)", database.path());
  }
  auto version = database.integer("PRAGMA user_version");
  if (!version) return tl::unexpected(version.error());
  const int64_t found = version->value_or(0);
  if (found > kSchemaVersion) {
    return fail(ErrorCode::TooNew,
                fmt::format("the session was written by a newer Fusebox (format {}, this program reads up to {}); "
                            "open it with that version or update this one",
                            found, kSchemaVersion),
                database.path());
  }
  if (found < 1) return fail(ErrorCode::Corrupt, "the session has no valid format number", database.path());
  for (const auto& migration : kMigrations) {
    if (found < migration.since || migration.version < found || migration.version >= kSchemaVersion) continue;
    if (auto applied = database.execute(migration.sql); !applied) return applied;
  }
  auto views = createViews(database, "TEMP VIEW");
  if (!views) return views;
  // A session without its tables was cut before its first commit, or tampered with.
  if (auto probe = database.prepare("SELECT 1 FROM session_info, frames, launches, losses"); !probe) {
    return fail(ErrorCode::Corrupt, "the session lacks its tables: " + probe.error().message, database.path());
  }
  return {};
}

}  // namespace fusebox::session
