// SPDX-License-Identifier: Apache-2.0

import CLongLinkProbe
import CProtobufC
import LongLinkCore
import LongLinkProtobufC

/// A value with a field of every kind.
struct Probe: Equatable, Sendable {
  enum Choice: Equatable, Sendable {
    case number(UInt32)
    case text(String)
    case probe([Probe])
  }

  struct Name: Equatable, Sendable {
    var key: UInt32
    var value: String
  }

  var i32: Int32 = 0
  var i64: Int64 = 0
  var u32: UInt32 = 0
  var u64: UInt64 = 0
  var s32: Int32 = 0
  var s64: Int64 = 0
  var f32: UInt32 = 0
  var f64: UInt64 = 0
  var sf32: Int32 = 0
  var sf64: Int64 = 0
  var single: Float = 0
  var twice: Double = 0
  var flag = false
  var text = ""
  var blob: [UInt8] = []
  var colour: Int32 = 0
  /// One at most: an array, because a value cannot contain itself.
  var inner: [Probe] = []
  var packed: [UInt32] = []
  var unpacked: [UInt32] = []
  var fixed: [UInt64] = []
  var texts: [String] = []
  var blobs: [[UInt8]] = []
  var probes: [Probe] = []
  var flags: [Bool] = []
  var choice: Choice?
  var names: [Name] = []
}

extension Probe.Name: ProtobufCBody {
  static let layout = unsafe ProtobufCLayout<Probe.Name>(
    initialize: longlink__probe__probe__names_entry__init,
    fill: { message, value, arena in
      unsafe message.key = value.key
      unsafe message.value = try arena.string(value.value)
    },
    read: { reader in
      var value = Probe.Name(key: 0, value: "")
      while let field = try reader.next() {
        switch field {
        case 1: value.key = try reader.uint32()
        case 2: value.value = try reader.string()
        default: try reader.skip()
        }
      }
      return value
    }
  )
}

extension Probe: ProtobufCBody {
  static let layout = unsafe ProtobufCLayout<Probe>(
    initialize: longlink__probe__probe__init,
    fill: { message, value, arena in
      unsafe fillScalars(&message, value)
      unsafe message.text = try arena.string(value.text)
      unsafe message.blob = arena.bytes(value.blob)
      unsafe message.inner = try arena.message(value.inner.first)
      unsafe message.n_packed = value.packed.count
      unsafe message.packed = arena.scalars(value.packed)
      unsafe message.n_unpacked = value.unpacked.count
      unsafe message.unpacked = arena.scalars(value.unpacked)
      unsafe message.n_fixed = value.fixed.count
      unsafe message.fixed = arena.scalars(value.fixed)
      unsafe message.n_texts = value.texts.count
      unsafe message.texts = try arena.strings(value.texts)
      unsafe message.n_blobs = value.blobs.count
      unsafe message.blobs = arena.bytes(value.blobs)
      unsafe message.n_probes = value.probes.count
      unsafe message.probes = try arena.messages(value.probes)
      unsafe message.n_flags = value.flags.count
      unsafe message.flags = arena.scalars(value.flags.map { $0 ? 1 : 0 })
      unsafe message.n_names = value.names.count
      unsafe message.names = try arena.messages(value.names)
      switch value.choice {
      case .number(let number):
        unsafe message.choice_case = LONGLINK__PROBE__PROBE__CHOICE_CHOICE_NUMBER
        unsafe message.choice_number = number
      case .text(let text):
        unsafe message.choice_case = LONGLINK__PROBE__PROBE__CHOICE_CHOICE_TEXT
        unsafe message.choice_text = try arena.string(text)
      case .probe(let probe):
        unsafe message.choice_case = LONGLINK__PROBE__PROBE__CHOICE_CHOICE_PROBE
        unsafe message.choice_probe = try arena.message(probe.first)
      case nil:
        break
      }
    },
    read: { reader in
      var value = Probe()
      var (hasInner, hasChoice) = (false, false)
      while let field = try reader.next() {
        switch field {
        case 17:
          value.inner = [try reader.message(once: &hasInner)]
        case 30:
          value.choice = .number(try reader.uint32())
        case 31:
          value.choice = .text(try reader.string())
        case 32:
          value.choice = .probe([try reader.message(once: &hasChoice)])
        case 1...16:
          try value.readSingle(field, from: &reader)
        default:
          try value.readRepeated(field, from: &reader)
        }
      }
      return value
    }
  )

  private static func fillScalars(_ message: inout Longlink__Probe__Probe, _ value: Probe) {
    unsafe message.i32 = value.i32
    unsafe message.i64 = value.i64
    unsafe message.u32 = value.u32
    unsafe message.u64 = value.u64
    unsafe message.s32 = value.s32
    unsafe message.s64 = value.s64
    unsafe message.f32 = value.f32
    unsafe message.f64 = value.f64
    unsafe message.sf32 = value.sf32
    unsafe message.sf64 = value.sf64
    unsafe message.single = value.single
    unsafe message.twice = value.twice
    unsafe message.flag = value.flag ? 1 : 0
    unsafe message.colour = Longlink__Probe__Probe__Colour(
      rawValue: UInt32(bitPattern: value.colour)
    )
  }

  private mutating func readSingle(
    _ field: UInt32, from reader: inout ProtobufReader
  ) throws(BodyError) {
    switch field {
    case 1: i32 = try reader.int32()
    case 2: i64 = try reader.int64()
    case 3: u32 = try reader.uint32()
    case 4: u64 = try reader.uint64()
    case 5: s32 = try reader.sint32()
    case 6: s64 = try reader.sint64()
    case 7: f32 = try reader.fixed32()
    case 8: f64 = try reader.fixed64()
    case 9: sf32 = try reader.sfixed32()
    case 10: sf64 = try reader.sfixed64()
    case 11: single = try reader.float()
    case 12: twice = try reader.double()
    case 13: flag = try reader.bool()
    case 14: text = try reader.string()
    case 15: blob = try reader.bytes()
    case 16: colour = try reader.int32()
    default: try reader.skip()
    }
  }

  private mutating func readRepeated(
    _ field: UInt32, from reader: inout ProtobufReader
  ) throws {
    switch field {
    case 18: try reader.each { packed.append(try $0.uint32()) }
    case 19: try reader.each { unpacked.append(try $0.uint32()) }
    case 20: try reader.each { fixed.append(try $0.fixed64()) }
    case 21: texts.append(try reader.string())
    case 22: blobs.append(try reader.bytes())
    case 23: probes.append(try reader.message())
    case 24: try reader.each { flags.append(try $0.bool()) }
    case 40: names.append(try reader.message())
    default: try reader.skip()
    }
  }
}
