#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "engine/debug/checkpoint.h"
#include "engine/support/result.h"

namespace fusebox::debug {

enum class When : uint8_t { At, Before, After };

/// What a checkpoint compares with breakpoints and steps: cheap to make, borrowed until the call returns.
struct Event {
  Kind kind = Kind::Pass;
  When when = When::At;
  const char* file = nullptr;  ///< of the user's program; null: none
  int line = 0;
  std::span<const std::string> names;  ///< what a breakpoint by name may name: function, pass, kernel, nodes, operators
  /// Line: frames of the program below, from the thread's bottom. Pass and the like: nesting, 0 for a stage of the
  /// pipeline.
  int depth = 0;
  const void* frame = nullptr;  ///< Line: which frame
  bool isEntry = false;         ///< Line: the frame's first instruction
  bool isNewLine = true;        ///< Line: the frame has come to it from another line
};

/// What the stopped place knows; made on the stack of the thread that stops, asked on that thread.
class Site {
 public:
  virtual ~Site() = default;
  /// One line for people: "about to fuse add_1 with relu_2".
  virtual std::string title() = 0;
  /// More fields of the stop's message. May set `file`, `line`, `function`.
  virtual nlohmann::json detail();
  /// Answers a question by name (locals, stack, frames, guards, graph, code, ir, fusions, kernel, arguments). NotFound:
  /// this place knows no such thing.
  virtual Result<nlohmann::json> answer(const std::string& question);
  /// Names of the questions that answer() knows, in the order in which a reader wants them.
  virtual std::span<const std::string_view> questions() const { return {}; }
  /// Runs `block`, which may take for ever, letting go of what other threads need meanwhile (the GIL).
  virtual void wait(const std::function<void()>& block) { block(); }
};

/// What the person wants of the place, beyond going on.
struct Verdict {
  bool stopped = false;
  bool skipFrame = false;  ///< while capturing: leave the frame to Python
  enum class Fusion : uint8_t { Open, Forbid, Force } fusion = Fusion::Open;  ///< at Kind::Fusion
};

/// Stops the thread here if a breakpoint, a step or a pause says so, and returns when it may go on. Call only behind
/// armed().
Verdict reach(const Event& event, Site& site);

/// A stage or pass with an intermediate form: question `ir` gives both texts and whether they differ.
class TextSite : public Site {
 public:
  using Text = std::function<std::string()>;
  /// `after` may be empty: not there yet or, where it is `done`, nothing that has a text (machine code).
  TextSite(std::string title, Text before, Text after = {}, bool done = false)
      : title_(std::move(title)), before_(std::move(before)), after_(std::move(after)), done_(done || after_) {}
  std::string title() override { return title_; }
  Result<nlohmann::json> answer(const std::string& question) override;
  std::span<const std::string_view> questions() const override;

 private:
  std::string title_;
  Text before_, after_;
  bool done_;
};

/// A pass, before or after it; `after` is empty where what it made has no text.
void reachPass(When when, const std::string& name, int level, const TextSite::Text& before,
               const TextSite::Text& after = {});
/// A failure of the compiler.
void reachError(const std::string& where, const std::string& what);

}  // namespace fusebox::debug
