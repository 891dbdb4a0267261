#include "engine/aot/forward_streams.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace fusebox::aot {
namespace {

void follow(c10::Stream later, c10::Stream earlier) {
  c10::Event event(later.device_type());
  event.record(earlier);
  event.block(later);
}

}  // namespace

void ForwardStreams::note(const std::vector<c10::Device>& devices) {
  streams_.clear();
  for (c10::Device device : devices) streams_.push_back(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

ForwardStreams::Scope::Scope(const ForwardStreams& streams) {
  for (c10::Stream stream : streams.streams_) {
    const c10::impl::VirtualGuardImpl torch(stream.device_type());
    const c10::Stream now = torch.getStream(stream.device());
    if (now == stream) continue;
    follow(stream, now);
    torch.exchangeStream(stream);
    exchanged_.push_back({stream, now});
  }
}

ForwardStreams::Scope::~Scope() {
  for (const Exchange& e : exchanged_) {
    try {
      follow(e.before, e.forward);
    } catch (const std::exception&) {  // a device that failed; whoever uses it next is told
    }
    c10::impl::VirtualGuardImpl(e.before.device_type()).exchangeStream(e.before);
  }
}

}  // namespace fusebox::aot
