// Programs that PyTorch saved: .pt2 of torch.export.save, .pt of torch.jit.save. Expectations are what PyTorch itself
// prints of them.
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <random>

#include "profiler/importers/exported_graph.h"
#include "profiler/importers/json_pieces.h"
#include "profiler/importers/torch_script_expression.h"
#include "profiler/importers/torch_script_graph.h"
#include "profiler/importers/zip_archive.h"
#include "profiler/query/summary.h"
#include "tests/profiler/importers/imported.h"

using namespace fusebox;
using namespace fusebox::importing;
using test::Imported;

namespace {

/// One of the files inside a data file.
std::string inside(const std::string& archive, const std::string& entry) {
  auto opened = ZipArchive::open(Imported::data(archive));
  if (!opened || !(*opened)->find(entry)) qFatal("%s has no %s", archive.c_str(), entry.c_str());
  auto text = (*opened)->read(*(*opened)->find(entry), uint64_t{1} << 30);
  return text ? *text : std::string();
}

std::string changed(std::string text, std::mt19937& random) {
  static constexpr const char* kWords[] = {"-1",        "\"",  "{",  "}",   "[",    "]",
                                           "(",         ")",   "\n", ",",   "null", "99999999999999999999",
                                           "as_tensor", "if ", ":",  " = ", "self"};
  for (unsigned i = 0, count = 1 + random() % 6; i < count; ++i) {
    const size_t at = random() % text.size(), length = random() % 40;
    switch (random() % 4) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kWords[random() % std::size(kWords)]);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), length * 10));
        break;
      default:
        text[at] = static_cast<char>(random() % 128);
    }
    if (text.empty()) text = " ";
  }
  return text;
}

struct StoredEntry {
  std::string name, content;
  uint64_t bytes;  ///< with zeros behind the content; 0: without
};

template <class T>
void put(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
}

uint32_t crcOf(const std::string& text) {
  uint32_t crc = ~uint32_t{0};
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320U : 0);
  }
  return ~crc;
}

/// An archive without compression; zeros are a hole in the file.
void writeStoredZip(const std::string& path, const std::vector<StoredEntry>& entries) {
  std::ofstream file(path, std::ios::binary);
  std::string directory;
  uint64_t at = 0;
  for (const StoredEntry& e : entries) {
    const auto bytes = static_cast<uint32_t>(std::max<uint64_t>(e.bytes, e.content.size()));
    std::string facts;  // what a local header and the directory have in common
    put<uint16_t>(facts, 20), put<uint16_t>(facts, 0), put<uint16_t>(facts, 0), put<uint32_t>(facts, 0);
    put(facts, crcOf(e.content)), put(facts, bytes), put(facts, bytes), put(facts, static_cast<uint16_t>(e.name.size())), put<uint16_t>(facts, 0);
    file.seekp(static_cast<std::streamoff>(at));
    file << "PK\x03\x04" << facts << e.name << e.content;
    directory += std::string("PK\x01\x02") + std::string("\x14\x00", 2) + facts;
    put<uint16_t>(directory, 0), put<uint16_t>(directory, 0), put<uint16_t>(directory, 0), put<uint32_t>(directory, 0), put(directory, static_cast<uint32_t>(at));
    directory += e.name;
    at += 30 + e.name.size() + bytes;
  }
  file.seekp(static_cast<std::streamoff>(at));
  std::string end = "PK\x05\x06";
  put<uint32_t>(end, 0), put(end, static_cast<uint16_t>(entries.size())), put(end, static_cast<uint16_t>(entries.size()));
  put(end, static_cast<uint32_t>(directory.size())), put(end, static_cast<uint32_t>(at)), put<uint16_t>(end, 0);
  file << directory << end;
}

int64_t peakBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

