#include "profiler/importers/json_slices.h"

#include <array>
#include <cstring>

namespace fusebox::importing {
namespace {

constexpr size_t kChunk = size_t{1} << 20;
constexpr size_t kMostValueBytes = size_t{8} << 20;
constexpr size_t kMostKeyBytes = 4096;
constexpr uint64_t kMostWasted = uint64_t{2}
                                 << 30;  // read again while looking for the next event; keeps hostile files short

bool isSpace(int c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Members that events of all producers begin with.
constexpr std::array<std::string_view, 14> kEventKeys{"\"ph\"", "\"name\"", "\"cat\"",  "\"pid\"", "\"tid\"",
                                                      "\"ts\"", "\"dur\"",  "\"args\"", "\"id\"",  "\"s\"",
                                                      "\"bp\"", "\"tts\"",  "\"id2\"",  "\"sf\""};

}  // namespace

bool JsonSlices::more() {
  if (atEnd_) return false;
  // What lies before the current slice is done with.
  const size_t keep = std::min(sliceStart_, position_);
  if (keep > 0 && (keep > kChunk || keep == end_)) {
    std::memmove(buffer_.data(), buffer_.data() + keep, end_ - keep);
    position_ -= keep;
    sliceStart_ -= keep;
    end_ -= keep;
  }
  if (buffer_.size() < end_ + kChunk + kPadding) buffer_.resize(end_ + kChunk + kPadding);
  const size_t got = stream_.read(buffer_.data() + end_, kChunk);
  end_ += got;
  std::memset(buffer_.data() + end_, 0, kPadding);
  atEnd_ = got == 0;
  return got > 0;
}

int JsonSlices::peek(size_t ahead) {
  while (position_ + ahead >= end_) {
    if (!more()) return -1;
  }
  return static_cast<unsigned char>(buffer_[position_ + ahead]);
}

int JsonSlices::skipSpace() {
  for (;;) {
    const int c = peek();
    if (!isSpace(c)) return c;
    ++position_;
  }
}

JsonSlices::Slice JsonSlices::finish(std::string why) {
  if (ending_.empty()) ending_ = stream_.damage().empty() ? std::move(why) : stream_.damage();
  state_ = State::Done;
  return {};
}

JsonSlices::Slice JsonSlices::next() {
  for (;;) {
    sliceStart_ = position_;
    std::optional<Slice> slice;
    switch (state_) {
      case State::Start:
        slice = startOfFile();
        break;
      case State::Members:
        slice = nextMember();
        break;
      case State::Events:
        slice = nextEvent();
        break;
      default:
        return {};
    }
    if (slice) return std::move(*slice);
  }
}

std::optional<JsonSlices::Slice> JsonSlices::startOfFile() {
  if (peek() == 0xef && peek(1) == 0xbb && peek(2) == 0xbf) position_ += 3;
  const int c = skipSpace();
  if (c == '[' || c == '{') {
    ++position_;
    inObject_ = c == '{';
    state_ = inObject_ ? State::Members : State::Events;
    return std::nullopt;
  }
  return finish(c < 0 ? "the file is empty" : "the file is no JSON array or object");
}

JsonSlices::Slice JsonSlices::damaged(const char* why) { return {Kind::Damaged, {}, why}; }

// A value that starts with a bracket, up to its partner. JSON's strings hold no raw line feed: one there means that a
// quote is missing, which would otherwise swallow the events that follow.
std::string_view JsonSlices::balanced(size_t limit, const char*& problem) {
  size_t depth = 0, at = 0;
  bool inString = false;
  for (;; ++at) {
    if (position_ + at >= end_ && peek(at) < 0) {
      problem = "it is cut off by the end of the file";
      return {};
    }
    const char c = buffer_[position_ + at];
    if (inString) {
      if (c == '\\') {
        ++at;
      } else if (c == '"') {
        inString = false;
      } else if (c == '\n') {
        problem = "a string is not closed";
        break;
      }
      continue;
    }
    if (c == '"') inString = true;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) {
      const std::string_view all(buffer_.data() + position_, at + 1);
      position_ += at + 1;
      return all;
    }
    if (at > limit) {
      problem = "it is longer than any event can be";
      break;
    }
  }
  wasted_ += at;
  return {};
}

std::string_view JsonSlices::scalar(size_t limit) {
  size_t at = 0;
  bool inString = false;
  for (; at < limit; ++at) {
    const int c = peek(at);
    if (c < 0) break;
    if (inString && c == '\\') {
      ++at;
      continue;
    }
    if (c == '"') inString = !inString;
    if (!inString && (c == ',' || c == '}' || c == ']')) break;
  }
  if (position_ + at > end_) at = end_ - position_;
  std::string_view all(buffer_.data() + position_, at);
  position_ += at;
  while (!all.empty() && isSpace(static_cast<unsigned char>(all.back()))) all.remove_suffix(1);
  return all;
}

std::optional<JsonSlices::Slice> JsonSlices::nextMember() {
  int c = skipSpace();
  while (c == ',') ++position_, c = skipSpace();
  if (c < 0) return finish("the file is cut short");
  if (c == '}') return finish({});
  sliceStart_ = position_;
  const std::string_view quoted = c == '"' ? [&] {
    size_t at = 1;
    for (; at < kMostKeyBytes; ++at) {
      const int k = peek(at);
      if (k < 0 || k == '\n') return std::string_view();
      if (k == '\\') ++at;
      if (k == '"') return std::string_view(buffer_.data() + position_ + 1, at - 1);
    }
    return std::string_view();
  }() : std::string_view();
  if (c != '"' || quoted.data() == nullptr) {
    state_ = State::Events;  // perhaps events come later; then they are found
    return seekEvent() ? damaged("what stands between the members is no JSON")
                       : finish("what stands between the members is no JSON");
  }
  Slice slice{Kind::Value, std::string(quoted), {}};
  position_ += quoted.size() + 2;
  if (skipSpace() == ':') ++position_;
  c = skipSpace();
  if (slice.key == "traceEvents" && c == '[') {
    ++position_;
    state_ = State::Events;
    return std::nullopt;
  }
  sliceStart_ = position_;
  if (c != '{' && c != '[') {
    slice.text = scalar(kMostValueBytes);
    return slice;
  }
  const char* problem = nullptr;
  slice.text = balanced(kMostValueBytes, problem);
  if (!problem) return slice;
  state_ = State::Events;
  return seekEvent() ? damaged(problem) : finish(problem);
}

std::optional<JsonSlices::Slice> JsonSlices::nextEvent() {
  int c = skipSpace();
  while (c == ',') ++position_, c = skipSpace();
  if (c < 0) return finish(inObject_ ? "the file is cut short" : "");  // Chrome's array form may end anywhere
  if (c == ']') {
    ++position_;
    if (!inObject_) return finish({});
    state_ = State::Members;
    return std::nullopt;
  }
  sliceStart_ = position_;
  const char* problem = "what stands between the events is no event";
  if (c == '{') {
    problem = nullptr;
    const std::string_view text = balanced(kMostSliceBytes, problem);
    if (!problem) return Slice{Kind::Event, {}, text};
  }
  if (!seekEvent()) {
    Slice last = damaged(problem);
    finish("the file is cut short");
    return last;
  }
  return damaged(problem);
}

void JsonSlices::resynchronise() {
  wasted_ += position_ - sliceStart_;
  position_ = sliceStart_;
  if (!seekEvent()) finish("the file is cut short");
}

bool JsonSlices::looksLikeEvent(size_t at) {
  for (size_t before = at; before > 0;) {
    const int c = static_cast<unsigned char>(buffer_[--before]);
    if (isSpace(c)) continue;
    if (c != ',' && c != '[') return false;
    break;
  }
  size_t after = at + 1 - position_;
  while (isSpace(peek(after))) ++after;
  if (peek(after) != '"') return false;
  (void)peek(after + 8);
  const std::string_view rest(buffer_.data() + position_ + after, std::min<size_t>(8, end_ - position_ - after));
  for (const auto key : kEventKeys) {
    if (rest.starts_with(key)) return true;
  }
  return false;
}

// Moves to the next place behind the current byte where an event may begin.
bool JsonSlices::seekEvent() {
  if (wasted_ > kMostWasted) {
    ending_ = "too much of the file is damaged; reading stopped there";
    return false;
  }
  ++position_;
  for (;;) {
    if (position_ >= end_ && !more()) return false;
    const void* found = std::memchr(buffer_.data() + position_, '{', end_ - position_);
    if (!found) {
      position_ = end_;
      sliceStart_ = position_ > 64 ? position_ - 64 : 0;  // what came before is looked at
      continue;
    }
    position_ = static_cast<size_t>(static_cast<const char*>(found) - buffer_.data());
    if (looksLikeEvent(position_)) return true;
    ++position_;
  }
}

}  // namespace fusebox::importing
