// SPDX-License-Identifier: Apache-2.0

#if Operations
/// The places of the port's connections. When all are taken, the connection that has been without
/// a whole request for longest makes room for a new one.
struct PortPlaces {
  enum Entry {
    case place
    /// All others run requests: the connection is refused when its request has come.
    case refusal
  }

  private var handlers: [PortHandler] = []
  private var refusals: [PortHandler] = []

  var all: [PortHandler] { handlers + refusals }

  /// Gives a new connection a place, or that of a refused one; nil if there is neither. The caller
  /// closes the connection that has made room.
  mutating func enter(_ handler: PortHandler) -> (entry: Entry?, evicted: PortHandler?) {
    var evicted: PortHandler?
    if handlers.count >= PortLimits.connections {
      let idlest = handlers.indices.filter { handlers[$0].isIdle }
        .min { handlers[$0].idleSince < handlers[$1].idleSince }
      guard let idlest else {
        guard refusals.count < PortLimits.refusals else { return (nil, nil) }
        refusals.append(handler)
        return (.refusal, nil)
      }
      evicted = handlers.remove(at: idlest)
    }
    handlers.append(handler)
    return (.place, evicted)
  }

  /// Frees the place of a connection that has ended.
  mutating func leave(_ handler: PortHandler) {
    handlers.removeAll { $0 === handler }
    refusals.removeAll { $0 === handler }
  }
}
#endif
