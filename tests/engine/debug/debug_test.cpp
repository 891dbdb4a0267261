// The debugger without an engine: wire, breakpoints, steps, commands, and a host's end and a console's end in one process.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>
#include <array>
#include <atomic>
#include <thread>

#include "app/debug/command_words.h"
#include "app/debug/debug_client.h"
#include "app/debug/debug_text.h"
#include "app/debug/script_functions.h"
#include "engine/debug/breakpoint.h"
#include "engine/debug/debugger.h"
#include "engine/debug/stepping.h"
#include "engine/support/control_frame.h"
#include "engine/support/message_fields.h"

using namespace fusebox;
using nlohmann::json;

namespace {

debug::Event eventOf(debug::Kind kind, std::span<const std::string> names = {}, int depth = 0) {
  debug::Event event;
  event.kind = kind;
  event.names = names;
  event.depth = depth;
  return event;
}

class TestSite : public debug::Site {
 public:
  explicit TestSite(std::string title) : title_(std::move(title)) {}
  std::string title() override { return title_; }
  Result<json> answer(const std::string& question) override {
    if (question == "title") return json(title_);
    if (question == "long") return json(std::string(control::kMaxMessageBytes + 1, 'x'));
    return Site::answer(question);
  }

 private:
  std::string title_;
};

/// A console's end: pumps messages until something holds.
struct Console {
  debugging::DebugClient client;
  int stops = 0;
  Console() {
    client.onStopped = [this](const json&) { ++stops; };
  }
  bool pumpUntil(const std::function<bool()>& done) {
    for (int i = 0; i < 5000 && !done(); ++i) {
      pollfd fd{client.server().fd(), POLLIN, 0};
      if (poll(&fd, 1, 2) > 0) client.receive();
    }
    return done();
  }
  /// Sends a request and waits for its answer.
  std::pair<bool, json> ask(json request) {
    bool answered = false;
    std::pair<bool, json> result;
    client.request(std::move(request), [&](bool ok, const json& answer) {
      answered = true;
      result = {ok, answer};
    });
    pumpUntil([&] { return answered; });
    return result;
  }
};

std::string breakpointsOf(std::initializer_list<const char*> kinds) {
  json list = json::array();
  for (const char* kind : kinds) list.push_back({{"kind", kind}});
  return list.dump();
}

}  // namespace

class DebugTest : public QObject {
  Q_OBJECT

  /// A console that the process's debugger is attached to.
  static void attach(Console& console, const std::string& breakpoints) {
    console.client.server().setFirstBreakpoints(json::parse(breakpoints));
    QVERIFY(console.client.server().listen());
    const auto environment = console.client.server().environment();
    std::atomic<bool> attached{false};
    std::thread host([&] {
      attached = debug::Debugger::instance().attach(environment.at(control::kPathVariable), environment.at(control::kTokenVariable), {}).has_value();
    });
    QVERIFY(console.pumpUntil([&] { return console.client.isConnected(); }));
    host.join();
    QVERIFY(attached);
  }
  static void letGo(Console& console) {
    console.client.detach();
    for (int i = 0; i < 10'000 && debug::Debugger::instance().isAttached(); ++i) QThread::msleep(2);
    QVERIFY(!debug::Debugger::instance().isAttached());
    QVERIFY(!debug::armedAny(~0u));
  }

 private slots:
  void messagesAreCutAnywhere() {
    const std::string bytes = control::encode({{"a", 1}}) + control::encode({{"b", "ü"}}) + control::encode(json::object());
    control::MessageReader reader;
    std::vector<json> all;
    for (char byte : bytes) {
      auto some = reader.feed({&byte, 1});
      QVERIFY(some);
      all.insert(all.end(), some->begin(), some->end());
    }
    QCOMPARE(all.size(), size_t{3});
    QCOMPARE(all[1].at("b").get<std::string>(), std::string("ü"));
  }
  void badMessagesAreRefused_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::newRow("too long") << QByteArray("\xff\xff\xff\x7f{}", 6);
    QTest::newRow("no json") << QByteArray("\x03\0\0\0{a}", 7);
    QTest::newRow("a list") << QByteArray("\x02\0\0\0[]", 6);
    QTest::newRow("empty") << QByteArray("\0\0\0\0", 4);
    const QByteArray deep = "{\"a\":" + QByteArray(4000, '[') + QByteArray(4000, ']') + "}";
    QTest::newRow("deep") << QByteArray::fromStdString(std::string{static_cast<char>(deep.size() & 0xFF), static_cast<char>(deep.size() >> 8), 0, 0}) + deep;
  }
  void badMessagesAreRefused() {
    QFETCH(QByteArray, bytes);
    QVERIFY(!control::MessageReader().feed({bytes.data(), static_cast<size_t>(bytes.size())}));
  }

