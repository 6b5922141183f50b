// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTesting

/// Watches the frames of streams on the network: no side may send an item with more credit than
/// has reached it.
///
/// It reads the bytes that both sides write, so it does not depend on what either side believes.
struct CreditWatch {
  /// One direction of a link.
  private struct Flow {
    var splitter = FrameSplitter()
    /// The number of this side's bytes that have reached the other side.
    var arrived = 0
    /// Credit that this side granted and that has not arrived yet. `end` is where its frame ends.
    var grants: [(serial: UInt32, bytes: Int, end: Int)] = []
    /// The credit, in bytes, with which the other side's items of each stream start.
    var streamCredit = Int(Wire.defaultCredit)
    /// The credit that this side has left for each stream, in bytes, by serial.
    var credit: [UInt32: Int] = [:]
    /// Whether this side began with a frame of the native handshake; nil before its first frame.
    var isNative: Bool?
    var isClosed = false
  }

  private var flows: [EndName: Flow] = [:]
  /// The watch over credentials, which reads the same frames.
  private(set) var credentials = CredentialWatch()
  private(set) var broken: [(promise: OraclePromise, time: LinkInstant, detail: String)] = []

  mutating func observed(_ entry: Trace.Entry, _ bytes: [UInt8]) {
    let name = entry.end
    switch entry.kind {
    case .written: wrote(bytes, name, at: entry.time)
    case .bytesArrived: arrived(Int(entry.value), from: name.other)
    case .closed, .resetSent: close(name)
    case .clockMoved: credentials.clockJumped()
    default: break
    }
  }

  /// Forgets a link once both sides have closed: until then, bytes of one side may reach the other.
  private mutating func close(_ name: EndName) {
    flows[name]?.isClosed = true
    credentials.closed(name)
    guard flows[name.other]?.isClosed ?? true else { return }
    flows[name] = nil
    flows[name.other] = nil
  }

  private mutating func wrote(_ bytes: [UInt8], _ name: EndName, at time: LinkInstant) {
    var flow = flows.removeValue(forKey: name) ?? Flow()
    flow.splitter.take(bytes)
    let frames = flow.splitter.takeFrames()
    flows[name] = flow
    for frame in frames { sent(frame, name, at: time) }
  }

  private mutating func sent(_ frame: FrameSplitter.Frame, _ name: EndName, at time: LinkInstant) {
    if flows[name]?.isNative == nil {
      flows[name]?.isNative = [.hello, .welcome, .goaway].contains(frame.kind)
    }
    guard flows[name]?.isNative == true else { return }
    credentials.sent(frame, name, at: time)
    switch frame.kind {
    case .hello, .welcome:
      let whole = WireFrame(frame.kind, serial: frame.serial, body: frame.body)
      let credit = (whole.helloFields ?? whole.welcomeFields)?.streamCredit ?? 0
      if credit > 0 { flows[name]?.streamCredit = Int(credit) }
    case .request:
      requested(frame, name)
    case .credit where frame.body.count == 4:
      flows[name]?.grants.append((frame.serial, Int(frame.body.word(at: 0)), frame.end))
    case .item:
      // An item of an unknown stream has no credit either.
      let left = flows[name]?.credit[frame.serial] ?? 0
      let cost = frame.length + Wire.itemOverhead
      flows[name]?.credit[frame.serial] = left - cost
      if cost > left {
        broken.append(
          (
            .creditKept, time,
            """
            link \(name.link) \(name.side): an item of stream \(frame.serial) cost \(cost) bytes \
            of credit, and \(left) were left
            """
          ))
      }
    default:
      break
    }
  }

  /// Notes the streams that a request opens. Frames without metadata, such as fragments, open none.
  private mutating func requested(_ frame: FrameSplitter.Frame, _ name: EndName) {
    guard frame.hasMetadata else { return }
    let request = WireFrame(.request, serial: frame.serial, hasMetadata: true, body: frame.body)
    guard let metadata = request.metadata else { return }
    if metadata.items {
      let credit = flows[name.other]?.streamCredit ?? Int(Wire.defaultCredit)
      flows[name]?.credit[frame.serial] = credit
    }
    if let credit = metadata.credit {
      flows[name]?.grants.append((frame.serial, Int(credit), frame.end))
    }
  }

  /// Notes that bytes of `name` have reached the other side, which can use the credit in them.
  private mutating func arrived(_ count: Int, from name: EndName) {
    guard var flow = flows[name] else { return }
    flow.arrived += count
    var reached: [(serial: UInt32, bytes: Int)] = []
    while let first = flow.grants.first, first.end <= flow.arrived {
      reached.append((first.serial, first.bytes))
      flow.grants.removeFirst()
    }
    flows[name] = flow
    for (serial, bytes) in reached { flows[name.other]?.credit[serial, default: 0] += bytes }
  }
}

/// Splits a stream of bytes into frames, with the beginnings of the bodies that matter for streams.
struct FrameSplitter {
  struct Frame {
    let kind: WireFrame.Kind
    let tag: UInt32
    let serial: UInt32
    let hasMetadata: Bool
    /// The length of the whole body.
    let length: Int
    /// The beginning of the body, at most `keptLength` bytes, or nothing.
    var body: [UInt8] = []
    /// Where the frame ends, as a count of the stream's bytes.
    let end: Int
  }

  /// The length of the longest metadata, including its length field.
  private static let keptLength = 65_537
  private var header: [UInt8] = []
  private var current: Frame?
  private var rest = 0
  private var position = 0
  private var frames: [Frame] = []

  mutating func takeFrames() -> [Frame] {
    defer { frames = [] }
    return frames
  }

  mutating func take(_ bytes: [UInt8]) {
    var index = 0
    while index < bytes.count {
      if rest > 0 {
        let count = min(rest, bytes.count - index)
        keep(bytes[index..<index + count])
        rest -= count
        index += count
      } else {
        let count = min(WireFrame.headerLength - header.count, bytes.count - index)
        header += bytes[index..<index + count]
        index += count
        if header.count == WireFrame.headerLength { begin(at: position + index) }
      }
      if rest == 0, let frame = current.take() { frames.append(frame) }
    }
    position += bytes.count
  }

  private mutating func begin(at bodyStart: Int) {
    let word = header.word(at: 0)
    rest = Int(header.word(at: 8))
    current = Frame(
      kind: WireFrame.Kind(rawValue: UInt8(truncatingIfNeeded: word >> 24)), tag: word & 0xFF_FFFF,
      serial: header.word(at: 4), hasMetadata: word & (1 << 31) != 0, length: rest,
      end: bodyStart + rest)
    header.removeAll(keepingCapacity: true)
  }

  private mutating func keep(_ bytes: ArraySlice<UInt8>) {
    guard let frame = current else { return }
    switch frame.kind {
    case .hello, .welcome, .credit, .renewal, .goaway: break
    case .request where frame.hasMetadata: break
    default: return
    }
    current?.body += bytes.prefix(max(0, Self.keptLength - frame.body.count))
  }
}
