// SPDX-License-Identifier: Apache-2.0

/// A load: its shape and the size of bodies.
package struct Work: Hashable, Codable, Sendable {
  package enum Shape: String, Codable, CaseIterable, Sendable {
    /// One connection, one in flight.
    case single = "a"
    /// One connection, 128 in flight.
    case many = "b"
    /// 64 connections, 16 in flight on each.
    case wide = "c"
  }

  package let shape: Shape
  /// The size of bodies in bytes.
  package let body: Int

  package init(shape: Shape, body: Int) {
    self.shape = shape
    self.body = body
  }

  package var connections: Int { shape == .wide ? 64 : 1 }

  package var inFlight: Int {
    switch shape {
    case .single: 1
    case .many: 128
    case .wide: 16
    }
  }

  /// The name in options, such as `b64`.
  package var key: String { "\(shape.rawValue)\(body)" }

  package var name: String {
    "(\(shape.rawValue)) \(body < 1_024 ? "\(body) B" : "\(body / 1_024) KiB")"
  }

  package static let quick = Shape.allCases.map { Work(shape: $0, body: 64) }

  package static let all =
    quick + [
      Work(shape: .single, body: 1_024), Work(shape: .many, body: 1_024),
      Work(shape: .wide, body: 1_024), Work(shape: .single, body: 65_536),
      Work(shape: .many, body: 65_536), Work(shape: .wide, body: 65_536),
    ]
}

/// The CPUs that client and server run on.
package enum Placement: String, CaseIterable, Codable {
  /// The system's choice.
  case free
  /// Both on CPU 0.
  case one
}