  void patternsAndFiles() {
    QVERIFY(debug::matchesPattern("add*", "add_relu"));
    QVERIFY(debug::matchesPattern("*relu", "add_relu"));
    QVERIFY(debug::matchesPattern("a*_*u", "add_relu"));
    QVERIFY(debug::matchesPattern("*", ""));
    QVERIFY(!debug::matchesPattern("add", "add_relu"));
    QVERIFY(!debug::matchesPattern("a*x", "add_relu"));
    QVERIFY(debug::isSameFile("/home/a/model.py", "model.py"));
    QVERIFY(debug::isSameFile("/home/a/model.py", "a/model.py"));
    QVERIFY(debug::isSameFile("/home/a/model.py", "./model.py"));
    QVERIFY(!debug::isSameFile("/home/a/my_model.py", "model.py"));
  }
  void breakpointsMatchWhatTheySay() {
    const std::vector<std::string> names{"decompose"};
    debug::Event pass = eventOf(debug::Kind::Pass, names);
    pass.when = debug::When::Before;
    const auto matches = [&](const json& description) {
      auto made = debug::breakpointFrom(description);
      return made && made->matches(pass);
    };
    QVERIFY(matches({{"kind", "pass"}}));
    QVERIFY(matches({{"kind", "pass"}, {"name", "decomp*"}, {"when", "before"}}));
    QVERIFY(!matches({{"kind", "pass"}, {"when", "after"}}));
    QVERIFY(!matches({{"kind", "pass"}, {"name", "lowering"}}));
    QVERIFY(!matches({{"kind", "pass"}, {"enabled", false}}));
    QVERIFY(!matches({{"kind", "fusion"}}));
    debug::Event line = eventOf(debug::Kind::Line);
    line.file = "/a/b.py";
    line.line = 7;
    const auto at = debug::breakpointFrom({{"kind", "line"}, {"file", "b.py"}, {"line", 7}});
    QVERIFY(at && at->matches(line));
    line.isNewLine = false;
    QVERIFY(!at->matches(line));
    for (const json& bad : {json::object(), json{{"kind", "nothing"}}, json{{"kind", "line"}}, json{{"kind", "line"}, {"line", 3}},
                            json{{"kind", "pass"}, {"when", "while"}}, json{{"kind", 5}}, json{{"kind", "pass"}, {"name", std::string(5000, 'x')}}})
      QVERIFY2(!debug::breakpointFrom(bad), bad.dump().substr(0, 60).c_str());
  }