std::string forwardOf(const std::string& body, const std::string& parameters = "x: Tensor, y: Tensor") {
  ScriptCode code;
  parseScriptCode("code/__torch__.py",
                  "class M(Module):\n  def forward(self: __torch__.M,\n    " + parameters + ") -> Tensor:\n" + body,
                  code);
  std::string out;
  for (const FxNode& node : scriptGraph(code, "__torch__.M").nodes)
    if (node.kind != "placeholder") out += node.name + "=" + node.op + "(" + node.args + ");";
  return out + (code.unread ? "unread" : "");
}

}  // namespace

class SavedProgramsTest : public QObject {
  Q_OBJECT
  Imported in_;

 private slots:
  void exportedProgram() {
    QVERIFY2(in_.open(Imported::data("exported.pt2")), in_.error().text().c_str());
    COMPARE_ROWS(in_, "SELECT stage, direction, name, node_count, input_count, output_count FROM graphs",
                 "captured,inference,model,22,10,1");
    COMPARE_ROWS(in_, "SELECT name, op, shape, dtype, module_path, function, line FROM nodes WHERE name = 'linear_1'",
                 "linear_1,aten::linear,[s23, 7, 8],float32,l2,forward,8");
    COMPARE_ROWS(in_, "SELECT args, shape, stride, device, bytes FROM nodes WHERE name = 'emb.weight'",
                 "p_emb_weight: parameter,[50, 16],[16, 1],cpu,3200");
    // A list of results: each is an output of its node.
    COMPARE_ROWS(in_, "SELECT outputs FROM nodes WHERE name = 'split'",
                 "[\"float32[s23, 7, 4]\",\"float32[s23, 7, 4]\"]");
    COMPARE_ROWS(in_,
                 "SELECT d.name, e.output, e.arg FROM edges e JOIN nodes s ON s.node_id = e.src_node_id JOIN nodes d "
                 "ON d.node_id = e.dst_node_id "
                 "WHERE s.name = 'split' ORDER BY e.output",
                 "cat,0,0;cat,1,0");
    COMPARE_ROWS(in_, "SELECT args FROM nodes WHERE name = 'layer_norm'",
                 "%linear, [32], %n.weight, %n.bias, 1e-05, false");
    COMPARE_ROWS(in_, "SELECT text FROM graphs", "2 <= s23 <= 64\n");
    COMPARE_ROWS(in_, "SELECT value FROM session_info WHERE key = 'imported_format'", "exported program (.pt2)");
    COMPARE_ROWS(in_, "SELECT what FROM losses", "source_text");
    QVERIFY(in_.number("SELECT count(*) FROM source_files WHERE file LIKE '%mk.py' AND text LIKE '%torch.split%'") ==
            1);
  }

  /// A program in a file was saved, and nobody has compiled it.
  void nothingIsSaidToBeCompiled() {
    for (const char* name : {"exported.pt2", "traced.pt"}) {
      QVERIFY(in_.open(Imported::data(name)));
      const auto summary = query::summarize(in_.reader());
      QVERIFY(summary);
      const std::string text = query::toText(*summary);
      for (const char* line : {"  captured  1 frame, 0 compiles, 1 graph\n", "  functions 1 function: 1 saved, not compiled here\n"}) QVERIFY2(text.find(line) != text.npos, text.c_str());
    }
  }

  void tracedProgram() {
    QVERIFY2(in_.open(Imported::data("traced.pt")), in_.error().text().c_str());
    COMPARE_ROWS(
        in_, "SELECT op, args, module_path FROM nodes WHERE kind = 'call' ORDER BY position",
        "aten::embedding,%emb.weight, %ids,emb;aten::linear,%embedding, %l1.weight, %l1.bias,l1;"
        "aten::layer_norm,%linear, [32], %n.weight, %n.bias,n;aten::relu,%layer_norm,;aten::unsqueeze,%mask, -1,;"
        "aten::mul,%relu, %unsqueeze,;aten::linear,%mul, %l2.weight, %l2.bias,l2;aten::split,%linear_1, 4, -1,;"
        "aten::cat,[%split, %split#1], -1,;aten::softmax,%cat, -1,;aten::mul,%softmax, %scale,");
    COMPARE_ROWS(in_, "SELECT name FROM nodes WHERE kind = 'placeholder' ORDER BY position", "ids;mask");
    COMPARE_ROWS(in_, "SELECT what, detail FROM losses", "");
    COMPARE_ROWS(in_, "SELECT file, line FROM nodes WHERE op = 'aten::cat'", "code/__torch__.py,23");
    QVERIFY(in_.number("SELECT count(*) FROM source_files WHERE text LIKE '%torch.cat([a, b], -1)%'") == 1);
  }

