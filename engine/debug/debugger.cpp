#include "engine/debug/debugger.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "engine/debug/stop_facts.h"
#include "engine/support/clock.h"
#include "engine/support/control_frame.h"
#include "engine/support/message_fields.h"

namespace fusebox::debug {

std::atomic<uint32_t> detail::armed{0};

namespace {

using control::textField;
using nlohmann::json;

constexpr uint32_t kAllKinds = (1u << kKinds) - 1;
constexpr int kHelloMs = 20'000;
constexpr size_t kMaxBreakpoints = 1000;
constexpr size_t kMaxRequests = 1000;

/// Checkpoints that answering a question passes (printing a value may compute) are none.
thread_local bool isServing = false;

const char* name(When when) { return when == When::Before ? "before" : when == When::After ? "after" : "at"; }

}  // namespace

Debugger& Debugger::instance() {
  static auto* debugger = new Debugger;  // threads may still be stopped when the process ends
  return *debugger;
}

Debugger::Debugger() {
  pthread_atfork([] { instance().socketMutex_.lock(); }, [] { instance().socketMutex_.unlock(); }, &Debugger::inChild);
}

/// A forked child has neither the reader nor the right to talk: the connection is the parent's.
void Debugger::inChild() {
  detail::armed.store(0, std::memory_order_relaxed);
  instance().attached_ = false;
  if (instance().socket_) instance().socket_->close();
  instance().socketMutex_.unlock();
}

std::shared_ptr<Socket> Debugger::connection() {
  std::lock_guard lock(socketMutex_);
  return socket_;
}

Result<void> Debugger::attach(const std::string& path, const std::string& token, Controls controls) {
  if (isAttached()) return fail(ErrorCode::InvalidArgument, "a debugger is attached already");
  auto socket = std::make_shared<Socket>();
  if (auto connected = socket->connect(path); !connected) return connected;
  const Json greeting{{"type", "hello"}, {"protocol", control::kProtocol}, {"pid", getpid()}, {"token", token}};
  if (!socket->write(control::encode(greeting)))
    return fail(ErrorCode::Io, "the debugger's end closed the control socket", path);
  control::MessageReader reader;
  std::vector<json> messages;
  while (messages.empty()) {
    const std::string bytes = socket->read(kHelloMs);
    auto made = reader.feed(bytes);
    if (bytes.empty() || !made)
      return fail(ErrorCode::Io, bytes.empty() ? "the debugger did not answer" : made.error().message, path);
    messages = std::move(*made);
  }
  const json& hello = messages.front();
  if (textField(hello, "type") != "hello" || hello.value("protocol", json(0)) != control::kProtocol)
    return fail(ErrorCode::TooNew, "the debugger speaks another version of the control protocol", path);
  {
    std::scoped_lock lock(mutex_, socketMutex_);
    socket_ = socket;
    controls_ = std::move(controls);
    attached_ = true;
    breakpoints_.clear();
  }
  for (const json& description : hello.value("breakpoints", json::array())) {
    if (auto added = addBreakpoint(description); !added) notice("breakpoint not set: " + added.error().text());
  }
  for (size_t i = 1; i < messages.size(); ++i) handle(messages[i]);
  std::thread([this, socket, reader = std::move(reader)]() mutable {
    try {
      for (;;) {
        const std::string bytes = socket->read();
        if (bytes.empty()) break;
        auto made = reader.feed(bytes);
        for (const json& message : made ? *made : std::vector<json>()) handle(message);
        if (!made) break;  // not the protocol: as if the window had died
      }
    } catch (...) {
      // The same for a message that could not be dealt with: the program goes on without its window.
    }
    detach(socket);
  }).detach();
  return {};
}

void Debugger::detach(const std::shared_ptr<Socket>& socket) {
  {
    std::lock_guard lock(mutex_);
    if (!attached_ || connection() != socket) return;
    attached_ = false;
    breakpoints_.clear();
    step_.reset();
    until_.reset();
    pause_ = false;
    requests_.clear();
    arm();
  }
  wake_.notify_all();
  socket->shutDown();
}

bool Debugger::isAttached() {
  std::lock_guard lock(mutex_);
  return attached_;
}

void Debugger::notice(const std::string& text) { send({{"type", "notice"}, {"text", text}}); }

bool Debugger::send(const Json& message) {
  std::string bytes = control::encode(message);
  if (bytes.size() > control::kMaxMessageBytes) {
    Json small{
        {"type", message.value("type", "notice")}, {"ok", false}, {"error", "the answer is too long for one message"}};
    if (message.contains("id")) small["id"] = message["id"];
    bytes = control::encode(small);
  }
  const auto socket = connection();
  std::lock_guard lock(sendMutex_);
  return socket && socket->isOpen() && socket->write(bytes);
}

void Debugger::reply(const Json& request, const Result<Json>& result) {
  Json message{{"type", "reply"}, {"id", request.value("id", Json())}, {"ok", result.has_value()}};
  if (result)
    message["result"] = *result;
  else
    message["error"] = result.error().text();
  if (!send(message)) detach();
}

Debugger::Json Debugger::status() const {
  Json j{{"stopped", stopped_}, {"stops", stops_}, {"breakpoints", Json::array()}};
  if (stopped_) j["stop"] = stopMessage_;
  for (const auto& [id, breakpoint] : breakpoints_) j["breakpoints"].push_back(toJson(breakpoint));
  if (controls_.fusionRules) j["fusion_rules"] = controls_.fusionRules();
  return j;
}

void Debugger::arm() {
  uint32_t kinds = 0;
  if (attached_) {
    for (const auto& [id, breakpoint] : breakpoints_)
      if (breakpoint.enabled) kinds |= bit(breakpoint.kind);
    if (step_) kinds |= step_->kinds();
    if (until_) kinds |= bit(*until_);
    if (pause_) kinds |= kAllKinds;
  }
  detail::armed.store(kinds, std::memory_order_relaxed);
}

void Debugger::handle(const Json& message) {
  const std::string what = textField(message, "do");
  if (what.empty()) return reply(message, fail(ErrorCode::InvalidArgument, "a request says what to \"do\""));
  if (what == "kill") {
    ::kill(getpid(), SIGKILL);  // works whatever the program's threads are doing
    return;
  }
  if (what == "detach") {
    reply(message, Json::object());
    return detach();
  }
  if (what == "pause" || what == "status" || what.rfind("break.", 0) == 0) return reply(message, change(what, message));
  {
    std::lock_guard lock(mutex_);
    if (stopped_ && requests_.size() < kMaxRequests) {
      requests_.push_back(message);
      wake_.notify_all();
      return;
    }
  }
  reply(message, fail(ErrorCode::InvalidArgument, "the program is not stopped: pause it, or set a breakpoint"));
}

Result<Debugger::Json> Debugger::addBreakpoint(const Json& request) {
  if (!request.is_object()) return fail(ErrorCode::InvalidArgument, "a breakpoint is described by an object");
  auto made = breakpointFrom(request);
  if (!made) return tl::unexpected(made.error());
  std::lock_guard lock(mutex_);
  if (breakpoints_.size() >= kMaxBreakpoints) return fail(ErrorCode::InvalidArgument, "there are too many breakpoints");
  made->id = nextBreakpoint_++;
  Json described = toJson(*made);
  breakpoints_.emplace(made->id, std::move(*made));
  arm();
  return described;
}

/// What can be done whether the program is stopped or not.
Result<Debugger::Json> Debugger::change(const std::string& what, const Json& request) {
  if (what == "break.add") return addBreakpoint(request);
  std::lock_guard lock(mutex_);
  if (what == "pause") {
    pause_ = !stopped_;
    arm();
    return Json{{"stopped", stopped_}};
  }
  if (what == "status" || what == "break.list") return status();
  const auto number = request.find("breakpoint");
  const auto found = number != request.end() && number->is_number_integer() ? breakpoints_.find(number->get<int64_t>())
                                                                            : breakpoints_.end();
  if (found == breakpoints_.end()) return fail(ErrorCode::NotFound, "there is no such breakpoint");
  Json described = toJson(found->second);
  if (what == "break.remove") {
    breakpoints_.erase(found);
  } else if (what == "break.enable") {
    const auto on = request.find("enabled");
    found->second.enabled = on == request.end() || !on->is_boolean() || on->get<bool>();
    described = toJson(found->second);
  } else if (what == "break.ignore") {
    const auto count = request.find("count");
    if (count == request.end() || !count->is_number_integer() || count->get<int64_t>() < 0)
      return fail(ErrorCode::InvalidArgument, "how many hits shall pass? A \"count\" of 0 or more");
    found->second.ignore = count->get<int64_t>();
    described = toJson(found->second);
  } else {
    return fail(ErrorCode::InvalidArgument, "\"" + what + "\" is not understood");
  }
  arm();
  return described;
}

std::optional<Debugger::Reason> Debugger::passes(int64_t id) {
  const auto found = breakpoints_.find(id);
  if (found == breakpoints_.end()) return std::nullopt;
  if (found->second.ignore == 0) return Reason{"breakpoint", id};
  --found->second.ignore;
  ++found->second.hits;
  return std::nullopt;
}

std::optional<Debugger::Reason> Debugger::matches(const Event& event, Site& site) {
  std::vector<std::pair<int64_t, std::shared_ptr<const Condition>>> conditional;
  {
    std::lock_guard lock(mutex_);
    if (!attached_) return std::nullopt;
    if (pause_) return Reason{"pause"};
    for (auto& [id, breakpoint] : breakpoints_) {
      if (!breakpoint.matches(event)) continue;
      if (breakpoint.condition) conditional.emplace_back(id, breakpoint.condition);
      else if (auto reason = passes(id)) return reason;
    }
    if (until_ == event.kind) return Reason{"until"};
    if (step_ && step_->endsAt(event, std::this_thread::get_id())) return Reason{"step"};
  }
  if (conditional.empty()) return std::nullopt;
  // Without the lock: the place may have to print values.
  const bool wasServing = std::exchange(isServing, true);
  StopFacts facts(event, site);
  std::optional<Reason> reason;
  for (const auto& [id, condition] : conditional) {
    Result<bool> holds = [&]() -> Result<bool> {
      try {
        return condition->holds([&](const std::string& name) { return facts(name); });
      } catch (const std::exception& error) {
        return fail(ErrorCode::Internal, "what it names cannot be told", error.what());
      }
    }();
    if (holds && !*holds) continue;
    std::lock_guard lock(mutex_);
    reason = passes(id);
    if (reason && !holds) reason->trouble = holds.error().message;
    if (reason) break;
  }
  isServing = wasServing;
  return reason;
}

Verdict Debugger::reach(const Event& event, Site& site) {
  Verdict verdict;
  if (isServing || !matches(event, site)) return verdict;
  site.wait([&] { turn_.lock(); });
  struct Turn {
    std::mutex& mutex;
    ~Turn() {
      isServing = false;
      mutex.unlock();
    }
  } turn{turn_};
  isServing = true;
  // Another thread may have been stopped meanwhile, and the person may want something else since.
  if (const auto reason = matches(event, site)) {
    verdict.stopped = true;
    serve(event, site, *reason, verdict);
  }
  return verdict;
}

void Debugger::serve(const Event& event, Site& site, const Reason& reason, Verdict& verdict) {
  Json message = site.detail();
  message["type"] = "stopped";
  message["kind"] = debug::name(event.kind);
  message["when"] = name(event.when);
  message["reason"] = reason.why;
  message["title"] = control::clipped(site.title(), 4096);
  if (!reason.trouble.empty()) message["condition_trouble"] = reason.trouble;
  if (event.file && !message.contains("file")) {
    message["file"] = event.file;
    message["line"] = event.line;
  }
  Json names = Json::array();
  for (size_t i = 0; i < event.names.size() && i < 64; ++i) names.push_back(event.names[i]);
  message["names"] = std::move(names);
  Json questions = Json::array();
  for (const auto question : site.questions()) questions.push_back(question);
  message["questions"] = std::move(questions);
  message["time_ns"] = nowNs();
  {
    std::lock_guard lock(mutex_);
    if (!attached_) return;
    if (reason.breakpoint) {
      message["breakpoint"] = reason.breakpoint;
      if (auto found = breakpoints_.find(reason.breakpoint); found != breakpoints_.end()) {
        ++found->second.hits;
        if (found->second.once) breakpoints_.erase(found);
      }
    }
    message["stop"] = ++stops_;
    step_.reset();
    until_.reset();
    pause_ = false;
    stopped_ = true;
    stopMessage_ = message;
    arm();
  }
  bool talks = true;
  site.wait([&] { talks = send(message); });
  if (!talks) detach();
  for (bool done = false; !done;) {
    Json request;
    site.wait([&] {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return !requests_.empty() || !attached_; });
      if (attached_) {
        request = std::move(requests_.front());
        requests_.pop_front();
      }
    });
    done = request.is_null() || carryOut(request, event, site, verdict);
  }
  std::deque<Json> late;
  {
    std::lock_guard lock(mutex_);
    stopped_ = false;
    late.swap(requests_);
  }
  for (const Json& request : late) reply(request, fail(ErrorCode::InvalidArgument, "the program has gone on"));
}