  void stepsEndWhereTheyShould() {
    using How = debug::Step::How;
    int a = 0, b = 0;
    const auto me = std::this_thread::get_id();
    const auto ends = [&](How how, bool instructions, const void* frame, int depth, int line) {
      debug::Step step{how, instructions, debug::Kind::Line, 3, 10, &a, me};
      debug::Event event = eventOf(debug::Kind::Line, {}, depth);
      event.frame = frame;
      event.line = line;
      return step.endsAt(event, me);
    };
    QVERIFY(!ends(How::Over, false, &a, 3, 10));
    QVERIFY(ends(How::Over, true, &a, 3, 10));
    QVERIFY(ends(How::Over, false, &a, 3, 11));
    QVERIFY(!ends(How::Over, true, &b, 4, 1));
    QVERIFY(ends(How::Over, false, &b, 2, 1));
    QVERIFY(ends(How::Into, false, &b, 4, 1));
    QVERIFY(!ends(How::Into, false, &a, 3, 10));
    QVERIFY(!ends(How::Out, false, &a, 3, 11));
    QVERIFY(ends(How::Out, false, &b, 2, 1));
    debug::Step line{How::Over, false, debug::Kind::Line, 3, 10, &a, me};
    QVERIFY(line.endsAt(eventOf(debug::Kind::Pass, {}, 0), me));     // the frame is done: its stages
    QVERIFY(!line.endsAt(eventOf(debug::Kind::Pass, {}, 1), me));
    QVERIFY(line.endsAt(eventOf(debug::Kind::GraphBreak), me));
    QVERIFY(!line.endsAt(eventOf(debug::Kind::KernelLaunch), me));
    QVERIFY(!line.endsAt(eventOf(debug::Kind::GraphBreak), std::thread::id()));
    const auto fromPass = [&](How how, debug::Kind kind, int depth) {
      return debug::Step{how, false, debug::Kind::Pass, 1, 0, nullptr, me}.endsAt(eventOf(kind, {}, depth), me);
    };
    QVERIFY(fromPass(How::Over, debug::Kind::Pass, 1));
    QVERIFY(fromPass(How::Over, debug::Kind::Pass, 0));
    QVERIFY(!fromPass(How::Over, debug::Kind::Fusion, 0));
    QVERIFY(fromPass(How::Into, debug::Kind::Fusion, 0));
    QVERIFY(!fromPass(How::Out, debug::Kind::Pass, 1));
    QVERIFY(fromPass(How::Out, debug::Kind::Pass, 0));
  }

  void commandsBecomeRequests() {
    const auto request = [](const char* line) {
      auto parsed = debugging::parseCommand(line);
      return parsed ? parsed->request : json(parsed.error().message);
    };
    QCOMPARE(request("b model.py:12"), (json{{"do", "break.add"}, {"kind", "line"}, {"file", "model.py"}, {"line", 12}}));
    QCOMPARE(request("break forward"), (json{{"do", "break.add"}, {"kind", "line"}, {"name", "forward"}}));
    QCOMPARE(request("tb pass decompose after"), (json{{"do", "break.add"}, {"kind", "pass"}, {"name", "decompose"}, {"when", "after"}, {"once", true}}));
    QCOMPARE(request("until break"), (json{{"do", "continue"}, {"until", "graph_break"}}));
    QCOMPARE(request("n"), (json{{"do", "step"}, {"how", "over"}}));
    QCOMPARE(request("stepi"), (json{{"do", "step"}, {"how", "into"}, {"unit", "instruction"}}));
    QCOMPARE(request("set fuse False"), (json{{"do", "set"}, {"name", "fuse"}, {"value", false}}));
    QCOMPARE(request("break model.py:3 ignore 2"), (json{{"do", "break.add"}, {"kind", "line"}, {"file", "model.py"}, {"line", 3}, {"ignore", 2}}));
    QCOMPARE(request("break ignore"), (json{{"do", "break.add"}, {"kind", "line"}, {"name", "ignore"}}));
    QCOMPARE(request("ignore 4 20"), (json{{"do", "break.ignore"}, {"breakpoint", 4}, {"count", 20}}));
    QCOMPARE(request("break model.py:3 ignore 2 if x.shape[0] > 3 and s == \"a b\""),
             (json{{"do", "break.add"}, {"kind", "line"}, {"file", "model.py"}, {"line", 3}, {"ignore", 2}, {"if", "x.shape[0] > 3 and s == \"a b\""}}));
    QCOMPARE(request("break 'what if it.py:2' if n")["file"], json("what if it.py"));
    QVERIFY(request("break forward if n >").get<std::string>().starts_with("the condition: "));
    QCOMPARE(request("tensor self.weight"), (json{{"do", "ask"}, {"what", "tensor:self.weight"}}));
    QCOMPARE(request("content self"), (json{{"do", "ask"}, {"what", "content:self"}}));
    QCOMPARE(request("rules"), (json{{"do", "status"}}));
    QCOMPARE(request("forbid a, b"), (json{{"do", "fusion"}, {"verb", "forbid"}, {"rule", "a,b"}}));
    QCOMPARE(request("locals 2"), (json{{"do", "ask"}, {"what", "locals:2"}}));
    const json spaced{{"do", "break.add"}, {"kind", "line"}, {"file", "mein skript.py"}, {"line", 9}};
    for (const char* line : {"break mein skript.py:9", "b  \"mein skript.py:9\"", "break 'mein skript.py':9 "})
      QCOMPARE(request(line), spaced);
    QCOMPARE(request("break it's mine.py:2")["file"], json("it's mine.py"));
    QCOMPARE(request("break fusion \"a b\"")["name"], json("a b"));
    for (const char* bad : {"", "   ", "break mein skript.py", "frobnicate", "until", "delete x", "locals -1", "break", "break a b c", "break x:y", "set fuse", "allow"})
      QVERIFY2(!debugging::parseCommand(bad), bad);
    for (const auto& word : debugging::commandWords()) QVERIFY(debugging::findCommand(word.name) == &word);
  }