  /// What lies behind the name in data.pkl, tensors of any number of gigabytes, is not read.
  void onlyTheHeadOfThePickleIsRead() {
    constexpr uint64_t kBytes = uint64_t{768} << 20;
    const std::string path = in_.path("large.pt");
    writeStoredZip(path, {{"m/code/__torch__.py", inside("traced.pt", "code/__torch__.py"), 0}, {"m/data.pkl", inside("traced.pt", "data.pkl"), kBytes}});
    const int64_t before = peakBytes();
    QVERIFY2(in_.open(path), in_.error().text().c_str());
    QVERIFY(in_.number("SELECT count(*) FROM nodes WHERE kind = 'call'") > 5);
    QVERIFY2(peakBytes() - before < (int64_t{256} << 20), qPrintable(QString::number(peakBytes() - before)));
  }

  void scriptedProgram() {
    QVERIFY2(in_.open(Imported::data("scripted.pt")), in_.error().text().c_str());
    COMPARE_ROWS(in_, "SELECT args, module_path FROM nodes WHERE op = 'aten::conv2d'",
                 "%x, %c.weight, %c.bias, [1, 1], [0, 0], [1, 1],c");
    // Functions of torch.nn.functional are opened out too.
    COMPARE_ROWS(in_, "SELECT module_path, function IS NULL FROM nodes WHERE op = 'aten::batch_norm'", "b,1");
    QVERIFY(in_.number("SELECT count(*) FROM nodes WHERE op = 'prim::If'") >= 1);
    QVERIFY(in_.number("SELECT count(*) FROM nodes WHERE op = 'prim::Loop'") >= 1);
    COMPARE_ROWS(in_, "SELECT args FROM nodes WHERE kind = 'output'", "[%linear, %__getitem___2]");
    COMPARE_ROWS(in_, "SELECT what, detail FROM losses", "");
  }

  void scriptStatements() {
    QCOMPARE(forwardOf("    z = torch.add(x, y, alpha=2)\n    return torch.relu(z, )\n"),
             "add=aten::add(%x, %y, alpha=2);relu=aten::relu(%add);output=(%relu);");
    QCOMPARE(forwardOf("    if bool(x):\n      z = torch.neg(x)\n    else:\n      z = y\n    return z\n"),
             "Bool=aten::Bool(%x);neg=aten::neg(%x);If=prim::If(%Bool, %neg, %y);output=(%If);");
    QCOMPARE(forwardOf("    z = x\n    for i in range(3):\n      z = torch.add(z, i)\n    return z\n"),
             "range=prim::range(3);Loop=prim::Loop(%range, %x);add=aten::add(%Loop#1, "
             "%Loop);LoopEnd=prim::LoopEnd(z=%add);output=(%LoopEnd);");
    QCOMPARE(forwardOf("    a, b, = torch.split(x, 4)\n    return torch.sub(b, a)\n"),
             "split=aten::split(%x, 4);sub=aten::sub(%split#1, %split);output=(%sub);");
    QCOMPARE(forwardOf("    return ops.torchvision.nms(x, annotate(List[int], [1, -2]), \"a, (b\", 1.5e-3)\n"),
             "nms=torchvision::nms(%x, [1, -2], \"a, (b\", 1.5e-3);output=(%nms);");
    QCOMPARE(forwardOf("    z = ) (\n    return x\n"), "output=(%x);unread");
  }