bool Debugger::carryOut(const Json& request, const Event& event, Site& site, Verdict& verdict) {
  bool resumes = false;
  const std::string what = textField(request, "do");
  Result<Json> result = [&]() -> Result<Json> {
    try {
      return answer(what, request, event, site, verdict, &resumes);
    } catch (const std::exception& error) {
      return fail(ErrorCode::Internal, "this cannot be told", error.what());
    }
  }();
  if (resumes) {
    std::lock_guard lock(mutex_);
    stopped_ = false;  // before the reply, so that what comes after it finds a running program
    arm();
  }
  site.wait([&] { reply(request, result); });
  return resumes;
}

Result<Debugger::Json> Debugger::answer(const std::string& what, const Json& request, const Event& event, Site& site,
                                        Verdict& verdict, bool* resumes) {
  if (what == "ask") return site.answer(textField(request, "what"));
  if (what == "options") return controls_.options ? controls_.options() : Json::object();
  if (what == "set") {
    if (!controls_.set) return fail(ErrorCode::NotFound, "there are no options");
    if (auto done = controls_.set(textField(request, "name"), request.value("value", Json())); !done)
      return tl::unexpected(done.error());
    return controls_.options();
  }
  if (what == "fusion") return fusion(request, event, verdict);
  if (what == "continue") {
    const std::string until = textField(request, "until");
    const auto kind = kindNamed(until);
    if (!until.empty() && !kind)
      return fail(ErrorCode::InvalidArgument, "there are no stops of kind \"" + until.substr(0, 40) + "\"");
    std::lock_guard lock(mutex_);
    until_ = kind;
    *resumes = true;
    return Json::object();
  }
  if (what == "skip") {
    if (event.kind != Kind::Line && event.kind != Kind::Compile && event.kind != Kind::Recompile &&
        event.kind != Kind::GraphBreak)
      return fail(ErrorCode::InvalidArgument, "only a frame that is being captured can be skipped");
    verdict.skipFrame = true;
    *resumes = true;
    return Json::object();
  }
  if (what == "step") {
    static constexpr std::array<const char*, 3> kHow{"over", "into", "out"};
    const std::string how = textField(request, "how");
    const auto found = std::find(kHow.begin(), kHow.end(), how);
    if (found == kHow.end()) return fail(ErrorCode::InvalidArgument, "a step goes over, into or out");
    Step step;
    step.how = static_cast<Step::How>(found - kHow.begin());
    step.byInstruction = textField(request, "unit") == "instruction";
    step.kind = event.kind;
    step.depth = event.kind == Kind::Line ? event.depth : nesting(event);
    step.line = event.line;
    step.frame = event.frame;
    step.thread = std::this_thread::get_id();
    std::lock_guard lock(mutex_);
    step_ = step;
    *resumes = true;
    return Json::object();
  }
  return fail(ErrorCode::InvalidArgument, "this is not understood", what.substr(0, 40));
}

