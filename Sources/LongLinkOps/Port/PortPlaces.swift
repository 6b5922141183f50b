// SPDX-License-Identifier: Apache-2.0

#if Operations
/// The places of the port's connections. When all are taken, one of the connections that have no
/// trusted request makes room for a new one: the one that has had none for longest.
struct PortPlaces {
  private var handlers: [PortHandler] = []
  private var refusals: [PortHandler] = []

  var all: [PortHandler] { handlers + refusals }

  /// Gives a new connection a place, or else makes it one that is refused when its request has
  /// come: `isPlace` is false. The caller closes the connection that has made room.
  mutating func enter(_ handler: PortHandler) -> (isPlace: Bool, evicted: PortHandler?) {
    guard handlers.count >= PortLimits.connections else {
      handlers.append(handler)
      return (true, nil)
    }
    let idlest = handlers.indices.filter { !handlers[$0].isServed }
      .min { handlers[$0].idleSince < handlers[$1].idleSince }
    guard let idlest else {
      let evicted = refusals.count >= PortLimits.refusals ? refusals.removeFirst() : nil
      refusals.append(handler)
      return (false, evicted)
    }
    let evicted = handlers.remove(at: idlest)
    handlers.append(handler)
    return (true, evicted)
  }

  /// Frees the place of a connection that has ended.
  mutating func leave(_ handler: PortHandler) {
    handlers.removeAll { $0 === handler }
    refusals.removeAll { $0 === handler }
  }
}
#endif
