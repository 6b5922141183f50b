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
    read: { message in
      unsafe Probe.Name(key: message.key, value: ProtobufCField.string(message.value))
    }
  )
}

extension Probe: ProtobufCBody {
  static let layout = unsafe ProtobufCLayout<Probe>(
    initialize: longlink__probe__probe__init,
    fill: { message, value, arena in
      unsafe fillScalars(&message, value)
      unsafe message.text = try arena.string(value.text)
      unsafe message.blob = try arena.bytes(value.blob)
      unsafe message.inner = try arena.message(value.inner.first)
      unsafe message.n_packed = value.packed.count
      unsafe message.packed = try arena.scalars(value.packed)
      unsafe message.n_unpacked = value.unpacked.count
      unsafe message.unpacked = try arena.scalars(value.unpacked)
      unsafe message.n_fixed = value.fixed.count
      unsafe message.fixed = try arena.scalars(value.fixed)
      unsafe message.n_texts = value.texts.count
      unsafe message.texts = try arena.strings(value.texts)
      unsafe message.n_blobs = value.blobs.count
      unsafe message.blobs = try arena.bytes(value.blobs)
      unsafe message.n_probes = value.probes.count
      unsafe message.probes = try arena.messages(value.probes)
      unsafe message.n_flags = value.flags.count
      unsafe message.flags = try arena.scalars(value.flags.map { $0 ? 1 : 0 })
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
    read: { message in
      var value = unsafe Probe(scalarsOf: message)
      value.text = unsafe ProtobufCField.string(message.text)
      value.blob = unsafe ProtobufCField.bytes(message.blob)
      if let inner: Probe = try unsafe ProtobufCField.message(message.inner) {
        value.inner = [inner]
      }
      value.packed = unsafe ProtobufCField.scalars(message.packed, count: message.n_packed)
      value.unpacked = unsafe ProtobufCField.scalars(message.unpacked, count: message.n_unpacked)
      value.fixed = unsafe ProtobufCField.scalars(message.fixed, count: message.n_fixed)
      value.texts = unsafe ProtobufCField.strings(message.texts, count: message.n_texts)
      value.blobs = unsafe ProtobufCField.bytes(message.blobs, count: message.n_blobs)
      value.probes = try unsafe ProtobufCField.messages(message.probes, count: message.n_probes)
      value.flags = unsafe ProtobufCField.scalars(message.flags, count: message.n_flags)
        .map { $0 != 0 }
      value.names = try unsafe ProtobufCField.messages(message.names, count: message.n_names)
      value.choice = try unsafe choice(of: message)
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

  private init(scalarsOf message: Longlink__Probe__Probe) {
    unsafe self.init(
      i32: message.i32,
      i64: message.i64,
      u32: message.u32,
      u64: message.u64,
      s32: message.s32,
      s64: message.s64,
      f32: message.f32,
      f64: message.f64,
      sf32: message.sf32,
      sf64: message.sf64,
      single: message.single,
      twice: message.twice,
      flag: message.flag != 0,
      colour: Int32(truncatingIfNeeded: message.colour.rawValue)
    )
  }

  private static func choice(of message: Longlink__Probe__Probe) throws -> Choice? {
    switch unsafe message.choice_case {
    case LONGLINK__PROBE__PROBE__CHOICE_CHOICE_NUMBER:
      return unsafe .number(message.choice_number)
    case LONGLINK__PROBE__PROBE__CHOICE_CHOICE_TEXT:
      return unsafe .text(ProtobufCField.string(message.choice_text))
    case LONGLINK__PROBE__PROBE__CHOICE_CHOICE_PROBE:
      let probe: Probe? = try unsafe ProtobufCField.message(message.choice_probe)
      return .probe(probe.map { [$0] } ?? [])
    default:
      return nil
    }
  }
}
