#pragma once

#include <QAbstractButton>
#include <QLabel>

namespace fusebox::views {

/// A number of the overview with its title above and a word about it below. What it counts is its tooltip; a click leads to the list of that.
class NumberCard : public QAbstractButton {
  Q_OBJECT
 public:
  /// Itself it is `overview.card.NAME`, the labels are `overview.number.NAME` and `overview.note.NAME`.
  NumberCard(const QString& name, const QString& title, const QString& counts);

  QLabel* value() const { return value_; }
  QLabel* note() const { return note_; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QLabel *value_, *note_;
};

}  // namespace fusebox::views
