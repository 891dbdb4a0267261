#include <QtTest>
#include <sstream>

#include "engine/codegen/cpu/disassembly.h"
#include "tests/engine/codegen/interpret.h"
#include "tests/engine/codegen/kernel_builder.h"

using namespace fusebox::codegen::testing;
namespace cpu = fusebox::codegen::cpu;

namespace {

/// out[i] = tanh(x[i]) * 2 + i
Kernel pointwise() {
  KernelBuilder b("pointwise");
  const SymExpr n = b.size();
  const BufferId x = b.input(DType::Float32, n), out = b.output(DType::Float32, n);
  const SymExpr i = b.outer(n);
  b.section();
  const auto value =
      b.op(Op::Mul, DType::Float32, b.op(Op::Tanh, DType::Float32, b.load(x, i)), b.constant(DType::Float32, 2));
  b.store(out, i, b.op(Op::Add, DType::Float32, value, b.op(Op::Cast, DType::Float32, b.index(i))));
  return b.kernel;
}

/// The sum of all, so long that chunks of it are work units of a first phase.
Kernel wholeSum() {
  KernelBuilder b("whole_sum");
  const SymExpr n = b.size(1 << 18);
  const BufferId x = b.input(DType::Float64, n), out = b.output(DType::Float64, 1);
  b.outer(1);
  b.section(true);
  const int sum = b.reduce(ReduceKind::Sum, b.load(x, b.axis(n)));
  b.section();
  b.store(out, 0, b.reduced(sum, DType::Float64));
  return b.kernel;
}

/// An operation that code calls a function of the engine for.
Kernel calls() {
  KernelBuilder b("calls");
  const BufferId x = b.input(DType::Float64, 100), out = b.output(DType::Float64, 100);
  const SymExpr i = b.outer(100);
  b.section();
  b.store(out, i, b.op(Op::Lgamma, DType::Float64, b.load(x, i)));
  return b.kernel;
}

struct Case {
  const char* name;
  Kernel (*make)();
  std::vector<int64_t> sizes;
};
const Case kCases[] = {
    {"pointwise", pointwise, {1003}}, {"in phases", wholeSum, {(1 << 18) + 77}}, {"calls of functions", calls, {}}};

std::shared_ptr<cpu::Jit> newJit(const std::string& target, int firstTier, bool background = false) {
  cpu::Jit::Options options;
  options.target = *cpu::TargetFeatures::named(target);
  options.background = background;
  options.firstTier = firstTier;
  return *cpu::Jit::create(options);
}

}  // namespace

/// Code that is taken out of one JIT and linked in another.
class ImageTest : public QObject {
  Q_OBJECT
 private slots:
  void runsAsCompiled_data() {
    QTest::addColumn<int>("which");
    QTest::addColumn<int>("tier");
    for (int which = 0; which < 3; ++which)
      for (int tier = 0; tier < 2; ++tier) QTest::addRow("%s, tier %d", kCases[which].name, tier) << which << tier;
  }
  void runsAsCompiled() {
    QFETCH(int, which);
    QFETCH(int, tier);
    const Case& c = kCases[which];
    const Kernel kernel = c.make();
    for (const std::string& target : testTargets()) {
      auto first = newJit(target, tier);
      auto compiled = first->compile(kernel);
      QVERIFY(compiled.has_value());
      auto image = first->image(**compiled, kernel.sizeSymbols);
      QVERIFY(image.has_value());
      QCOMPARE(image->tier, tier);
      auto second = newJit(target, tier);
      auto loaded = second->load(kernel, *image);
      QVERIFY2(loaded.has_value(), loaded ? "" : loaded.error().text().c_str());
      QCOMPARE((*loaded)->costPerUnit, (*compiled)->costPerUnit);
      QCOMPARE((*loaded)->units(c.sizes.data()), (*compiled)->units(c.sizes.data()));
      QCOMPARE(static_cast<bool>((*loaded)->phaseEnds), static_cast<bool>((*compiled)->phaseEnds));
      std::mt19937 random(5);
      Buffers expected(kernel, c.sizes);
      expected.fill(random);
      Buffers actual = expected;
      launch(**compiled, expected, c.sizes);
      first.reset();  // the image needs nothing of where it came from
      launch(**loaded, actual, c.sizes);
      QCOMPARE(difference(actual, expected), std::string());
      QVERIFY(actual.guardsIntact());
      // What a session shows can be made of it, and it is there for whoever compiles an equal kernel.
      auto text = second->text(**loaded);
      QVERIFY(text.has_value());
      QVERIFY(text->llvmIr.find("define") != std::string::npos && !text->assembly.empty());
      QCOMPARE(second->compile(kernel)->get(), loaded->get());
    }
  }

