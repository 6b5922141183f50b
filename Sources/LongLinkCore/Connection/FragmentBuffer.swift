// SPDX-License-Identifier: Apache-2.0

/// The bytes of a message or item whose fragments are arriving.
///
/// They are kept in pieces, and joined when the last of them has come. A single array would double
/// as it grows: it would allocate up to twice the bytes that were counted, and keep them.
struct FragmentBuffer: Equatable, Sendable {
  private var pieces: [[UInt8]] = []
  /// The number of bytes.
  private(set) var count = 0
  /// The number of bytes that are allocated.
  private(set) var capacity = 0
  /// The number of allocated bytes that are not used.
  var room: Int { capacity - count }

  /// The least capacity of a piece, in bytes, so that tiny fragments share one.
  static let leastPiece = 256
  /// The most capacity, in bytes, that a piece gets for fragments that have not arrived.
  static let mostPiece = 65_536
  /// The memory of a piece besides its capacity: its header, its array slot, and rounding.
  static let pieceOverhead = 64

  /// Appends a fragment.
  ///
  /// `credit` is the number of bytes that may still follow. A new piece has room for at most that
  /// many, and at most half as many as have arrived.
  mutating func append(_ fragment: UnsafeRawBufferPointer, credit: Int) {
    var rest = unsafe fragment[...]
    if let last = pieces.indices.last {
      let fitting = unsafe rest.prefix(pieces[last].capacity - pieces[last].count)
      unsafe pieces[last].append(contentsOf: fitting)
      unsafe rest = rest.dropFirst(fitting.count)
    }
    count += fragment.count
    guard unsafe !rest.isEmpty else { return }
    let room = min(max(count / 2, FragmentBuffer.leastPiece), FragmentBuffer.mostPiece, credit)
    var piece: [UInt8] = []
    unsafe piece.reserveCapacity(max(rest.count, room))
    unsafe piece.append(contentsOf: rest)
    capacity += piece.capacity + FragmentBuffer.pieceOverhead
    pieces.append(piece)
  }

  /// Returns the whole message in an array of its size.
  consuming func joined() -> [UInt8] {
    if pieces.count == 1, pieces[0].capacity - pieces[0].count < 16 { return pieces[0] }
    return unsafe joined(with: UnsafeRawBufferPointer(start: nil, count: 0))
  }

  /// Returns the whole message, with the last fragment after the others, in an array of its size.
  ///
  /// The pieces are freed one by one, while the array fills.
  consuming func joined(with last: UnsafeRawBufferPointer) -> [UInt8] {
    var whole: [UInt8] = []
    whole.reserveCapacity(count + last.count)
    for index in pieces.indices {
      whole.append(contentsOf: pieces[index])
      pieces[index] = []
    }
    unsafe whole.append(contentsOf: last)
    return whole
  }
}
