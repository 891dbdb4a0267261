// What the engine reports of a graph that it compiled again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/support/bounded_json.h"
#include "engine/support/message_fields.h"
#include "engine/support/text.h"
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
    row.cells[kReplayError] = {(error == 0 ? "0" : fmt::format("{:.1e}", error)) + (isWrong ? "  " + say(FUSEBOX_TEXT("Fusion", "too much")) : std::string()),
                               error};
  row.tone = isWrong ? 3 : 0;
  return row;
}

/// "+3", "−3", "0".
std::string withSign(double value, const std::string& text) { return (value < 0 ? "−" : value > 0 ? "+" : "") + text; }

/// What a what-if changed. Times of runs vary: only what lies clear of 0 with all its range is a difference, where there are runs enough.
struct Change {
  static constexpr double kSure = 0.95;
  double percent, from, to, bytes, launches;
  bool isSure;
  explicit Change(const Json& change)
      : percent(numberOf(change, "time_percent")), from(numberOf(change, "time_percent_from")), to(numberOf(change, "time_percent_to")),
        bytes(numberOf(change, "bytes")), launches(numberOf(change, "launches")), isSure(!(numberOf(change, "time_percent_confidence") < kSure)) {}
  bool isSlower() const { return isSure && from > 0; }
  bool isFaster() const { return isSure && to < 0; }

  TableRow row() const {
    TableRow row;
    row.cells.resize(kReplayColumns);
    row.cells[kReplayWhat] = textCell(say(FUSEBOX_TEXT("Fusion", "change")));
    if (!std::isnan(percent)) row.cells[kReplayMedian] = {withSign(percent, fmt::format("{:.1f} %", std::abs(percent))), percent};
    if (!std::isnan(launches)) row.cells[kReplayLaunches] = {withSign(launches, fmt::format("{:.0f}", std::abs(launches))), launches};
    if (!std::isnan(bytes)) row.cells[kReplayBytes] = {withSign(bytes, formatBytes(std::abs(bytes))), bytes};
    row.tone = isSlower() ? 2 : isFaster() ? 1 : 0;
    return row;
  }

  std::string verdict() const {
    if (std::isnan(percent) || std::isnan(bytes)) return {};
    const double least = std::min(std::abs(from), std::abs(to)), most = std::max(std::abs(from), std::abs(to));
    const std::string time =
        isSlower()   ? say(FUSEBOX_TEXT("Fusion", "{:.1f} % slower ({:.1f} to {:.1f} %)"), std::abs(percent), least, most)
        : isFaster() ? say(FUSEBOX_TEXT("Fusion", "{:.1f} % faster ({:.1f} to {:.1f} %)"), std::abs(percent), least, most)
                     : say(FUSEBOX_TEXT("Fusion", "as fast within noise ({} to {} %)"), withSign(from, fmt::format("{:.1f}", std::abs(from))),
                           withSign(to, fmt::format("{:.1f}", std::abs(to))));
    const std::string traffic = bytes == 0  ? say(FUSEBOX_TEXT("Fusion", "the same memory traffic"))
                                : bytes > 0 ? say(FUSEBOX_TEXT("Fusion", "{} more memory traffic"), formatBytes(bytes))
                                            : say(FUSEBOX_TEXT("Fusion", "{} less memory traffic"), formatBytes(-bytes));
    return time + ", " + traffic;
  }
};

