// What the engine reports of a graph that it compiled again.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/support/message_fields.h"
#include "views/common/units.h"
#include "views/fusion/fusion_model.h"

namespace fusebox::views {
namespace {

using control::textField;
using Json = nlohmann::json;

double numberOf(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_number() ? found->get<double>() : NAN;
}
const Json& partOf(const Json& object, const char* key) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

Cell countOrNothing(double value) { return std::isnan(value) ? Cell{"", -1} : countCell(static_cast<int64_t>(value)); }

TableRow rowOf(const Json& run, const Json& exact) {
  const Json& times = partOf(run, "times_ms");
  const double median = numberOf(times, "median"), least = numberOf(times, "min"), bytes = numberOf(run, "bytes");
  const double error = numberOf(exact, "max_relative");
  const auto agrees = exact.is_object() ? exact.find("agrees") : exact.end();
  const bool isWrong = exact.is_object() && agrees != exact.end() && agrees->is_boolean() && !agrees->get<bool>();
  TableRow row;
  row.cells.resize(kReplayColumns);
  row.cells[kReplayWhat] = textCell(textField(run, "label"));
  row.cells[kReplayMedian] = std::isnan(median) ? Cell{} : durationCell(median * 1e6);
  row.cells[kReplayMin] = std::isnan(least) ? Cell{} : durationCell(least * 1e6);
  row.cells[kReplayLaunches] = countOrNothing(numberOf(run, "launches"));
  row.cells[kReplayExtern] = countOrNothing(numberOf(run, "extern_calls"));
  row.cells[kReplayBytes] = std::isnan(bytes) ? Cell{} : bytesCell(bytes);
  if (!std::isnan(error))
    row.cells[kReplayError] = {(error == 0 ? "0" : fmt::format("{:.1e}", error)) + (isWrong ? "  too much" : ""),
                               error};
  row.tone = isWrong ? 3 : 0;
  return row;
}

TableRow changeRow(const Json& change) {
  TableRow row;
  row.cells.resize(kReplayColumns);
  const double percent = numberOf(change, "time_percent"), bytes = numberOf(change, "bytes"),
               launches = numberOf(change, "launches");
  row.cells[kReplayWhat] = textCell("change");
  if (!std::isnan(percent)) row.cells[kReplayMedian] = {fmt::format("{:+.1f} %", percent), percent};
  if (!std::isnan(launches)) row.cells[kReplayLaunches] = {fmt::format("{:+.0f}", launches), launches};
  if (!std::isnan(bytes)) row.cells[kReplayBytes] = {(bytes < 0 ? "−" : "+") + formatBytes(std::abs(bytes)), bytes};
  row.tone = percent > 2 ? 2 : percent < -2 ? 1 : 0;
  return row;
}

}  // namespace

Result<ReplayReport> readReplayReport(const std::string& json) {
  const Json all = Json::parse(json, nullptr, false);
  if (!all.is_object() || !partOf(all, "runs").is_array())
    return fail(ErrorCode::Corrupt, "the engine's report cannot be read");
  ReplayReport report;
  report.session = textField(all, "session");
  for (const Json& run : partOf(all, "runs")) {
    report.rows.push_back(rowOf(run, partOf(partOf(all, "against_eager"), textField(run, "label").c_str())));
    if (!partOf(run, "decisions").is_array()) continue;
    for (const Json& decision : partOf(run, "decisions"))
      report.outcomes.push_back(
          fmt::format("{} with {}: {}", textField(decision, "a"), textField(decision, "b"), textField(decision, "reason")));
  }
  if (const Json& change = partOf(all, "change"); change.is_object()) {
    report.rows.push_back(changeRow(change));
    const double percent = numberOf(change, "time_percent"), bytes = numberOf(change, "bytes");
    if (!std::isnan(percent) && !std::isnan(bytes))
      report.verdict =
          fmt::format("{:.1f} % {}, {} {} memory traffic", std::abs(percent), percent > 0 ? "slower" : "faster",
                      formatBytes(std::abs(bytes)), bytes > 0 ? "more" : "less");
  } else if (!report.rows.empty()) {
    report.verdict = report.rows.front().cells[kReplayMedian].text + " a run";
  }
  return report;
}

Result<NumericsReport> readNumericsReport(const std::string& json) {
  const Json all = Json::parse(json, nullptr, false);
  if (!all.is_object() || !partOf(all, "rows").is_array())
    return fail(ErrorCode::Corrupt, "the engine's report cannot be read");
  NumericsReport report;
  report.session = textField(all, "session");
  const double divergent = numberOf(all, "divergent");
  report.divergent = std::isnan(divergent) ? 0 : static_cast<int64_t>(divergent);
  if (const Json& first = partOf(all, "first_divergence"); first.is_object()) {
    const Json& bisect = partOf(all, "bisect");
    report.verdict = fmt::format("first divergence: {} ({})", textField(first, "name"), textField(first, "op"));
    if (bisect.is_object())
      report.verdict += fmt::format("; cause: {}: {}", textField(bisect, "cause"), textField(bisect, "detail"));
  } else {
    report.verdict =
        fmt::format("{} values compared with float64: compiled is as exact as eager", partOf(all, "rows").size());
  }
  return report;
}

}  // namespace fusebox::views