  /// Assembly says which line of the loop IR's text it carries out, also of code that was compiled when nobody asked; the code is the same.
  void codeNamesItsLines() {
    const auto stripped = [](const std::string& assembly) {
      std::string code;
      std::istringstream lines(assembly);
      for (std::string line; std::getline(lines, line);)
        if (!line.starts_with("\t.loc")) code += line + "\n";
      return code;
    };
    for (const std::string& target : testTargets())
      for (int tier = 0; tier < 2; ++tier) {
        const Kernel kernel = calls();
        auto quiet = newJit(target, tier), kept = newJit(target, tier);
        kept->keepsText = true;
        auto plain = quiet->compile(kernel), recorded = kept->compile(kernel);
        QVERIFY(plain && recorded);
        auto later = quiet->text(**plain), text = kept->text(**recorded);
        QVERIFY(later && text);
        QCOMPARE(QString::fromStdString(later->assembly), QString::fromStdString(text->assembly));
        auto image = quiet->image(**plain, kernel.sizeSymbols);
        QVERIFY(image);
        auto bare = cpu::disassembleObject(image->object, *cpu::TargetFeatures::named(target));
        QVERIFY(bare);
        QCOMPARE(stripped(text->assembly), bare->text);
        // What calls the function carries out the line that names the operation.
        std::vector<std::string> loops;
        std::istringstream lines(kernel.str()), code(text->assembly);
        for (std::string line; std::getline(lines, line);) loops.push_back(line);
        size_t current = 0, calls = 0;
        for (std::string line; std::getline(code, line);) {
          if (line.starts_with("\t.loc\t1 ")) current = std::stoul(line.substr(8));
          if (!line.starts_with("\tcall")) continue;
          ++calls;
          QVERIFY2(current > 0 && current <= loops.size(), line.c_str());
          QVERIFY2(loops[current - 1].find("lgamma") != std::string::npos, loops[current - 1].c_str());
        }
        QVERIFY(calls > 0);
      }
  }

  void firstTierIsImproved() {
    const Kernel kernel = pointwise();
    auto first = newJit("baseline", 0);
    auto second = newJit("baseline", 0, true);
    auto loaded = second->load(kernel, *first->image(**first->compile(kernel), kernel.sizeSymbols));
    QVERIFY(loaded.has_value());
    second->drain();
    QCOMPARE((*loaded)->tier.load(), 1);
    second->stop();
  }

  void damagedCodeIsAnErrorAndCanBeCompiled() {
    const Kernel kernel = pointwise();
    auto first = newJit("baseline", 0), second = newJit("baseline", 0);
    auto image = *first->image(**first->compile(kernel), kernel.sizeSymbols);
    image.object.resize(image.object.size() / 3);
    QVERIFY(!second->load(kernel, image).has_value());
    QVERIFY(second->compile(kernel).has_value());
  }

  void laterComesBehindWhatWaits() {
    auto jit = newJit("baseline", 0, true);
    auto compiled = jit->compile(pointwise());
    int tier = -1;
    jit->later([&] { tier = (*compiled)->tier.load(); });
    jit->drain();
    QCOMPARE(tier, 1);
    jit->stop();
  }
};

QTEST_GUILESS_MAIN(ImageTest)
#include "image_test.moc"
