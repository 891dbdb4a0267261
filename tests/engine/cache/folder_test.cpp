#include "engine/cache/cache_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QTest>
#include <ctime>
#include <fstream>

using namespace fusebox;
using namespace fusebox::cache;

namespace {

std::string idOf(int number) {
  CacheKey key;
  key.add("number", std::to_string(number));
  return key.id();
}

std::string entryOf(int number, size_t bytes = 1000) {
  CacheKey key;
  key.add("number", std::to_string(number));
  EntryHeader header{"graph", key, "f", 1, 1};
  return writeEntry(header, std::string(bytes, static_cast<char>('a' + number % 26)), "");
}

}  // namespace

class FolderTest : public QObject {
  Q_OBJECT

  QTemporaryDir directory_;
  std::string root() const { return directory_.path().toStdString(); }

 private slots:
  void isMadeForTheOwnerAlone() {
    const std::string where = root() + "/new/deep";
    QCOMPARE(CacheFolder::open(where, false).error().code, ErrorCode::NotFound);
    auto folder = CacheFolder::open(where, true);
    QVERIFY(folder.has_value());
    QCOMPARE(folder->trust(), Trust::Owner);
    struct stat facts;
    QCOMPARE(::stat((where + "/fusebox").c_str(), &facts), 0);
    QCOMPARE(facts.st_mode & 0777, mode_t{0700});
    QVERIFY(folder->write(idOf(1), entryOf(1)).has_value());
    QCOMPARE(*folder->read(idOf(1)), entryOf(1));
    QVERIFY(folder->has(idOf(1)) && !folder->has(idOf(2)));
    QCOMPARE(folder->read(idOf(2)).error().code, ErrorCode::NotFound);
  }

  void othersFoldersAreNotBelieved() {
    auto folder = CacheFolder::open(root() + "/shared", true);
    QVERIFY(folder->write(idOf(1), entryOf(1)).has_value());
    QCOMPARE(::chmod((root() + "/shared/fusebox").c_str(), 0770), 0);
    QCOMPARE(CacheFolder::open(root() + "/shared", false)->trust(), Trust::Signature);
  }

  void linksAndDevicesAreNotRead() {
    auto folder = CacheFolder::open(root() + "/links", true);
    QVERIFY(folder->write(idOf(1), entryOf(1)).has_value());
    const std::string there = folder->list().at(0).path, elsewhere = root() + "/elsewhere";
    QCOMPARE(::rename(there.c_str(), elsewhere.c_str()), 0);
    QCOMPARE(::symlink(elsewhere.c_str(), there.c_str()), 0);
    QVERIFY(!folder->read(idOf(1)).has_value());
    ::unlink(there.c_str());
    QCOMPARE(::mkfifo(there.c_str(), 0600), 0);
    QVERIFY(!folder->read(idOf(1)).has_value());  // and does not wait for a writer
    ::unlink(there.c_str());
    std::ofstream(there) << entryOf(1);
    QCOMPARE(::chmod(there.c_str(), 0666), 0);
    QCOMPARE(folder->read(idOf(1)).error().code, ErrorCode::InvalidArgument);
    QCOMPARE(::symlink((root() + "/links").c_str(), (root() + "/aside").c_str()), 0);
    QVERIFY(CacheFolder::open(root() + "/aside", false).has_value());  // the user's own link to a directory is
    QCOMPARE(::mkdir((root() + "/linked").c_str(), 0700), 0);
    QCOMPARE(::symlink((root() + "/links/fusebox").c_str(), (root() + "/linked/fusebox").c_str()), 0);
    QVERIFY(!CacheFolder::open(root() + "/linked", false).has_value());
  }

  void whatWasUsedLeastGoesFirst() {
    auto folder = CacheFolder::open(root() + "/old", true);
    const auto bytes = static_cast<int64_t>(entryOf(0).size());
    for (int i = 0; i < 10; ++i) {
      QVERIFY(folder->write(idOf(i), entryOf(i)).has_value());
      const timespec when[2] = {{1000 + i, 0}, {1000 + i, 0}};
      for (const auto& item : folder->list())
        if (item.id == idOf(i)) QCOMPARE(::utimensat(AT_FDCWD, item.path.c_str(), when, 0), 0);
    }
    folder->touch(idOf(0));
    const auto pruned = folder->prune(4 * bytes + 10);
    QCOMPARE(pruned.files, int64_t{6});
    QVERIFY(pruned.left <= 4 * bytes + 10);
    QVERIFY(folder->has(idOf(0)) && folder->has(idOf(9)) && folder->has(idOf(7)));
    QVERIFY(!folder->has(idOf(1)) && !folder->has(idOf(6)));
    QCOMPARE(folder->prune(0).files, int64_t{4});
    QVERIFY(folder->list().empty());
  }