/// The size that varies most of a sweep's points, which its plot is over.
std::string variedSize(const Json& sweep) {
  std::map<std::string, std::set<double>> values;
  for (const Json& point : sweep) {
    const Json& sizes = partOf(point, "sizes");
    if (!sizes.is_object()) continue;
    for (const auto& [name, value] : sizes.items())
      if (value.is_number()) values[name].insert(value.get<double>());
  }
  const auto most = std::max_element(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  return most == values.end() ? std::string() : most->first;
}

void readSweep(const Json& sweep, ReplayReport& report) {
  const std::string name = variedSize(sweep);
  for (const Json& point : sweep) {
    if (const std::string why = textField(point, "left_out"); !why.empty()) {
      report.outcomes.push_back(say(FUSEBOX_TEXT("Fusion", "left out: {}"), why));
      continue;
    }
    report.rows.push_back(rowOf(point, partOf(point, "against_eager")));
    const Json& times = partOf(point, "times_ms");
    SizeTime time{name, textField(point, "label"), numberOf(partOf(point, "sizes"), name.c_str()), numberOf(times, "median") * 1e6, numberOf(times, "min") * 1e6,
                  numberOf(times, "max") * 1e6, report.rows.back().tone == 3};
    if (!std::isnan(time.size) && !std::isnan(time.median)) report.sizes.push_back(std::move(time));
  }
  if (report.sizes.empty()) return;
  const auto [fast, slow] = std::minmax_element(report.sizes.begin(), report.sizes.end(), [](const auto& a, const auto& b) { return a.median < b.median; });
  report.verdict = say(FUSEBOX_TEXT("Fusion", "{} sizes: from {} ({}) to {} ({})"), report.sizes.size(), formatDuration(fast->median), fast->label,
                       formatDuration(slow->median), slow->label);
}

ValueErrors valueErrors(const Json& row) {
  ValueErrors v;
  v.name = textField(row, "name"), v.op = textField(row, "op"), v.dtype = textField(row, "dtype"), v.note = textField(row, "note");
  v.compiled = numberOf(row, "compiled_rel"), v.eager = numberOf(row, "eager_rel"), v.ulp = numberOf(row, "difference_ulp");
  v.alone = numberOf(row, "local_abs") / numberOf(row, "magnitude");
  const auto whole = [&row](const char* key) {
    const double number = numberOf(row, key);
    return number > 0 && number < 1e15 ? static_cast<int64_t>(number) : 0;
  };
  v.output = whole("output"), v.mismatches = whole("mismatches");
  const Json& divergent = partOf(row, "is_divergent");
  v.isDivergent = divergent.is_boolean() && divergent.get<bool>();
  return v;
}

}  // namespace

std::vector<std::string> sizeWords(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = text.find_first_not_of(' '); at != std::string::npos;) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.push_back("--size=" + text.substr(at, end - at));
    at = text.find_first_not_of(' ', end);
  }
  return words;
}

Result<ReplayReport> readReplayReport(const std::string& json) {
  const Json all = parseBounded(json);
  const bool isSweep = all.is_object() && partOf(all, "sweep").is_array();
  if (!all.is_object() || (!isSweep && !partOf(all, "runs").is_array()))
    return fail(ErrorCode::Corrupt, "the engine's report cannot be read");
  ReplayReport report;
  report.session = textField(all, "session");
  if (isSweep) {
    readSweep(partOf(all, "sweep"), report);
    return report;
  }
  for (const Json& run : partOf(all, "runs")) {
    report.rows.push_back(rowOf(run, partOf(partOf(all, "against_eager"), textField(run, "label").c_str())));
    if (!partOf(run, "decisions").is_array()) continue;
    for (const Json& decision : partOf(run, "decisions"))
      report.outcomes.push_back(
          say(FUSEBOX_TEXT("Fusion", "{} with {}: {}"), textField(decision, "a"), textField(decision, "b"), textField(decision, "reason")));
  }
  if (const Json& change = partOf(all, "change"); change.is_object()) {
    const Change made(change);
    report.rows.push_back(made.row());
    report.verdict = made.verdict();
  } else if (!report.rows.empty()) {
    report.verdict = say(FUSEBOX_TEXT("Fusion", "{} a run"), report.rows.front().cells[kReplayMedian].text);
  }
  return report;
}

Result<NumericsReport> readNumericsReport(const std::string& json) {
  const Json all = parseBounded(json);
  if (!all.is_object() || !partOf(all, "rows").is_array())
    return fail(ErrorCode::Corrupt, "the engine's report cannot be read");
  NumericsReport report;
  report.session = textField(all, "session");
  const double divergent = numberOf(all, "divergent");
  report.divergent = std::isnan(divergent) ? 0 : static_cast<int64_t>(divergent);
  for (const Json& row : partOf(all, "rows")) report.rows.push_back(numericsRow(valueErrors(row)));
  if (const Json& first = partOf(all, "first_divergence"); first.is_object()) {
    const Json& bisect = partOf(all, "bisect");
    report.verdict = say(FUSEBOX_TEXT("Fusion", "first divergence: {} ({})"), textField(first, "name"), textField(first, "op"));
    if (bisect.is_object())
      report.verdict += say(FUSEBOX_TEXT("Fusion", "; cause: {}: {}"), textField(bisect, "cause"), textField(bisect, "detail"));
  } else {
    report.verdict =
        say(FUSEBOX_TEXT("Fusion", "{} values compared with float64: compiled is as exact as eager"), partOf(all, "rows").size());
  }
  return report;
}

}  // namespace fusebox::views
