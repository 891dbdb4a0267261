#include <QtTest>

#include "tests/engine/codegen/kernel_writer.h"

using namespace fusebox::codegen::testing;

/// Fused kernels written at random against the interpreter. FUSEBOX_FUZZ sets how many.
class RandomKernelsTest : public QObject {
  Q_OBJECT
 private slots:
  void kernels() {
    const int count = qEnvironmentVariableIsSet("FUSEBOX_FUZZ") ? qEnvironmentVariableIntValue("FUSEBOX_FUZZ") : 40;
    const int first = qEnvironmentVariableIntValue("FUSEBOX_FUZZ_FIRST");
    for (int seed = first; seed < first + count; ++seed) {
      const Kernel k = Writer(static_cast<unsigned>(seed)).write();
      const std::string problem = check(k, {}, static_cast<unsigned>(seed), 200, 10);
      QVERIFY2(problem.empty(), (fmt::format("seed {} ", seed) + problem).c_str());
    }
  }

  /// Kernels compile on several threads at once.
  void compileAll() {
    std::vector<Kernel> kernels;
    for (unsigned seed = 500; seed < 512; ++seed) kernels.push_back(Writer(seed).write());
    const auto compiled = jitFor(testTargets().back())->compileAll(kernels, 2);
    QCOMPARE(compiled.size(), kernels.size());
    for (const auto& c : compiled) QVERIFY2(c, c ? "" : c.error().text().c_str());
  }
};

QTEST_APPLESS_MAIN(RandomKernelsTest)
#include "random_kernels_test.moc"
