#include <QAbstractItemModelTester>
#include <QClipboard>
#include <QLabel>
#include <QtTest>

#include "views/widgets/data_table.h"
#include "views/widgets/theme.h"
#include "tests/patience.h"

using namespace fusebox::views;

namespace {

TableRows sampleRows(int count) {
  TableRows rows;
  for (int i = 0; i < count; ++i) {
    TableRow row;
    row.location = Location::of(ObjectKind::Kernel, i + 1);
    row.cells = {textCell("kernel_" + std::to_string(i)), durationCell(1000.0 * ((i * 7) % count)), textCell(i % 2 ? "odd, \"x\"" : "even")};
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<TableColumn> columns() { return {{"Name"}, {"Time", {}, true}, {"Kind"}}; }

}  // namespace

class TableTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { Theme::instance().apply(Theme::Mode::Light); }

  void modelKeepsTheContract() {
    TableModel model(columns());
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    TableFilter filter;
    filter.setSourceModel(&model);
    QAbstractItemModelTester filterTester(&filter, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.setRows(sampleRows(50));
    filter.setFilterText("odd");
    QCOMPARE(filter.rowCount(), 25);
    filter.sort(1, Qt::DescendingOrder);
    model.setRows(sampleRows(3));
    filter.setFilterText({});
    QCOMPARE(filter.rowCount(), 3);
    model.setRows({});
    QCOMPARE(filter.rowCount(), 0);
  }

  /// Few rows in little room need no filter, whose height they have in its place; it comes where it is asked for, and stays while it says something.
  void aLowListOfFewRowsHasNoFilter() {
    DataTable table("t", "Filter", columns());
    const auto fill = [&](int count) {
      TableRows rows(static_cast<size_t>(count));
      for (TableRow& row : rows) row.cells = {textCell("a"), textCell("b"), textCell("c")};
      for (TableRow& row : rows) row.cells.resize(columns().size());
      table.setRows(std::move(rows));
    };
    auto* box = table.findChild<QLineEdit*>("t.filter");
    fill(3);
    table.resize(400, 110);
    table.show();
    QVERIFY(!box->isVisible());
    fill(300);
    QVERIFY(box->isVisible());
    fill(3);
    QVERIFY(!box->isVisible());
    table.resize(400, 400);
    QTRY_VERIFY(box->isVisible());
    table.resize(400, 110);
    QTRY_VERIFY(!box->isVisible());
    table.focusFilter();
    QVERIFY(box->isVisible());
    box->setText("a");
    QTest::qWait(200);  // the box waits for further letters
    QVERIFY(box->isVisible());
  }

  void numbersSortAsNumbers() {
    DataTable table("t", "Filter", columns());
    table.setRows(sampleRows(20));
    table.sortBy(1, Qt::DescendingOrder);
    double previous = 1e18;
    for (int r = 0; r < 20; ++r) {
      const double value = table.filter()->index(r, 1).data(TableModel::SortRole).toDouble();
      QVERIFY(value <= previous);
      previous = value;
    }
  }

  /// Texts are ordered as the language orders them, also after the rows were replaced.
  void textsSortAsTheLanguageDoes() {
    DataTable table("t", "Filter", columns());
    const auto rowsOf = [](std::initializer_list<const char*> names) {
      TableRows rows;
      for (const char* name : names) {
        TableRow row;
        row.cells = {textCell(name), countCell(1), textCell("")};
        rows.push_back(std::move(row));
      }
      return rows;
    };
    table.sortBy(0, Qt::AscendingOrder);
    for (const auto& names : {rowsOf({"b", "Ä", "a", "C", "ab"}), rowsOf({"z", "y", "X"}), rowsOf({"q", "P", "ö", "o", "r", "N"})}) {
      table.setRows(names);
      for (int r = 1; r < table.filter()->rowCount(); ++r)
        QVERIFY(QString::localeAwareCompare(table.filter()->index(r - 1, 0).data().toString(), table.filter()->index(r, 0).data().toString()) <= 0);
    }
  }

  /// Whoever hears of a row may replace all of them and still reads what was said.
  void aRowOutlivesTheRowsThatItIsOf() {
    const std::string name(200, 'n');
    DataTable table("t", "Filter", columns());
    const auto fill = [&](const std::string& text) {
      TableRows rows(40);
      for (TableRow& row : rows) {
        row.cells = {textCell(text), countCell(1), textCell("")};
        row.location = Location::sourceLine(text, 3);
      }
      table.setRows(std::move(rows));
    };
    std::string selected, activated;
    const auto hear = [&](std::string& heard) {
      return [&](const TableRow& row) {
        for (int round = 0; round < 3; ++round) fill(std::string(200, 'x'));
        heard = row.cells[0].text + row.location.file;
      };
    };
    fill(name);
    connect(&table, &DataTable::rowActivated, this, hear(activated));
    table.table()->setCurrentIndex(table.filter()->index(1, 0));
    emit table.table()->activated(table.filter()->index(1, 0));
    QCOMPARE(activated, name + name);
    fill(name);
    connect(&table, &DataTable::rowSelected, this, hear(selected));
    table.table()->setCurrentIndex(table.filter()->index(2, 0));
    QCOMPARE(selected, name + name);
  }

  /// A column that nothing fills is hidden by the table, not by a person: the others still share the room.
  void columnsShareTheRoomBesideAHiddenOne() {
    DataTable table("t", "Filter", {{"Name"}, {"Unused", {}, false, true}, {"Time", {}, true}});
    table.resize(400, 300);
    table.show();
    for (int pass = 0; pass < 2; ++pass) {
      TableRows rows;
      for (int i = 0; i < 5; ++i) {
        TableRow row;
        row.cells = {textCell("kernel"), textCell(""), countCell(i)};
        rows.push_back(std::move(row));
      }
      table.setRows(std::move(rows));
      table.resize(700 + 100 * pass, 300);
      QVERIFY(table.table()->isColumnHidden(1));
      QTRY_COMPARE(table.table()->columnWidth(0) + table.table()->columnWidth(2), table.table()->viewport()->width());
    }
  }

  void aCutListSaysSo() {
    DataTable table("t", "Filter", columns());
    table.show();
    const auto says = [&](const QString& text) {
      for (const auto* label : table.findChildren<QLabel*>()) {
        if (label->isVisible() && label->text().contains(text)) return true;
      }
      return false;
    };
    table.setRows(sampleRows(20));
    QVERIFY(!says(QLocale().toString(7000)));
    table.setCut(7000);
    QVERIFY(says(QLocale().toString(7000)));
    table.findChild<QLineEdit*>("t.filter")->setText("kernel_1");
    QTRY_COMPARE(table.filter()->rowCount(), 11);
    QVERIFY(says(QLocale().toString(7000)) && says("11"));
    table.findChild<QLineEdit*>("t.filter")->clear();
    QTRY_COMPARE(table.filter()->rowCount(), 20);
    table.setCut(0);
    QVERIFY(!says(QLocale().toString(7000)));
    table.setRows(sampleRows(20), 9000);
    QVERIFY(says(QLocale().toString(9000)));
    table.setRows(sampleRows(20), 20);
    QVERIFY(!says(QLocale().toString(9000)));
  }

  void aStretchedColumnFillsTheTable() {
    DataTable table("t", "Filter", columns());
    table.setStretchColumn(0);
    table.resize(600, 300);
    table.show();
    table.setRows(sampleRows(20));
    const QTableView* view = table.table();
    QTRY_COMPARE(view->columnWidth(0) + view->columnWidth(1) + view->columnWidth(2), view->viewport()->width());
    // Where there is no room to spare it is as wide as its texts, so that the others can be seen.
    table.resize(150, 300);
    QTRY_VERIFY(view->viewport()->width() < 150);
    QTRY_VERIFY2(view->columnWidth(0) < view->viewport()->width(), qPrintable(QString::number(view->columnWidth(0))));
  }

  void typingFilters() {
    DataTable table("t", "Filter", columns());
    table.setRows(sampleRows(20));
    table.show();
    auto* edit = table.findChild<QLineEdit*>("t.filter");
    QTest::keyClicks(edit, "odd kernel_1");
    QTRY_COMPARE(table.filter()->rowCount(), 6);  // 1, 11, 13, 15, 17, 19
    QTest::keyClick(edit, Qt::Key_Return);
    QVERIFY(table.table()->currentIndex().isValid());
    QTest::keyClick(edit, Qt::Key_Escape);
    QTRY_COMPARE(table.filter()->rowCount(), 20);
    // What is chosen stays so while it is there, and where it is not, nothing else is chosen for the person.
    QVERIFY(table.select(Location::of(ObjectKind::Kernel, 7)));
    QSignalSpy chosen(&table, &DataTable::rowSelected), removed(table.filter(), &QAbstractItemModel::rowsRemoved);
    QTest::keyClicks(edit, "kernel_6");
    QTRY_VERIFY(table.filter()->rowCount() < 20);
    QVERIFY(table.current() && table.current()->location.id == 7);
    QTest::keyClicks(edit, "x");
    QTRY_COMPARE(table.filter()->rowCount(), 0);
    QCOMPARE(chosen.count() + removed.count(), 0);
  }

  void selectionSurvivesNewRows() {
    DataTable table("t", "Filter", columns());
    table.setRows(sampleRows(10));
    QVERIFY(table.select(Location::of(ObjectKind::Kernel, 7)));
    QSignalSpy spy(&table, &DataTable::rowSelected);
    table.setRows(sampleRows(15));
    QCOMPARE(table.current()->location.id, int64_t{7});
    QCOMPARE(spy.count(), 0);
  }

  void aRefreshKeepsWhatIsSelected() {
    DataTable table("t", "Filter", columns());
    table.setRows(sampleRows(10));
    table.table()->selectRow(2);
    auto* selection = table.table()->selectionModel();
    for (const int r : {5, 7}) selection->select(table.table()->model()->index(r, 0), QItemSelectionModel::Select | QItemSelectionModel::Rows);
    const auto names = [&] {
      QStringList out;
      for (const QModelIndex& index : selection->selectedRows()) out << index.data().toString();
      out.sort();
      return out;
    };
    const QStringList before = names();
    QCOMPARE(before.size(), 3);
    TableRows rows = sampleRows(15);
    std::rotate(rows.begin(), rows.begin() + 12, rows.end());
    table.setRows(rows);
    QCOMPARE(names(), before);
    // Rows that are about no object are told apart by their names.
    for (TableRow& row : rows) row.location = {};
    table.setRows(rows);
    table.table()->selectRow(3);
    const QString chosen = table.table()->currentIndex().siblingAtColumn(0).data().toString();
    std::rotate(rows.begin(), rows.begin() + 1, rows.end());
    table.setRows(rows);
    QCOMPARE(table.table()->currentIndex().siblingAtColumn(0).data().toString(), chosen);
  }

  /// A spreadsheet would compute what begins like a formula.
  void textsAreNoFormulas() {
    DataTable table("t", "Filter", columns());
    TableRows rows = sampleRows(2);
    rows[0].cells[0].text = "=HYPERLINK(\"x\")";
    table.setRows(rows);
    QVERIFY2(table.csv().contains("\"'=HYPERLINK(\"\"x\"\")\""), qPrintable(table.csv()));
  }

  void copyAndCsv() {
    DataTable table("t", "Filter", columns());
    table.setRows(sampleRows(3));
    table.show();
    table.table()->selectRow(1);
    table.table()->setFocus();
    table.findChild<QAction*>("t.copy")->trigger();
    QCOMPARE(QApplication::clipboard()->text(), QString::fromUtf8("kernel_1\t1.00 µs\todd, \"x\""));
    QCOMPARE(table.csv().split('\n').at(2), QStringLiteral("kernel_1,1000,\"odd, \"\"x\"\"\""));
  }

  void emptyTableSaysWhy() {
    DataTable table("t", "Filter", columns());
    table.setEmptyText("No kernels", "They appear with their first launch.");
    table.show();
    auto* label = table.findChild<QLabel*>("t.empty");
    QVERIFY(label && label->isVisible() && label->text().contains("first launch"));
    table.setRows(sampleRows(1));
    QVERIFY(!label->isVisible());
  }
};

QTEST_MAIN(TableTest)
#include "table_test.moc"
