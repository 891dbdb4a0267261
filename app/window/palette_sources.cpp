#include "app/window/palette_sources.h"

#include <QCoreApplication>
#include <QPointer>
#include <algorithm>

#include "profiler/session/reader.h"
#include "views/common/fuzzy_match.h"
#include "views/find/find_model.h"

namespace fusebox::window {
namespace {

using query::SearchKind;
using views::PaletteItem;
using views::PaletteSource;

constexpr int kCandidates = 2000;  // read from the session and then ranked

struct SourceRow {
  const char* prefix;
  const char* title;
  const char* icon;
  SearchKind kind;
};
constexpr SourceRow kRows[] = {
    {"n", QT_TRANSLATE_NOOP("PaletteSources", "Node"), "graph", SearchKind::Nodes},
    {"k", QT_TRANSLATE_NOOP("PaletteSources", "Kernel"), "kernels", SearchKind::Kernels},
    {"p", QT_TRANSLATE_NOOP("PaletteSources", "Pass"), "live", SearchKind::Passes},
    {"f", QT_TRANSLATE_NOOP("PaletteSources", "File"), "source", SearchKind::Files},
    {"g", QT_TRANSLATE_NOOP("PaletteSources", "Guard"), "guards", SearchKind::Guards},
    {"d", QT_TRANSLATE_NOOP("PaletteSources", "Function"), "source", SearchKind::Frames},
};

QList<PaletteItem> ranked(const query::SearchGroup& group, const std::string& pattern,
                          const std::function<void(const views::Location&)>& open) {
  struct Hit {
    int score;
    const query::SearchHit* hit;
  };
  std::vector<Hit> hits;
  for (const auto& hit : group.hits) {
    if (const auto score = views::fuzzyScore(pattern, hit.title)) {
      hits.push_back({*score, &hit});
    } else {
      hits.push_back({-1000, &hit});  // another column holds the letters
    }
  }
  std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.score > b.score; });
  QList<PaletteItem> items;
  for (const Hit& h : hits) {
    const views::Location place = views::locationOf(group.kind, *h.hit);
    QString detail = QString::fromStdString(h.hit->detail);
    if (!h.hit->file.empty())
      detail += QStringLiteral("  ") + QString::fromStdString(views::shortPlace(h.hit->file, h.hit->line));
    const QString title = group.kind == SearchKind::Files ? QString::fromStdString(views::baseName(h.hit->title))
                                                          : QString::fromStdString(h.hit->title);
    items.append({title, detail, [open, place] { open(place); }});
  }
  return items;
}

PaletteSource settingsSource(const views::ActionRegistry& registry) {
  return {
      QStringLiteral("s"), QCoreApplication::translate("PaletteSources", "Setting"), QStringLiteral("theme"),
      [&registry](const QString& pattern, const auto& deliver) {
        std::vector<std::pair<int, PaletteItem>> hits;
        for (const auto& entry : registry.entries()) {
          if (!entry.id.startsWith(QLatin1String("layout.")) && !entry.id.startsWith(QLatin1String("theme.")) &&
              !entry.id.startsWith(QLatin1String("text.")))
            continue;
          QString text = entry.action->text();
          text.remove(QLatin1Char('&'));
          const auto score = views::fuzzyScore(pattern.toStdString(), text.toStdString());
          if (!score) continue;
          hits.push_back(
              {*score,
               {text, entry.action->isChecked() ? QCoreApplication::translate("PaletteSources", "chosen") : QString(),
                [action = QPointer<QAction>(entry.action)] {
                  if (action) action->trigger();
                }}});
        }
        std::stable_sort(hits.begin(), hits.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        QList<PaletteItem> items;
        for (auto& hit : hits) items.append(std::move(hit.second));
        deliver(items);
      }};
}

}  // namespace

QList<PaletteSource> paletteSources(const views::ActionRegistry& registry, views::SessionLink* session, QObject* owner,
                                    std::function<void(const views::Location&)> open) {
  QList<PaletteSource> out;
  for (const SourceRow& row : kRows) {
    if (!session) break;
    out.append({QString::fromLatin1(row.prefix), QCoreApplication::translate("PaletteSources", row.title),
                QString::fromLatin1(row.icon),
                [row, link = QPointer<views::SessionLink>(session), owner = QPointer<QObject>(owner), open](
                    const QString& text, const auto& deliver) {
                  if (!link || !owner) return;
                  const std::string pattern = text.toStdString();
                  link->ask<query::SearchGroup>(
                      owner, row.prefix,
                      [kind = row.kind, pattern](session::Reader& reader) {
                        return query::searchIn(reader, kind, pattern, kCandidates, query::SearchMatch::Letters);
                      },
                      [pattern, open, deliver](Result<query::SearchGroup>& group) {
                        if (group) deliver(ranked(*group, pattern, open));
                      });
                }});
  }
  out.append(settingsSource(registry));
  return out;
}

}  // namespace fusebox::window
