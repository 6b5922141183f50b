// SPDX-License-Identifier: Apache-2.0

package import BenchSupport

/// A load: its shape and the size of bodies.
package struct Work: Hashable, Codable, Sendable {
  package enum Shape: String, Codable, CaseIterable, Sendable {
    /// One connection, one in flight.
    case single = "a"
    /// One connection, 128 in flight.
    case many = "b"
    /// 64 connections, 16 in flight on each.
    case wide = "c"
    /// Items from the server, in one stream.
    case down = "d"
    /// Items to the server, in one stream.
    case up = "u"
    /// Items from the server, and one request of 64 bytes after the other on the same connection.
    case beside = "m"
  }

  package let shape: Shape
  /// The size of bodies or items in bytes.
  package let body: Int

  package init(shape: Shape, body: Int) {
    self.shape = shape
    self.body = body
  }

  /// The direction of the items, if the work is a stream.
  package var direction: StreamLoad.Direction? {
    switch shape {
    case .single, .many, .wide: nil
    case .down: .down
    case .up: .up
    case .beside: .beside
    }
  }

  package var connections: Int { shape == .wide ? 64 : 1 }

  package var inFlight: Int {
    switch shape {
    case .single, .down, .up, .beside: 1
    case .many: 128
    case .wide: 16
    }
  }

  /// The name in options, such as `b64`.
  package var key: String { "\(shape.rawValue)\(body)" }

  package var name: String {
    "(\(shape.rawValue)) \(body < 1_024 ? "\(body) B" : "\(body / 1_024) KiB")"
  }

  /// What is under way.
  package var load: String {
    switch direction {
    case nil: "\(connections) × \(inFlight) in flight"
    case .down: "items from the server"
    case .up: "items to the server"
    case .beside: "items from the server beside requests, which are timed"
    }
  }

  package static let quick = [.single, .many, .wide].map { Work(shape: $0, body: 64) }

  package static let all =
    quick + [
      Work(shape: .single, body: 1_024), Work(shape: .many, body: 1_024),
      Work(shape: .wide, body: 1_024), Work(shape: .single, body: 65_536),
      Work(shape: .many, body: 65_536), Work(shape: .wide, body: 65_536),
      Work(shape: .down, body: 64), Work(shape: .up, body: 64),
      Work(shape: .down, body: 65_536), Work(shape: .up, body: 65_536),
      Work(shape: .beside, body: 64), Work(shape: .beside, body: 65_536),
    ]
}

/// The CPUs that client and server run on.
package enum Placement: String, CaseIterable, Codable {
  /// The system's choice.
  case free
  /// Both on CPU 0.
  case one
}