/// Forbids or forces: the fusion that is about to be decided, or (by a rule) a pair of operations wherever it appears.
Result<Debugger::Json> Debugger::fusion(const Json& request, const Event& event, Verdict& verdict) {
  const std::string verb = textField(request, "verb"), rule = textField(request, "rule");
  if (verb != "forbid" && verb != "force" && verb != "clear")
    return fail(ErrorCode::InvalidArgument, "a fusion can be forbidden or forced, or its rule cleared");
  std::string named = rule;
  if (rule.empty()) {
    if (verb == "clear") verdict.fusion = Verdict::Fusion::Open;
    if (event.kind != Kind::Fusion || event.names.size() < 2) {
      if (verb != "clear")
        return fail(ErrorCode::InvalidArgument, "no fusion is about to be decided here: name two operations, A,B");
    } else {
      if (verb != "clear") verdict.fusion = verb == "forbid" ? Verdict::Fusion::Forbid : Verdict::Fusion::Force;
      named = event.names[0] + "," + event.names[1];
    }
  }
  if (controls_.fusionRule && !named.empty())
    if (auto done = controls_.fusionRule(verb, named); !done) return tl::unexpected(done.error());
  return Json{{"verb", verb}, {"rule", named}};
}

Verdict reach(const Event& event, Site& site) { return Debugger::instance().reach(event, site); }

}  // namespace fusebox::debug
