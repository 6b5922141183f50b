// SPDX-License-Identifier: Apache-2.0

/// Limits of the disk space, memory and time that clients can use with uploads.
///
/// A client is a principal, wherever it connects from. Without a principal it is an IPv4 address,
/// or an IPv6 network of 64 bits. Then all clients of Unix sockets count as one, and so do all
/// clients behind a proxy, unless it is one of the server's `addresses.proxies`. Numbers such as
/// 413 are the response codes with which requests beyond a limit are refused.
public struct UploadLimits: Sendable, Equatable {
  /// The most bytes of one upload, at most 2^62. A larger one is refused with 413. Default 4 GiB.
  public var maxUploadBytes: UInt64 = 4 << 30
  /// The most bytes that all unfinished uploads of one client may take. Beyond it, a create or an
  /// append is refused with 507. Each part takes 4 KiB besides its bytes, and each upload 8 KiB.
  /// Default 16 GiB.
  public var maxClientBytes: UInt64 = 16 << 30
  /// The most bytes that all unfinished uploads may take, counted as for `maxClientBytes`. Beyond
  /// it, a create or an append is refused with 507. Default 64 GiB.
  public var maxBytes: UInt64 = 64 << 30
  /// The most files that one client may finish in a `lifetime`, at least `maxParts` + 2. Beyond it,
  /// a create or a finish is refused with 507. Default 100,000.
  ///
  /// An upload counts as its parts and two more: its folder, and `fields.json`. What was used
  /// becomes free again evenly, all of it in a `lifetime`.
  public var maxClientFinishedFiles = 100_000
  /// The most bytes that one client may finish in a `lifetime`, with 4 KiB more for each file that
  /// `maxClientFinishedFiles` counts. Beyond it, a create or a finish is refused with 507. At least
  /// `maxUploadBytes` + 4 KiB * (`maxParts` + 2). Default 64 GiB.
  public var maxClientFinishedBytes: UInt64 = 64 << 30
  /// The most files that all clients may finish in a `lifetime`, counted as for
  /// `maxClientFinishedFiles`, and at least as many. Beyond it, a create or a finish is refused
  /// with 507. Default 1,000,000.
  public var maxFinishedFiles = 1_000_000
  /// The most bytes that all clients may finish in a `lifetime`, counted as for
  /// `maxClientFinishedBytes`, and at least as many. Beyond it, a create or a finish is refused
  /// with 507. Default 1 TiB.
  public var maxFinishedBytes: UInt64 = 1 << 40
  /// The most unfinished uploads of one client, at least 1. Another one is refused with 429.
  /// Default 16.
  public var maxClientUploads = 16
  /// The most unfinished uploads of all clients, at least 1. Another one is refused with 429.
  /// Default 1,024.
  public var maxUploads = 1_024
  /// The most appends of one client at the same time, at least 1. Another one is refused with 429.
  /// Default 4.
  public var maxClientAppends = 4
  /// The most appends of all clients at the same time, at least 1. Another one is refused with 429.
  /// Default 64.
  public var maxAppends = 64
  /// The most bytes of one append, at least 1. A larger one ends with 413, and the bytes up to the
  /// limit are kept. Default 8 MiB.
  public var maxAppendBytes = 8 << 20
  /// The most parts of one upload, 1 to 2^32. An upload with more is refused with 413. Default
  /// 1,000.
  public var maxParts = 1_000
  /// How long an unfinished upload is kept after its last append, and how long a finished one is
  /// remembered: 1 s to 2^31 s. Default 24 h.
  public var lifetime: Duration = .seconds(86_400)
  /// The longest wait for the next bytes of an append; above zero. After it, the append ends with
  /// 408, and the bytes that have arrived are kept. Default 60 s.
  public var itemTimeout: Duration = .seconds(60)
  /// The fewest bytes per second of an append; 0 means no bound. A slower append ends with 408, and
  /// the bytes that have arrived are kept. Default 1,000.
  ///
  /// The rate is the average over each 30 seconds in which the server waits for bytes; the first 30
  /// are not judged. It is judged only when bytes arrive: `itemTimeout` bounds the wait for them.
  public var minAppendRate = 1_000

  /// Makes limits with the defaults.
  public init() {}

  // MARK: Fixed

  /// The bytes that a file is taken to need besides its content: a block, and entries of the file
  /// system.
  static let blockBytes: UInt64 = 4_096
  /// The most bytes of the name of a field, of a file's name, and of a media type.
  static let mostTextBytes = 1_024
  /// The most bytes of a create request.
  static let mostRequestBytes = 262_144
  /// The most bytes of any other request.
  static let mostOtherRequestBytes = 4_096
  /// The most bytes of the value of a field.
  static let mostFieldBytes = 65_536
  /// The most bytes of all values of an upload's fields.
  static let mostFieldsBytes: UInt64 = 1 << 20
  /// The most bytes of a create's key.
  static let mostKeyBytes = 64
  /// The most bytes of all create requests whose uploads are unfinished.
  static let mostRequestsBytes = 32 << 20
  /// The most finished uploads of one client that are remembered.
  static let mostFinishedOfClient = 256
  /// The most finished uploads that are remembered.
  static let mostFinished = 10_000
  /// The most requests of one client that wait for files at the same time, appends aside.
  static let mostRequestsOfClient = 32
  /// The most bytes of all appends that may wait to be written.
  static let mostWaitingBytes = 64 << 20

  /// The first field that is out of its range, and why; nil if all are in range.
  var objection: (field: String, reason: String)? {
    let counts = [
      ("maxClientUploads", maxClientUploads), ("maxUploads", maxUploads),
      ("maxClientAppends", maxClientAppends), ("maxAppends", maxAppends),
      ("maxAppendBytes", maxAppendBytes), ("maxParts", maxParts),
    ]
    for (field, value) in counts where value < 1 { return (field, "it is below 1") }
    if maxParts > 1 << 32 { return ("maxParts", "it is above 2 to the power of 32") }
    if maxUploadBytes > 1 << 62 { return ("maxUploadBytes", "it is above 2 to the power of 62") }
    if maxClientFinishedFiles < maxParts + 2 {
      return ("maxClientFinishedFiles", "it is below maxParts and 2")
    }
    if maxFinishedFiles < maxClientFinishedFiles {
      return ("maxFinishedFiles", "it is below maxClientFinishedFiles")
    }
    if maxClientFinishedBytes < maxUploadBytes + UInt64(maxParts + 2) * Self.blockBytes {
      return ("maxClientFinishedBytes", "it is below maxUploadBytes and 4,096 for each part")
    }
    if maxFinishedBytes < maxClientFinishedBytes {
      return ("maxFinishedBytes", "it is below maxClientFinishedBytes")
    }
    if lifetime < .seconds(1) { return ("lifetime", "it is below a second") }
    if lifetime > .seconds(1 << 31) { return ("lifetime", "it is above 2,147,483,648 seconds") }
    if minAppendRate < 0 { return ("minAppendRate", "it is below 0") }
    if itemTimeout <= .zero { return ("itemTimeout", "it is not above zero") }
    return nil
  }
}
