#include "engine/cache/entry_file.h"

#include <QTest>
#include <random>

#include "engine/cache/sha256.h"

using namespace fusebox;
using namespace fusebox::cache;

namespace {

std::string hexOf(const Digest& digest) { return hex(digest); }

CacheKey someKey(const std::string& cpu = "haswell") {
  CacheKey key;
  key.add("CPU", cpu);
  key.add("operators", std::string("binary \0 content", 16), "2 operators: aten::add, aten::mul");
  return key;
}

EntryHeader someHeader() { return {"graph", someKey(), "forward", 1795411041, 123'456'789, 3, 17, true}; }

}  // namespace

class EntryTest : public QObject {
  Q_OBJECT
 private slots:
  // Examples of FIPS 180-4 and RFC 4231.
  void digestsAreTheStandards() {
    QCOMPARE(hexOf(sha256("abc")), std::string("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    QCOMPARE(hexOf(sha256("")), std::string("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    QCOMPARE(hexOf(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
             std::string("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
    QCOMPARE(hexOf(sha256(std::string(1'000'000, 'a'))),
             std::string("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
    QCOMPARE(hexOf(hmacSha256("Jefe", {"what do ya want ", "for nothing?"})),
             std::string("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"));
    QCOMPARE(hexOf(hmacSha256(std::string(131, '\xaa'), {"Test Using Larger Than Block-Size Key - Hash Key First"})),
             std::string("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"));
  }

  void piecesGiveTheDigestOfTheWhole() {
    const std::string text(300, 'x');
    for (size_t cut = 0; cut <= text.size(); ++cut)
      QVERIFY(sha256({std::string_view(text).substr(0, cut), std::string_view(text).substr(cut)}) == sha256(text));
  }

  void anEntryComesBack() {
    const std::string payload = std::string("machine\0code", 12);
    for (const char* secret : {"", "our key"}) {
      const std::string bytes = writeEntry(someHeader(), payload, secret);
      const auto entry = readEntry(bytes, Trust::Owner, "");
      QVERIFY(entry.has_value());
      QCOMPARE(entry->payload, payload);
      QCOMPARE(entry->isSigned, *secret != 0);
      QCOMPARE(entry->header.key.id(), someKey().id());
      QCOMPARE(entry->header.name, std::string("forward"));
      QCOMPARE(entry->header.compileNs, int64_t{123'456'789});
      QCOMPARE(entry->header.kernels, int64_t{3});
      QCOMPARE(entry->header.nodes, int64_t{17});
      QVERIFY(entry->header.optimised);
      QCOMPARE(readHeader(bytes)->name, std::string("forward"));
    }
  }

  void everyBitCounts() {
    const std::string bytes = writeEntry(someHeader(), std::string(50, 'c'), "our key");
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string changed = bytes;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
      QVERIFY(!readEntry(changed, Trust::Owner, "").has_value());
      QVERIFY(!readEntry(changed, Trust::Signature, "our key").has_value());
    }
  }

  void aPartIsNoEntry() {
    const std::string bytes = writeEntry(someHeader(), std::string(50, 'c'), "");
    for (size_t size = 0; size < bytes.size(); ++size) {
      QVERIFY(!readEntry(std::string_view(bytes).substr(0, size), Trust::Owner, "").has_value());
      readHeader(std::string_view(bytes).substr(0, size));  // of a beginning: whatever it says, it must not read on
    }
    QVERIFY(!readEntry(bytes + "x", Trust::Owner, "").has_value());
  }

  void noiseIsNoEntry() {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
      std::string noise = writeEntry(someHeader(), std::string(20, 'c'), "");
      for (int change = 0; change < 8; ++change) noise[random() % noise.size()] = static_cast<char>(random());
      if (noise == writeEntry(someHeader(), std::string(20, 'c'), "")) continue;
      QVERIFY(!readEntry(noise, Trust::Owner, "").has_value());
      readHeader(noise);
    }
  }

  void otherVersionsAreSaidToBeSo() {
    std::string bytes = writeEntry(someHeader(), "code", "");
    bytes[8] = static_cast<char>(kEntryVersion + 1);
    const auto entry = readEntry(bytes, Trust::Owner, "");
    QVERIFY(!entry.has_value());
    QCOMPARE(entry.error().code, ErrorCode::TooNew);
  }

  void othersEntriesNeedTheSignature() {
    const auto refusal = [](const std::string& bytes, const char* secret) {
      const auto entry = readEntry(bytes, Trust::Signature, secret);
      return entry                                              ? std::string()
             : entry.error().code == ErrorCode::InvalidArgument ? entry.error().message
                                                                : "another error";
    };
    const std::string unsignedBytes = writeEntry(someHeader(), "code", ""),
                      signedBytes = writeEntry(someHeader(), "code", "our key");
    QCOMPARE(refusal(signedBytes, "our key"), std::string());
    QVERIFY(refusal(unsignedBytes, "our key").find("no signature") != std::string::npos);
    QVERIFY(refusal(signedBytes, "their key").find("is not that of") != std::string::npos);
    QVERIFY(refusal(signedBytes, "").find("need a key") != std::string::npos);
  }

  void changedContentsLoseTheSignature() {
    // Somebody without the key changes the payload and sets the checksum right.
    const std::string bytes = writeEntry(someHeader(), "code", "our key"), other = writeEntry(someHeader(), "evil", "");
    std::string forged = other;
    std::copy(bytes.begin() + 40, bytes.begin() + 72, forged.begin() + 40);
    QVERIFY(!readEntry(forged, Trust::Signature, "our key").has_value());
  }

  void differencesAreNamed() {
    CacheKey a = someKey("haswell"), b = someKey("skylake");
    QCOMPARE(differenceText(differences(a, b)), std::string("CPU: haswell here, skylake there"));
    QVERIFY(differences(a, someKey("haswell")).empty());
    b.add("cache key tag", "x");
    QCOMPARE(differences(a, b).size(), size_t{2});
    QVERIFY(a.id() != b.id());
    CacheKey c, d;
    const std::string many(90, 'q');
    c.add("CPU features", many + " +avx2 +fma");
    d.add("CPU features", many + " +avx512f +fma");
    QCOMPARE(differenceText(differences(c, d)), std::string("CPU features: +avx2 here, +avx512f there"));
    CacheKey sizes, fixed;
    sizes.add("symbols", "s0 in [2, 9223372036854775807], s1 in [-9223372036854775808, 9223372036854775807]");
    fixed.add("symbols", "none");
    QCOMPARE(differenceText(differences(sizes, fixed)),
             std::string("symbols: s0 in [2, 9223372036854775807] s1 in [-9223372036854775808, 9223372036854775807] here, none there"));
  }

  void aComponentIsItsWholeContent() {
    CacheKey a, b;
    a.add("operators", std::string(5000, 'a') + "1", "shown");
    b.add("operators", std::string(5000, 'a') + "2", "shown");
    QVERIFY(a.id() != b.id());
    QCOMPARE(differenceText(differences(a, b)), std::string("operators"));
  }
};

QTEST_GUILESS_MAIN(EntryTest)
#include "entry_test.moc"