  void whatDeadWritersLeftGoes() {
    auto folder = CacheFolder::open(root() + "/dead", true);
    QVERIFY(folder->write(idOf(1), entryOf(1)).has_value());
    const std::string group = root() + "/dead/fusebox/" + idOf(1).substr(0, 2);
    const std::string old = group + "/.tmp-1-1-abc", fresh = group + "/.tmp-1-2-abc";
    std::ofstream(old) << "half", std::ofstream(fresh) << "half";
    const timespec when[2] = {{1000, 0}, {1000, 0}};
    QCOMPARE(::utimensat(AT_FDCWD, old.c_str(), when, 0), 0);
    folder->prune(int64_t{1} << 40);
    QVERIFY(::access(old.c_str(), F_OK) != 0);
    QVERIFY(::access(fresh.c_str(), F_OK) == 0);  // may be being written
    QCOMPARE(folder->list().size(), size_t{1});
  }

  void aFullDiskLeavesNothing() {
    auto folder = CacheFolder::open(root() + "/full", true);
    // A limit on the size of files stops writes where a full disk does.
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit before;
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{4096, before.rlim_max};
    QCOMPARE(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto written = folder->write(idOf(1), entryOf(1, 100'000));
    ::setrlimit(RLIMIT_FSIZE, &before);
    QVERIFY(!written.has_value());
    QCOMPARE(written.error().code, ErrorCode::Io);
    QVERIFY(!folder->has(idOf(1)));
    QVERIFY(QDir(QString::fromStdString(root() + "/full/fusebox/" + idOf(1).substr(0, 2)))
                .entryList(QDir::Files | QDir::Hidden)
                .isEmpty());
    QVERIFY(folder->write(idOf(1), entryOf(1, 100'000)).has_value());
  }

  void aTinyFileSystemFills() {
    const std::string mount = root() + "/tiny";
    ::mkdir(mount.c_str(), 0700);
    if (::mount("none", mount.c_str(), "tmpfs", 0, "size=64k") != 0) QSKIP("file systems cannot be mounted here");
    {
      auto folder = CacheFolder::open(mount, true);
      int written = 0;
      for (int i = 0; i < 40; ++i) written += folder->write(idOf(i), entryOf(i, 10'000)).has_value();
      QVERIFY(written > 0 && written < 40);
      for (const auto& item : folder->list()) QVERIFY(readEntry(*folder->read(item.id), Trust::Owner, "").has_value());
      QCOMPARE(static_cast<int>(folder->list().size()), written);
    }
    ::umount(mount.c_str());
  }

  void aFolderThatCannotBeMadeIsSaid() {
    std::ofstream(root() + "/file") << "in the way";
    QVERIFY(!CacheFolder::open(root() + "/file/below", true).has_value());
  }

  /// Writers that are killed at random leave whole entries or none.
  void killedWritersLeaveNoTornEntry() {
    const std::string where = root() + "/killed";
    auto folder = CacheFolder::open(where, true);
    for (int round = 0; round < 40; ++round) {
      const pid_t child = ::fork();
      if (child == 0) {
        auto mine = CacheFolder::open(where, true);
        for (int i = 0;; ++i) (void)mine->write(idOf(i % 5), entryOf(i % 5, 200'000));
      }
      ::usleep(static_cast<useconds_t>(500 + 731 * round % 20'000));
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      for (const auto& item : folder->list()) QVERIFY(readEntry(*folder->read(item.id), Trust::Owner, "").has_value());
    }
    QVERIFY(!folder->list().empty());
  }

  void manyWritersOfOneEntry() {
    const std::string where = root() + "/many";
    std::vector<pid_t> children;
    for (int i = 0; i < 32; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        auto mine = CacheFolder::open(where, true);
        bool ok = mine.has_value();
        for (int k = 0; ok && k < 20; ++k)
          ok = mine->write(idOf(3), entryOf(3, 50'000)).has_value() && *mine->read(idOf(3)) == entryOf(3, 50'000);
        ::_exit(ok ? 0 : 1);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      QCOMPARE(status, 0);
    }
    QCOMPARE(CacheFolder::open(where, false)->list().size(), size_t{1});
  }
};

QTEST_GUILESS_MAIN(FolderTest)
#include "folder_test.moc"
