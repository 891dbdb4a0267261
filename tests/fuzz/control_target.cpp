#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "app/debug/command_words.h"
#include "app/debug/debug_client.h"
#include "app/debug/debug_text.h"
#include "app/window/debug_rows.h"
#include "engine/debug/debugger.h"
#include "engine/support/control_frame.h"
#include "tests/fuzz/mutation.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

constexpr int kPatienceMs = 50'000;  // a machine that is busy with others is no host that waits

/// What a host says and what a window says, a message a line.
constexpr const char* kFromHost = R"({"type":"stopped","stop":1,"kind":"compile","when":"at","reason":"breakpoint","breakpoint":1,"title":"compile of f","file":"/a/program.py","line":10,"names":["f"],"questions":["locals","stack","frames","code","guards","graph"],"time_ns":123456789}
{"type":"reply","id":1,"ok":true,"result":{"locals":[{"name":"x","value":"Float[4, 8]","source":"L['x']"},{"name":"k","value":"1","source":"L['k']"}],"function":"f"}}
{"type":"reply","id":2,"ok":true,"result":{"stack":[{"index":0,"value":"3","source":null}]}}
{"type":"reply","id":3,"ok":true,"result":{"frames":[{"function":"f","file":"/a/program.py","line":11,"instruction":"LOAD_FAST","offset":4}]}}
{"type":"reply","id":4,"ok":true,"result":{"function":"f","current":4,"instructions":[{"offset":0,"op":"RESUME","argument":"","line":10},{"offset":4,"op":"LOAD_FAST","argument":"x","line":11}]}}
{"type":"reply","id":5,"ok":true,"result":{"guards":[{"kind":"TENSOR_MATCH","source":"L['x']","expected":"Float[4, 8]","file":"/a/program.py","line":11}]}}
{"type":"reply","id":6,"ok":true,"result":{"before":"%a = mul(%x)\n%b = add(%a)\n","after":"%b = addcmul(%x)\n","pass":"decompose"}}
{"type":"reply","id":7,"ok":true,"result":{"fusions":[{"a":"mul","b":"add","kind":"vertical","bytes_saved":128,"score":1.5}]}}
{"type":"reply","id":8,"ok":false,"error":"there is no such question here"}
{"type":"stopped","stop":2,"kind":"fusion","when":"at","reason":"step","title":"fuse mul with add","names":["mul","add"],"a":"mul","b":"add","score":12,"questions":["fusions","ir"],"time_ns":123456999}
{"type":"notice","text":"the first kernel was compiled"}
)";
constexpr const char* kFromWindow = R"({"do":"break.add","id":1,"kind":"pass","name":"decompose","when":"before","once":true,"tag":"a"}
{"do":"break.add","id":2,"kind":"line","file":"program.py","line":12}
{"do":"break.list","id":3}
{"do":"break.enable","id":4,"breakpoint":1,"enabled":false}
{"do":"status","id":5}
{"do":"ask","id":6,"what":"locals:1"}
{"do":"options","id":7}
{"do":"set","id":8,"name":"fuse","value":false}
{"do":"fusion","id":9,"verb":"forbid","rule":"a,b"}
{"do":"break.remove","id":10,"breakpoint":1}
{"do":"pause","id":11}
{"do":"skip","id":12}
{"do":"step","id":13,"how":"over","unit":"instruction"}
{"do":"continue","id":14,"until":"recompile"}
)";

std::vector<fs::path> subjects(const fs::path&, const fs::path& scratch) {
  writeFile(scratch / "host.jsonl", kFromHost);
  writeFile(scratch / "window.jsonl", kFromWindow);
  return {scratch / "host.jsonl", scratch / "window.jsonl"};
}

/// Lines that are JSON go in whole frames, mutated further by who wrote them; others as they are, which breaks the stream.
std::string framed(const std::string& text) {
  std::string bytes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const json message = json::parse(line, nullptr, false);
    if (message.is_object()) {
      if (message.contains("do") && message["do"] == "kill") continue;  // it would do what it says
      bytes += control::encode(message);
    } else {
      for (size_t i = 0; i < 4; ++i) bytes += static_cast<char>(line.size() >> (8 * i));
      bytes += line;
    }
  }
  return bytes;
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

sockaddr_un addressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

void sendAll(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<size_t>(sent);
  }
}