  /// A stop at a break says what the program called.
  void stopsSpeakOfTheProgram() {
    const nlohmann::json stop{{"kind", "graph_break"}, {"title", "graph break: the number that aten::_local_scalar_dense reads from a tensor is needed"}, {"stop", 3}, {"reason", "step"}};
    QCOMPARE(debugging::stopTitle(stop), std::string("graph break: the number that Tensor.item() reads from a tensor is needed"));
    QVERIFY(debugging::stopText(stop).find("Tensor.item()") != std::string::npos);
    QCOMPARE(debugging::stopTitle({{"kind", "pass"}, {"title", "before pass decompose"}}), std::string("before pass decompose"));
  }

  /// A breakpoint on a function that the script does not define is doubted as soon as it is set.
  void functionsAreLookedForInTheScript() {
    const std::string text = "import torch\nclass Model:\n    def forward(self, x):\n        return x\n\nasync  def  later ():\n  pass\n# def commented(): pass\ndefault = 3\n";
    for (const char* there : {"forward", "Model.forward", "later", "for*", "*ward", "*"}) QVERIFY2(debugging::definesFunction(text, there), there);
    for (const char* none : {"forwards", "commented", "ault", "banana", "b*", "Other.forward", "Model"}) QVERIFY2(!debugging::definesFunction(text, none), none);
    // Strings define nothing, brackets and lines that go on hide nothing; a class ends where its indentation does.
    const std::string nested = "\"\"\"Says:\ndef spoken(): pass\n\"\"\"\nclass Net(\n    torch.nn.Module):\n  class Inner:\n    def deep(self): pass\n  s = 'def quoted(): \\' #'\n"
                               "  # a note\n  def forward(self,\n              x={'def': 1}): \\\n    return x\n  @staticmethod\n  def help(): pass\ndef outer():\n\tdef inner(): pass\n\treturn inner\n"
                               "if True:\n    def last(): pass\n";
    const std::vector<std::string> found{"Net.Inner.deep", "Net.forward", "Net.help", "outer", "outer.<locals>.inner", "last"};
    QCOMPARE(debugging::functionsIn(nested), found);
    using Names = std::vector<std::string>;
    QCOMPARE(debugging::nearestFunctions(found, "forwrad"), Names{"Net.forward"});
    QCOMPARE(debugging::nearestFunctions(found, "Nett.forward"), Names{"Net.forward"});
    QCOMPARE(debugging::nearestFunctions(found, "banana"), Names{});
    QVERIFY(debugging::functionsIn("def \"\"\"\n\\").empty());
    QTemporaryDir folder;
    const std::string script = folder.filePath("train.py").toStdString();
    QFile file(QString::fromStdString(script));
    QVERIFY(file.open(QFile::WriteOnly) && file.write(text.c_str()) > 0);
    file.close();
    const auto doubt = [&](const char* typed, const std::string& path) { return debugging::functionDoubt(debugging::parseCommand(std::string("break ") + typed)->request, path); };
    QCOMPARE(doubt("banana", script), std::string("train.py has no function banana: it stops only if another file has one"));
    QCOMPARE(doubt("Other.forward", script), std::string("train.py has no function Other.forward (nearest: Model.forward): it stops only if another file has one"));
    QVERIFY(doubt("forward", script).empty() && doubt("forward if x.shape[0] > 3", script).empty());
    QVERIFY(doubt("graph_break", script).empty() && doubt("train.py:3", script).empty() && doubt("pass decompose", script).empty());
    QVERIFY(doubt("banana", "").empty() && doubt("banana", script + ".missing").empty());
  }

