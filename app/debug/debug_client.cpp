#include "app/debug/debug_client.h"

namespace fusebox::debugging {
namespace {

bool resumes(const nlohmann::json& message) {
  const auto what = message.value("do", "");
  return what == "continue" || what == "step" || what == "skip";
}

}  // namespace

void DebugClient::request(Json message, Answer answer) {
  if (!isConnected()) {
    if (answer) answer(false, "no program is being debugged");
    return;
  }
  const int64_t id = nextId_++;
  message["id"] = id;
  pending_[id] = {std::move(answer), resumes(message)};
  if (!server_.send(message)) disconnected("the program does not take requests any more");
}

void DebugClient::receive() {
  auto messages = server_.receive();
  if (server_.isConnected() && !wasConnected_) {
    wasConnected_ = true;
    if (onConnected) onConnected();
  }
  try {
    if (messages)
      for (const Json& message : *messages) take(message);
  } catch (const Json::exception&) {
    return disconnected("the program said something that makes no sense");  // fields of other types than the protocol's
  }
  if (wasConnected_ && !server_.isConnected())
    disconnected(messages ? "the connection ended" : messages.error().text());
}

void DebugClient::take(const Json& message) {
  const auto type = message.find("type");
  if (type == message.end() || !type->is_string()) return;
  if (*type == "stopped") {
    stopped_ = true;
    stop_ = message;
    if (onStopped) onStopped(stop_);
  } else if (*type == "notice") {
    const auto text = message.find("text");
    if (onNotice && text != message.end() && text->is_string()) onNotice(text->get<std::string>());
  } else if (*type == "reply") {
    const auto id = message.find("id");
    const auto found =
        id != message.end() && id->is_number_integer() ? pending_.find(id->get<int64_t>()) : pending_.end();
    if (found == pending_.end()) return;
    const Pending pending = std::move(found->second);
    pending_.erase(found);
    const auto okField = message.find("ok");
    const bool ok = okField != message.end() && okField->is_boolean() && okField->get<bool>();
    if (ok && pending.resumes) {
      stopped_ = false;
      stop_ = Json();
      if (onResumed) onResumed();
    }
    if (pending.answer)
      pending.answer(ok, ok ? message.value("result", Json()) : message.value("error", Json("no reason was given")));
  }
}

void DebugClient::detach() {
  if (isConnected()) server_.send({{"do", "detach"}, {"id", nextId_++}});
  disconnected("detached");
}

void DebugClient::disconnected(const std::string& why) {
  server_.close();
  const bool was = std::exchange(wasConnected_, false);
  stopped_ = false;
  stop_ = Json();
  refuseAll(why);
  if (was && onDisconnected) onDisconnected(why);
}

void DebugClient::refuseAll(const std::string& why) {
  auto pending = std::move(pending_);
  pending_.clear();
  for (auto& [id, p] : pending)
    if (p.answer) p.answer(false, why);
}

}  // namespace fusebox::debugging
