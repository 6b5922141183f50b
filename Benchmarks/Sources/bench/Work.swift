/// What is to be done.
struct Work: Hashable, Codable, Sendable {
  enum Shape: String, Codable, CaseIterable, Sendable {
    /// One connection, one in flight.
    case single = "a"
    /// One connection, 128 in flight.
    case many = "b"
    /// 64 connections, 16 in flight on each.
    case wide = "c"
  }

  let shape: Shape
  /// Bytes.
  let body: Int

  var connections: Int { shape == .wide ? 64 : 1 }

  var inFlight: Int {
    switch shape {
    case .single: 1
    case .many: 128
    case .wide: 16
    }
  }

  /// As options name it, such as `b64`.
  var key: String { "\(shape.rawValue)\(body)" }

  var name: String { "(\(shape.rawValue)) \(body < 1_024 ? "\(body) B" : "\(body / 1_024) KiB")" }

  static let quick = Shape.allCases.map { Work(shape: $0, body: 64) }

  static let all =
    quick + [
      Work(shape: .single, body: 1_024), Work(shape: .many, body: 1_024),
      Work(shape: .wide, body: 1_024), Work(shape: .single, body: 65_536),
      Work(shape: .many, body: 65_536), Work(shape: .wide, body: 65_536),
    ]
}

/// Which CPUs client and server run on.
enum Placement: String, CaseIterable, Codable {
  /// Wherever the system puts them.
  case free
  /// Both on CPU 0.
  case one
}