  void placesWithoutALineAreNotWritten() {
    const json guards{{"count", 3},
                      {"guards", {{{"kind", "GLOBAL_STATE"}, {"expected", "as captured"}},
                                  {{"kind", "TYPE_MATCH"}, {"source", "L['g']"}, {"expected", "type"}, {"file", "/a/gen.py"}, {"line", -1}},
                                  {{"kind", "TENSOR_MATCH"}, {"source", "L['x']"}, {"expected", "Float"}, {"file", "/a/gen.py"}, {"line", 7}}}}};
    const std::string text = debugging::answerText("guards", guards);
    QVERIFY2(text.find(":0") == std::string::npos && text.find(":-1") == std::string::npos, text.c_str());
    QVERIFY2(text.find("gen.py:7") != std::string::npos, text.c_str());
    QCOMPARE(debugging::stopText({{"stop", 1}, {"reason", "step"}, {"title", "t"}, {"file", "/a/gen.py"}, {"line", -1}}),
             std::string("stop 1 (step): t\n  at /a/gen.py\n"));
  }

  void differencesAreFewest() {
    const auto text = [](const std::string& a, const std::string& b) {
      std::string marks;
      for (const auto& line : debugging::diffLines(a, b)) marks += std::string(1, line.mark) + line.text;
      return QString::fromStdString(marks);
    };
    QCOMPARE(text("a\nb\nc\n", "a\nx\nc\n"), QString(" a-b+x c"));
    QCOMPARE(text("a\nb\n", "a\nb\n"), QString(" a b"));
    QCOMPARE(text("", "a\n"), QString("+a"));
    QCOMPARE(text("a\nb\nc\nd\n", "b\nd\ne\n"), QString("-a b-c d+e"));
  }

  void aThreadStopsAnswersAndGoesOn() {
    Console console;
    attach(console, breakpointsOf({"error"}));
    QVERIFY(debug::armed(debug::Kind::Error));
    QVERIFY(!debug::armed(debug::Kind::Line));
    std::atomic<bool> passed{false};
    std::thread program([&] {
      TestSite site("here");
      debug::reach(eventOf(debug::Kind::Error), site);
      passed = true;
    });
    QVERIFY(console.pumpUntil([&] { return console.client.isStopped(); }));
    QCOMPARE(console.client.stop().at("title").get<std::string>(), std::string("here"));
    QVERIFY(console.ask({{"do", "ask"}, {"what", "title"}}) == std::pair(true, json("here")));
    QVERIFY(!console.ask({{"do", "ask"}, {"what", "locals"}}).first);
    QVERIFY(!console.ask({{"do", "ask"}, {"what", "long"}}).first);
    QVERIFY(!console.ask({{"do", "skip"}}).first);
    QVERIFY(!console.ask({{"do", "step"}, {"how", "sideways"}}).first);
    QVERIFY(!passed);
    QVERIFY(console.ask({{"do", "continue"}}).first);
    program.join();
    QVERIFY(!console.ask({{"do", "continue"}}).first);  // it runs
    letGo(console);
  }

