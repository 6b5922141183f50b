// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkServer
internal import LongLinkTransport

/// One connection, open or closed, as pages show it. Texts of peers are cut, but not escaped.
struct ConnectionRow: Encodable {
  struct Stream: Encodable {
    let serial: UInt32
    let method: String
    let credit: Int
  }

  struct UnderWay: Encodable {
    let serial: UInt32
    let method: String
    let ageMs: Int64
  }

  let id: UInt64
  let peer: String
  let name: String
  let principal: Nullable<String>
  let state: String
  let ageMs: Int64
  let roundTripMs: Nullable<Double>
  let inFlight: Int
  let streams: [Stream]
  let bytesIn: UInt64
  let bytesOut: UInt64
  let features: [String]
  let tls: Nullable<String>
  // Of closed ones alone.
  private(set) var reason: String?
  private(set) var detail: String?
  private(set) var endedMsAgo: Int64?
  private(set) var underWay: [UnderWay]?
  private(set) var underWayCount: Int?

  /// Makes the row of an open connection. `names` names methods by their types.
  init(_ view: ConnectionView, _ name: (MessageType) -> String) {
    id = view.id
    peer = Self.text(view.address)
    self.name = view.name.cutForPages
    principal = Nullable(view.principal?.cutForPages)
    state = view.isDraining ? "draining" : "open"
    ageMs = view.age / 1_000_000
    roundTripMs = Nullable(view.roundTrip.map { Double($0 / 1_000) / 1_000 })
    inFlight = view.inFlight
    streams = view.streams.map { stream in
      Stream(
        serial: stream.serial, method: stream.type.map(name) ?? "", credit: stream.credit)
    }
    bytesIn = view.bytesReceived
    bytesOut = view.bytesSent
    features = PageText.names(of: view.features)
    tls = Nullable(PageText.tls(view.security))
  }

  /// Makes the row of a connection that has ended.
  init(_ ended: EndedConnection, at now: LinkInstant, _ name: (MessageType, String?) -> String) {
    id = ended.id
    peer = Self.text(ended.address)
    self.name = ended.name
    principal = Nullable(ended.principal)
    state = "closed"
    ageMs = (ended.ended - ended.began) / 1_000_000
    roundTripMs = Nullable(ended.roundTrip.map { Double($0 / 1_000) / 1_000 })
    inFlight = 0
    streams = []
    bytesIn = ended.bytesReceived
    bytesOut = ended.bytesSent
    features = PageText.names(of: ended.features)
    tls = Nullable(PageText.tls(ended.security))
    reason = ended.reason.rawValue
    detail = ended.detail
    endedMsAgo = max(0, (now - ended.ended) / 1_000_000)
    underWay = ended.underWay.map { request in
      UnderWay(
        serial: request.serial, method: name(request.type, request.method),
        ageMs: (ended.ended - request.began) / 1_000_000)
    }
    underWayCount = ended.underWayCount
  }

  private static func text(_ address: SocketAddress?) -> String {
    address.map(String.init(describing:)) ?? "unknown"
  }

  // MARK: For people

  static let openHeadings = [
    "id", "state", "peer", "name", "principal", "age", "round trip", "in flight", "streams", "in",
    "out", "tls",
  ]
  static let closedHeadings = [
    "id", "ended", "reason", "peer", "name", "principal", "age", "under way", "in", "out", "detail",
  ]

  /// The cells of a table, escaped for terminals.
  var cells: [String] {
    let name = "\(PeerText(name))"
    let principal = "\(PeerText(principal.value ?? ""))"
    let age = PageText.time(ageMs * 1_000_000)
    let bytes = [PageText.bytes(Double(bytesIn)), PageText.bytes(Double(bytesOut))]
    guard let reason else {
      return [
        "\(id)", state, peer, name, principal, age,
        roundTripMs.value.map { PageText.number($0) + " ms" } ?? "", "\(inFlight)",
        "\(streams.count)",
      ] + bytes + [tls.value ?? ""]
    }
    return [
      "\(id)", PageText.time((endedMsAgo ?? 0) * 1_000_000) + " ago", reason, peer, name, principal,
      age, "\(underWayCount ?? 0)",
    ] + bytes + [detail ?? ""]
  }

  /// All that is known, as names and values escaped for terminals.
  var details: [(name: String, value: String)] {
    let headings = reason == nil ? Self.openHeadings : Self.closedHeadings
    var details = zip(headings, cells).map { (name: $0, value: $1) }
    if reason != nil { details.append(("tls", tls.value ?? "")) }
    details.append(("features", features.joined(separator: ", ")))
    for stream in streams {
      details.append(
        ("stream \(stream.serial)", "\(stream.method), credit \(stream.credit)"))
    }
    for request in underWay ?? [] {
      details.append(
        (
          "request \(request.serial)",
          "\(request.method), since \(PageText.time(request.ageMs * 1_000_000))"
        ))
    }
    return details
  }
}
#endif