  void expressions() {
    QVERIFY(parseScriptExpression("(torch.size(y2))[0]"));
    QVERIFY(parseScriptExpression("a if torch.lt(b, -1) else not c"));
    QVERIFY(parseScriptExpression("{\"k\": [1, 2], \"l\": (3,)}"));
    for (const char* bad : {"", "a b", "f(", "[1", "a.", "'open", "1 +", "f(a=)"})
      QVERIFY2(!parseScriptExpression(bad), bad);
    QVERIFY(!parseScriptExpression(std::string(100000, '(')));
    QVERIFY(!parseScriptExpression(std::string(100000, '-') + "1"));
    // Chains nest to the left without brackets.
    const auto chain = [](const std::string& link, int count) {
      std::string out = "x";
      for (int i = 0; i < count; ++i) out += link;
      return out;
    };
    for (const char* link : {"+x", ".a", "[0]", "()", " or x"}) {
      QVERIFY2(parseScriptExpression(chain(link, 500)), link);
      QVERIFY2(!parseScriptExpression(chain(link, 200'000)), link);
    }
    std::string wide = "[x.a.b";
    for (int i = 0; i < 20'000; ++i) wide += ", self.a.b[0]";
    QVERIFY(parseScriptExpression(wide + "]"));
    // Functions that call each other from the bottom of such chains add up.
    std::string body;
    for (int f = 0; f < 90; ++f)
      body += "  def f" + std::to_string(f) + "(self: __torch__.M, x: Tensor) -> Tensor:\n    return (self).f" + std::to_string(f + 1) + "(x, )" + chain("+x", 900).substr(1) + "\n";
    ScriptCode code;
    parseScriptCode("code/__torch__.py", "class M(Module):\n  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n    return (self).f0(x, )\n" + body, code);
    QCOMPARE(code.unread, int64_t{0});
    QVERIFY(scriptGraph(code, "__torch__.M").unread > 0);
  }

  void damagedArchives() {
    const std::string whole = Imported::read(Imported::data("exported.pt2"));
    QVERIFY(!in_.open(in_.write("cut.pt2", whole.substr(0, whole.size() / 2))));
    QVERIFY(!in_.error().message.empty());
    std::string flipped = whole;
    flipped[whole.find("\"graph_module\"") + 300] ^= 1;  // the checksum no longer fits
    QVERIFY(!in_.open(in_.write("flipped.pt2", flipped)));
    QVERIFY2(in_.error().message.find("damaged") != std::string::npos, in_.error().text().c_str());
  }

  /// The parts of a text are those that a parser finds; what is cut or goes on behind its end is not complete.
  void piecesOfJson() {
    const std::string text = inside("exported.pt2", "models/model.json");
    const auto whole = nlohmann::json::parse(text);
    bool complete = false;
    const auto parts = jsonMembers(text, complete);
    QVERIFY(complete);
    QCOMPARE(parts.size(), whole.size());
    for (const auto& [key, part] : parts) QVERIFY2(nlohmann::json::parse(part) == whole.at(key), key.c_str());
    JsonPieces nodes(jsonMembers(jsonMembers(parts.at("graph_module"), complete).at("graph"), complete).at("nodes"));
    size_t count = 0;
    while (nodes.next()) QVERIFY(nlohmann::json::parse(nodes.value()) == whole["graph_module"]["graph"]["nodes"].at(count++));
    QVERIFY(nodes.isComplete() && !nodes.isObject());
    QCOMPARE(count, whole["graph_module"]["graph"]["nodes"].size());
    for (size_t cut = 0; cut < text.size(); cut += 97) QVERIFY(!(jsonMembers(text.substr(0, cut), complete), complete));
    for (const char* odd : {"", "1", "{", "{}x", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{\"a\" 1}", "{\"a\":\"x}", "[1}", "{\"a\":[1}"})
      QVERIFY2(!(jsonMembers(odd, complete), complete), odd);
    for (const char* good : {"{}", " { \"a\" : [ \"}\\\"\", {} ] , \"b\":-1e3 } "}) QVERIFY2((jsonMembers(good, complete), complete), good);
  }

  /// A program of many nodes takes little more memory than its text, however many values that consists of.
  void largeProgramsAreReadNodeByNode() {
    std::string nodes, tensors;
    constexpr int kNodes = 400'000;  // as one tree more than a text may make
    for (int i = 0; i < kNodes; ++i) {
      const std::string name = "n" + std::to_string(i);
      nodes += (i ? ",{'target':'torch.ops.aten.relu.default','inputs':[{'name':'self','arg':{'as_tensor':{'name':'n" + std::to_string(i - 1)
                  : std::string("{'target':'torch.ops.aten.relu.default','inputs':[{'name':'self','arg':{'as_tensor':{'name':'x")) +
               "'}}}],'outputs':[{'as_tensor':{'name':'" + name + "'}}],'metadata':{}}";
      tensors += (i ? ",'" : "'") + name + "':{'dtype':7,'sizes':[{'as_int':2}],'strides':[{'as_int':1}],'device':{'type':'cpu'}}";
    }
    std::string module = "{'graph':{'inputs':[{'as_tensor':{'name':'x'}}],'nodes':[" + nodes + "],'outputs':[],'tensor_values':{" + tensors + "}}}";
    std::replace(module.begin(), module.end(), '\'', '"');
    const auto graphs = readExportedGraphs(module, "m");
    QVERIFY(graphs.fault == JsonFault::None);
    QCOMPARE(graphs.damaged, int64_t{0});
    QCOMPARE(graphs.main.nodes.size(), size_t{kNodes + 2});
    QCOMPARE(graphs.main.nodes[kNodes].shape, std::string("[2]"));
  }

  // Checksums keep damage from the readers of what is inside, so that is damaged here.
  void damagedContents() {
    std::mt19937 random(11);
    const std::string model = inside("exported.pt2", "models/model.json");
    for (int round = 0; round < 400; ++round) {
      bool complete = false;
      const std::string damaged = changed(model, random);
      const auto parts = jsonMembers(damaged, complete);
      if (const auto module = parts.find("graph_module"); module != parts.end()) readExportedGraphs(module->second, "m");
    }
    // Values of other types than the schema's.
    const auto good = nlohmann::json::parse(model);
    const auto leaves = good.flatten();
    for (const auto& [path, value] : leaves.items()) {
      auto other = good;
      other[nlohmann::json::json_pointer(path)] =
          random() % 2 ? nlohmann::json(nullptr) : nlohmann::json::array({1, "x"});
      readExportedGraphs(other["graph_module"].dump(), "m");
    }
    const std::string code =
        inside("scripted.pt", "code/__torch__.py") + inside("scripted.pt", "code/__torch__/torch/nn/functional.py");
    for (int round = 0; round < 3000; ++round) {
      ScriptCode parsed;
      parseScriptCode("code/__torch__.py", changed(code, random), parsed);
      scriptGraph(parsed, "__torch__.N");
    }
  }

  void selfCallsEnd() {
    ScriptCode code;
    parseScriptCode(
        "code/__torch__.py",
        "class M(Module):\n  def forward(self, x):\n    a = (self).forward(x, )\n    return (self).forward(a, )\n",
        code);
    const FxGraph graph = scriptGraph(code, "__torch__.M");
    QVERIFY(graph.unread > 0 && graph.nodes.size() < 600'000);
  }

  void tensorsAreNoGraph() {
    // What torch.save writes: the same kind of archive without code.
    const std::string traced = Imported::read(Imported::data("traced.pt"));
    std::string renamed = traced;
    for (size_t at = 0; (at = renamed.find("/code/", at)) != std::string::npos; at += 6)
      renamed.replace(at, 6, "/cope/");
    QVERIFY(!in_.open(in_.write("tensors.pt", renamed)));
    QVERIFY2(in_.error().message.find("no graph") != std::string::npos, in_.error().text().c_str());
  }
};

QTEST_APPLESS_MAIN(SavedProgramsTest)
#include "saved_programs_test.moc"