  void hitsCanBeLetPass() {
    Console console;
    attach(console, R"([{"kind": "error", "ignore": 2}])");
    std::atomic<int> passed{0};
    std::thread program([&] {
      for (int i = 0; i < 4; ++i) {
        TestSite site("again");
        debug::reach(eventOf(debug::Kind::Error), site);
        ++passed;
      }
    });
    QVERIFY(console.pumpUntil([&] { return console.client.isStopped(); }));
    QCOMPARE(passed.load(), 2);
    auto listed = console.ask({{"do", "break.list"}});
    QCOMPARE(listed.second.at("breakpoints").at(0).at("hits").get<int>(), 3);
    QVERIFY(console.ask({{"do", "break.ignore"}, {"breakpoint", listed.second.at("breakpoints").at(0).at("breakpoint")}, {"count", 9}}).first);
    QVERIFY(!console.ask({{"do", "break.ignore"}, {"breakpoint", 1}, {"count", -1}}).first);
    QVERIFY(console.ask({{"do", "continue"}}).first);
    program.join();
    QCOMPARE(console.stops, 1);
    letGo(console);
  }

  /// Of five compiles with n from 0 to 4, those that the condition names stop; hits count what held, and so does ignore.
  void conditionsAreJudgedAtThePlace() {
    struct SizeSite : TestSite {
      explicit SizeSite(int n) : TestSite("n"), n(n) {}
      Result<json> answer(const std::string& question) override {
        ++asked;
        if (question == "locals") return json{{{"name", "n"}, {"value", std::to_string(n)}, {"type", "int"}}, {{"name", "x"}, {"value", "Float[…]"}, {"dtype", "Float"}, {"sizes", {n, 8}}}};
        return TestSite::answer(question);
      }
      std::span<const std::string_view> questions() const override {
        static constexpr std::array<std::string_view, 1> kQuestions{"locals"};
        return kQuestions;
      }
      int n, asked = 0;
    };
    const auto stopsWith = [](const json& breakpoint, std::vector<std::string>* troubles) {
      Console console;
      attach(console, json::array({breakpoint}).dump());
      std::atomic<int> done{0}, asked{0};
      std::thread program([&] {
        for (int n = 0; n < 5; ++n) {
          SizeSite site(n);
          debug::reach(eventOf(debug::Kind::Compile), site);
          asked += site.asked;
          ++done;
        }
      });
      std::vector<int> stops;
      while (done < 5) {
        console.pumpUntil([&] { return console.client.isStopped() || done == 5; });
        if (!console.client.isStopped()) continue;
        stops.push_back(done);
        troubles->push_back(control::textField(console.client.stop(), "condition_trouble"));
        console.ask({{"do", "continue"}});
      }
      program.join();
      const int64_t hits = console.ask({{"do", "status"}}).second["breakpoints"][0]["hits"].get<int64_t>();
      letGo(console);
      stops.push_back(static_cast<int>(hits));
      return stops;
    };
    std::vector<std::string> troubles;
    QCOMPARE(stopsWith({{"kind", "compile"}, {"if", "n % 2 == 1"}}, &troubles), (std::vector<int>{1, 3, 2}));
    QCOMPARE(stopsWith({{"kind", "compile"}, {"if", "x.shape[0] >= 2 and x.dtype == 'float32'"}, {"ignore", 1}}, &troubles), (std::vector<int>{3, 4, 3}));
    QCOMPARE(stopsWith({{"kind", "compile"}, {"if", "kind == 'line'"}}, &troubles), (std::vector<int>{0}));
    QVERIFY(std::all_of(troubles.begin(), troubles.end(), [](const std::string& t) { return t.empty(); }));
    // What cannot be judged stops, and says why.
    troubles.clear();
    QCOMPARE(stopsWith({{"kind", "compile"}, {"if", "m > 1"}}, &troubles), (std::vector<int>{0, 1, 2, 3, 4, 5}));
    QVERIFY2(troubles[0].find("\"m\"") != std::string::npos, troubles[0].c_str());
  }
  void oneThreadAtATime() {
    Console console;
    attach(console, breakpointsOf({"error"}));
    std::atomic<int> passed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        TestSite site("one of four");
        debug::reach(eventOf(debug::Kind::Error), site);
        ++passed;
      });
    for (int i = 0; i < 4; ++i) {
      QVERIFY(console.pumpUntil([&] { return console.client.isStopped() && console.stops == i + 1; }));
      QCOMPARE(passed.load() <= i, true);
      QVERIFY(console.ask({{"do", "continue"}}).first);
    }
    for (auto& thread : threads) thread.join();
    letGo(console);
  }

  void detachingFreesEveryThread() {
    Console console;
    attach(console, breakpointsOf({"error"}));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([] {
        TestSite site("waits");
        debug::reach(eventOf(debug::Kind::Error), site);
      });
    QVERIFY(console.pumpUntil([&] { return console.client.isStopped(); }));
    letGo(console);
    for (auto& thread : threads) thread.join();
  }

  void fusionsAreDecidedByTheirStop() {
    Console console;
    attach(console, breakpointsOf({"fusion"}));
    const std::vector<std::string> names{"a", "b"};
    debug::Verdict verdict;
    std::thread program([&] {
      TestSite site("fusion");
      verdict = debug::reach(eventOf(debug::Kind::Fusion, names), site);
    });
    QVERIFY(console.pumpUntil([&] { return console.client.isStopped(); }));
    const auto [ok, answer] = console.ask({{"do", "fusion"}, {"verb", "forbid"}});
    QVERIFY(ok);
    QCOMPARE(answer.at("rule").get<std::string>(), std::string("a,b"));
    QVERIFY(console.ask({{"do", "continue"}}).first);
    program.join();
    QVERIFY(verdict.fusion == debug::Verdict::Fusion::Forbid);
    letGo(console);
  }

  void strangersAreTurnedAway() {
    Console console;
    QVERIFY(console.client.server().listen());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    qstrncpy(address.sun_path, console.client.server().path().c_str(), sizeof address.sun_path);
    for (const std::string& words : {control::encode({{"type", "hello"}, {"protocol", 1}, {"token", "guess"}}), std::string("\xff\xff\xff\xff"), std::string()}) {
      const int stranger = ::socket(AF_UNIX, SOCK_STREAM, 0);
      QCOMPARE(::connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
      QCOMPARE(::send(stranger, words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
      if (words.empty()) ::shutdown(stranger, SHUT_RDWR);
      console.pumpUntil([n = 0]() mutable { return ++n > 10; });
      QVERIFY(!console.client.isConnected());
      ::close(stranger);
      console.pumpUntil([n = 0]() mutable { return ++n > 5; });
    }
    // Two that say nothing do not keep the program out.
    const int silent[] = {::socket(AF_UNIX, SOCK_STREAM, 0), ::socket(AF_UNIX, SOCK_STREAM, 0)};
    for (const int stranger : silent) {
      QCOMPARE(::connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
      console.pumpUntil([n = 0]() mutable { return ++n > 5; });
    }
    attach(console, "[]");
    letGo(console);
    for (const int stranger : silent) ::close(stranger);
  }

  void aCheckpointCostsNextToNothing() {
    int64_t work = 0;
    static std::atomic<uint32_t> flags{0};
    // The least of a few times, beside what a load of a flag costs on this machine in this build.
    const auto nanoseconds = [&](const auto& isSet) {
      constexpr int kRounds = 2'000'000;
      double best = 1e18;
      for (int repeat = 0; repeat < 9; ++repeat) {
        QElapsedTimer clock;
        clock.start();
        for (int i = 0; i < kRounds; ++i)
          if (isSet()) work += i;
        best = std::min(best, static_cast<double>(clock.nsecsElapsed()) / kRounds);
      }
      return best;
    };
    const double load = nanoseconds([] { return (flags.load(std::memory_order_relaxed) & 1) != 0; });
    const double checkpoint = nanoseconds([] { return debug::armed(debug::Kind::Line); });
    qInfo("a checkpoint nobody waits at: %.2f ns, a load: %.2f ns", checkpoint, load);
    QVERIFY(work == 0 && checkpoint < 10 * load);
  }
};

QTEST_GUILESS_MAIN(DebugTest)
#include "debug_test.moc"
