#include "engine/capture/guards/number_profile.h"

#include <nlohmann/json.hpp>

namespace fusebox::capture {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostSeen = 64;

Json toJson(const PlaceProfile& place) {
  Json numbers = Json::object();
  for (const auto& [key, n] : place.numbers.numbers()) {
    Json number = {{"seen", n.seen}, {"pinned", n.pinned}};
    if (n.changed) number["changed"] = *n.changed;
    numbers[key] = std::move(number);
  }
  return {{"numbers", std::move(numbers)}, {"floats", place.floats}, {"storage", place.numbers.storageMatters}};
}

PlaceProfile placeFrom(const Json& json) {
  PlaceProfile place;
  place.floats = json.at("floats").get<std::set<std::string>>();
  place.numbers.storageMatters = json.at("storage").get<bool>();
  NumberHistory read;
  for (const auto& [key, item] : json.at("numbers").items()) {
    NumberHistory::Number number;
    number.seen = item.at("seen").get<decltype(number.seen)>();
    if (number.seen.size() > kMostSeen) number.seen.resize(kMostSeen);
    number.pinned = item.at("pinned").get<int>();
    if (item.contains("changed")) number.changed = item.at("changed").get<std::pair<int64_t, int64_t>>();
    read.restore(key, std::move(number));
  }
  place.numbers.join(read);  // captures are numbered anew
  return place;
}

}  // namespace

void join(Profile& into, const Profile& other) {
  for (const auto& [name, theirs] : other) {
    PlaceProfile& place = into[name];
    place.numbers.join(theirs.numbers);
    place.floats.insert(theirs.floats.begin(), theirs.floats.end());
  }
}

std::string writeProfile(const Profile& profile) {
  Json places = Json::object();
  for (const auto& [name, place] : profile) places[name] = toJson(place);
  return Json({{"places", std::move(places)}}).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Profile> readProfile(std::string_view text) {
  const Json root = Json::parse(text, nullptr, false);
  try {
    Profile profile;
    for (const auto& [name, place] : root.at("places").items()) profile.emplace(name, placeFrom(place));
    return profile;
  } catch (const Json::exception&) {
    return fail(ErrorCode::Corrupt, "it is no profile");
  }
}

}  // namespace fusebox::capture