/// Everything that shows a message of the host.
void show(const json& message) {
  (void)debugging::stopText(message);
  (void)debugging::breakpointText(message);
  for (const auto& word : debugging::commandWords()) (void)debugging::answerText(std::string(word.name), message);
  using namespace window;
  for (const auto rows : {localRows, stackRows, frameRows, guardRowsOf, fusionRows, argumentRows, optionRows}) (void)rows(message);
  int line = 0;
  (void)codeListing(message, &line);
  (void)debugging::diffLines(debugging::textField(message, "before"), debugging::textField(message, "after"));
}

/// The window's end hears `bytes` from a host.
std::string hearHost(const std::string& bytes) {
  debugging::DebugClient client;
  client.onStopped = [](const json& stop) { show(stop); };
  if (auto listening = client.server().listen(); !listening) return listening.error().text();
  Descriptor host{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto address = addressOf(client.server().path());
  if (::connect(host.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return "no connection";
  sendAll(host.fd, control::encode({{"type", "hello"}, {"protocol", control::kProtocol}, {"pid", getpid()},
                                    {"token", client.server().environment().at(control::kTokenVariable)}}));
  client.receive();
  for (int i = 0; i < 8; ++i)
    client.request({{"do", i % 2 ? "ask" : "step"}, {"what", "locals"}}, [](bool ok, const json& result) {
      if (ok) show(result);
    });
  std::thread writer([&] {
    sendAll(host.fd, bytes);
    ::shutdown(host.fd, SHUT_WR);
  });
  while (client.isConnected()) {
    pollfd fd{client.server().fd(), POLLIN, 0};
    if (::poll(&fd, 1, kPatienceMs) <= 0) break;
    client.receive();
  }
  const bool ended = !client.isConnected();
  client.server().close();
  writer.join();
  return ended ? "" : "the window still waits for a host that is gone";
}

class Place : public debug::Site {
 public:
  std::string title() override { return "here"; }
  Result<json> answer(const std::string& question) override { return question == "locals" ? Result<json>(json::object()) : Site::answer(question); }
};

/// The host's end hears `bytes` from a window, while one of its threads is stopped.
std::string hearWindow(const std::string& bytes, const fs::path& scratch) {
  auto& debugger = debug::Debugger::instance();
  const std::string path = (scratch / "socket").string();
  ::unlink(path.c_str());
  Descriptor listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto address = addressOf(path);
  if (::bind(listener.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(listener.fd, 1) != 0) return "no socket";
  std::thread program([&] {
    debug::Controls controls;
    controls.options = [] { return json{{"fuse", true}}; };
    controls.set = [](const std::string&, const json&) { return Result<void>(); };
    controls.fusionRule = [](const std::string&, const std::string&) { return Result<void>(); };
    (void)debugger.attach(path, "word", std::move(controls));  // garbage right behind the greeting: the program goes on without
    Place place;
    const std::vector<std::string> names{"a", "b"};
    for (const auto kind : {debug::Kind::Error, debug::Kind::Fusion, debug::Kind::Pass, debug::Kind::Error}) {
      debug::Event event;
      event.kind = kind;
      event.names = names;
      (void)debug::reach(event, place);
    }
  });
  Descriptor window{::accept(listener.fd, nullptr, nullptr)};
  sendAll(window.fd, control::encode({{"type", "hello"}, {"protocol", control::kProtocol}, {"breakpoints", {{{"kind", "error"}}, {{"kind", "fusion"}}}}}));
  std::thread writer([&] {
    sendAll(window.fd, bytes);
    ::shutdown(window.fd, SHUT_WR);
  });
  char answer[4096];
  while (::recv(window.fd, answer, sizeof answer, 0) > 0) {
  }
  writer.join();
  program.join();  // whoever hangs here is stopped for ever
  for (int i = 0; i < kPatienceMs && debugger.isAttached(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return debugger.isAttached() ? "the host still waits for a window that is gone" : "";
}

std::string read(const fs::path& file, const fs::path& scratch, Outcome& outcome) {
  outcome = Outcome::Read;
  const std::string bytes = framed(readFile(file));
  return file.filename() == "host.jsonl" ? hearHost(bytes) : hearWindow(bytes, scratch);
}

}  // namespace

const Target kControl{"control", subjects, read};

}  // namespace fusebox::fuzz
