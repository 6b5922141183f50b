// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The positions of the fields in one direction, computed once instead of for each frame.
package struct FramePlan: Equatable, Sendable {
  /// An integer in a header or trailer.
  package struct Slot: Equatable, Sendable {
    /// The offset from the start of the frame, or, in the trailer, from the end of the body.
    package let offset: Int
    package let width: Int
    package let isLittle: Bool
    package let isTrailer: Bool
  }

  /// A constant integer.
  struct Literal: Equatable, Sendable {
    let slot: Slot
    let value: UInt64
  }

  /// Bytes with a constant value, which receivers ignore.
  struct Filler: Equatable, Sendable {
    let slot: Slot
    let value: UInt8
  }

  package struct Sum: Equatable, Sendable {
    package let slot: Slot
    package let algorithm: FrameLayout.Checksum
    /// The covered ranges of the header, whether the body is covered, and the ranges of the
    /// trailer.
    package fileprivate(set) var header: [Range<Int>] = []
    package fileprivate(set) var body = false
    package fileprivate(set) var trailer: [Range<Int>] = []
  }

  package let headerLength: Int
  package let trailerLength: Int
  let delimiter: [UInt8]
  let inside: FrameLayout.Delimiter.Inside?
  private(set) var type: Slot?
  private(set) var serial: Slot
  private(set) var code: Slot?
  private(set) var length: Slot?
  /// The number of bytes besides the body that a length counts.
  package private(set) var lengthBias = 0
  private(set) var token: Slot?
  private(set) var repeatedType: Slot?
  private(set) var literals: [Literal] = []
  private(set) var fillers: [Filler] = []
  package private(set) var sum: Sum?

  /// The number of bytes before the body.
  var lead: Int { headerLength + delimiter.count }
  /// The number of bytes after the body.
  var tail: Int { trailerLength + delimiter.count }

  package init(_ layout: FrameLayout, from role: Role) {
    let shape = layout.shape(from: role)
    headerLength = shape.headerLength
    trailerLength = shape.trailerLength
    delimiter = layout.delimiter?.bytes ?? []
    inside = layout.delimiter?.inside
    serial = Slot(offset: 0, width: 0, isLittle: false, isTrailer: false)
    for (fields, isTrailer) in [(shape.header, false), (shape.trailer, true)] {
      var offset = 0
      for field in fields {
        let order = field.byteOrder ?? layout.byteOrder
        let slot = Slot(
          offset: offset, width: field.width, isLittle: order == .little, isTrailer: isTrailer)
        place(field.meaning, slot, shape)
        offset += field.width
      }
    }
  }

  private mutating func place(
    _ meaning: FrameLayout.Field.Meaning, _ slot: Slot, _ shape: FrameLayout.Shape
  ) {
    switch meaning {
    case .type: type = slot
    case .serial: serial = slot
    case .code: code = slot
    case .token: token = slot
    case .repeatedType: repeatedType = slot
    case .constant(let value), .version(let value):
      literals.append(Literal(slot: slot, value: value))
    case .filler(let value):
      fillers.append(Filler(slot: slot, value: value))
    case .length(let scope):
      length = slot
      switch scope {
      case .body: lengthBias = 0
      case .rest: lengthBias = lead - slot.offset - slot.width + tail
      case .frame: lengthBias = lead + tail
      }
    case .checksum(let algorithm, let coverage):
      var sum = Sum(slot: slot, algorithm: algorithm)
      FramePlan.cover(coverage, shape, slot, &sum)
      self.sum = sum
    }
  }

  private static func cover(
    _ coverage: FrameLayout.Coverage, _ shape: FrameLayout.Shape, _ slot: Slot, _ sum: inout Sum
  ) {
    switch coverage {
    case .body:
      sum.body = true
    case .headerAndBody:
      sum.body = true
      if slot.isTrailer {
        sum.header = [0..<shape.headerLength]
      } else {
        let parts = [0..<slot.offset, slot.offset + slot.width..<shape.headerLength]
        sum.header = parts.filter { !$0.isEmpty }
      }
    case .range(let from, let to):
      var isCovered = false
      func stretch(_ fields: [FrameLayout.Field]) -> [Range<Int>] {
        var (begin, end, offset) = (Int?.none, 0, 0)
        for field in fields {
          if field.name == from { isCovered = true }
          if isCovered {
            if begin == nil { begin = offset }
            end = offset + field.width
          }
          if field.name == to { isCovered = false }
          offset += field.width
        }
        return begin.map { [$0..<end] } ?? []
      }
      sum.header = stretch(shape.header)
      if from == "body" { isCovered = true }
      sum.body = isCovered
      if to == "body" { isCovered = false }
      sum.trailer = stretch(shape.trailer)
    }
  }
}

extension FramePlan.Slot {
  /// Reads the integer of a frame or trailer at `start`. The caller guarantees its bytes.
  @inline(__always)
  func read(_ start: UnsafeRawPointer) -> UInt64 {
    let bytes = unsafe start + offset
    var value: UInt64 = 0
    switch width {
    case 1: return UInt64(unsafe bytes.load(as: UInt8.self))
    case 2:
      let raw = unsafe bytes.loadUnaligned(as: UInt16.self)
      value = UInt64(isLittle ? UInt16(littleEndian: raw) : UInt16(bigEndian: raw))
    case 4:
      let raw = unsafe bytes.loadUnaligned(as: UInt32.self)
      value = UInt64(isLittle ? UInt32(littleEndian: raw) : UInt32(bigEndian: raw))
    default:
      let raw = unsafe bytes.loadUnaligned(as: UInt64.self)
      value = isLittle ? UInt64(littleEndian: raw) : UInt64(bigEndian: raw)
    }
    return value
  }

  /// Writes the low bytes of an integer of a frame or trailer at `start`. The caller guarantees
  /// room.
  @inline(__always)
  func write(_ value: UInt64, _ start: UnsafeMutableRawPointer) {
    let bytes = unsafe start + offset
    switch width {
    case 1: unsafe bytes.storeBytes(of: UInt8(truncatingIfNeeded: value), as: UInt8.self)
    case 2:
      let raw = UInt16(truncatingIfNeeded: value)
      unsafe bytes.storeBytes(of: isLittle ? raw.littleEndian : raw.bigEndian, as: UInt16.self)
    case 4:
      let raw = UInt32(truncatingIfNeeded: value)
      unsafe bytes.storeBytes(of: isLittle ? raw.littleEndian : raw.bigEndian, as: UInt32.self)
    default:
      unsafe bytes.storeBytes(of: isLittle ? value.littleEndian : value.bigEndian, as: UInt64.self)
    }
  }
}
