// SPDX-License-Identifier: Apache-2.0

/// A subject of the benchmark: an echo server and a client, each in its own process.
package struct Subject: Sendable {
  package let name: String
  package let kind: Kind
  /// Whether it is measured at a work and placement.
  package let isMeasured: @Sendable (Work, Placement) -> Bool

  package enum Kind: Sendable {
    /// A peer that keeps the contract of `BenchSupport`. Its program is a path, or a name in the
    /// driver's folder.
    case peer(program: String, server: [String], client: [String])
    case redis
  }

  package init(
    _ name: String, _ kind: Kind,
    where isMeasured: @escaping @Sendable (Work, Placement) -> Bool = { work, _ in
      work.direction == nil
    }
  ) {
    self.name = name
    self.kind = kind
    self.isMeasured = isMeasured
  }

  package static let floor = Subject("floor", peer("FloorPeer")) { _, _ in true }

  /// - Parameters:
  ///   - grpc: The path of the gRPC peer; nil to skip it.
  package static func all(isQuick: Bool, grpc: String?, hasRedis: Bool) -> [Subject] {
    var subjects = [
      floor,
      Subject("longlink", peer("LongLinkPeer")) { _, _ in true },
      Subject("longlink pool", peer("LongLinkPeer", client: ["--style=pool"])) { work, _ in
        work.body == 64
      },
      Subject("longlink typed", peer("LongLinkPeer", client: ["--typed"])) { work, _ in
        work.shape == .many && work.body == 64
      },
      Subject("nio", peer("NIOPeer")),
    ]
    if !isQuick { subjects += further }
    if let grpc {
      subjects.append(
        Subject("grpc-swift", peer(grpc)) { work, _ in work.body == 64 && work.direction == nil })
    }
    if hasRedis {
      subjects.append(
        Subject("redis", .redis) { work, _ in work.body < 65_536 && work.direction == nil })
    }
    return subjects
  }

  private static let further = [
    Subject("longlink callbacks", peer("LongLinkPeer", client: ["--style=callbacks"])) { work, _ in
      work.body == 64 && work.direction == nil
    },
    // A thread for each request in flight.
    Subject("longlink blocking", peer("LongLinkPeer", client: ["--style=blocking"])) { work, _ in
      work.body == 64 && (work.shape == .single || work.shape == .many)
    },
    Subject("longlink async handler", peer("LongLinkPeer", server: ["--asynchronous"])) { work, _ in
      work.body == 64 && work.direction == nil
    },
    // What most services write.
    Subject(
      "longlink typed async", peer("LongLinkPeer", server: ["--asynchronous"], client: ["--typed"])
    ) { work, _ in work.shape == .many && work.body == 64 },
    Subject("longlink once", peer("LongLinkPeer", server: ["--once"], client: ["--once"])) {
      work, _ in work.body == 64 && work.direction == nil
    },
    Subject(
      "longlink once async",
      peer("LongLinkPeer", server: ["--once", "--asynchronous"], client: ["--once"])
    ) { work, _ in work.body == 64 && work.direction == nil },
    Subject("longlink TLS", peer("LongLinkPeer", server: ["--tls"], client: ["--tls"])) { work, _ in
      work.body == 64 && work.direction == nil
    },
    Subject(
      "nio async", peer("NIOPeer", server: ["--style=async"], client: ["--style=async"])
    ) { work, _ in work.body == 64 && work.direction == nil },
    Subject(
      "floor spinning", peer("FloorPeer", server: ["--spin"], client: ["--spin"]),
      where: isSpinningOfUse),
    // Longer than any response takes.
    Subject(
      "longlink spinning",
      peer("LongLinkPeer", server: ["--busy-poll=1000"], client: ["--busy-poll=1000"]),
      where: isSpinningOfUse),
  ]

  /// Two processes that spin on the same CPU would only block each other.
  @Sendable private static func isSpinningOfUse(_ work: Work, _ placement: Placement) -> Bool {
    work.body == 64 && work.shape == .single && placement == .free
  }

  private static func peer(
    _ program: String, server: [String] = [], client: [String] = []
  ) -> Kind {
    .peer(program: program, server: server, client: client)
  }
}
