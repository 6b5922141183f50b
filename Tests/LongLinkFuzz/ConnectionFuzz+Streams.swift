// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

// What the peer, the driver and the application do with streams.
extension FuzzSide {
  func actOnStream(_ input: inout FuzzInput) throws(FuzzFailure) {
    let serial = stream(&input)
    switch input.byte() % 8 {
    case 0: try receive(opening(&input))
    case 1:
      let more = input.byte() & 1 == 0
      let body = [UInt8](repeating: 6, count: input.below(2_000))
      try receive(sealed(more ? 0x42 : 2, 0, serial, body))
    case 2: try receive(sealed(3, 0, serial, []))
    case 3:
      let count = input.word()
      try receive(
        sealed(5, 0, serial, [input.byte() & 0x80, 0, UInt8(count >> 8), UInt8(count & 255)]))
    case 4: write(serial, input.below(3_000))
    case 5: connection.endItems(serial, at: now)
    case 6: take(serial, 1 + input.below(4))
    default: try ask(&input)
    }
  }

  /// Whether this side can ask: on a short link, its client once.
  var mayAsk: Bool {
    !connection.settings.isShort || role == .client && nextSerial == Wire.firstSerial
  }

  /// A request of the peer's that runs, or one of this side's; or any other serial.
  private func stream(_ input: inout FuzzInput) -> UInt32 {
    let serials = running.map(\.id.serial) + asked.map(\.serial) + [Wire.firstSerial + 3]
    return serials[input.below(serials.count)]
  }

  /// A request of the peer that opens a stream.
  private func opening(_ input: inout FuzzInput) -> [UInt8] {
    let shape = input.byte()
    var metadata: [UInt8] = []
    if shape & 1 != 0 {
      metadata += [0x30, shape & 0x80 | 0x7F, 0x10].prefix(shape & 0x80 != 0 ? 3 : 2)
    }
    if shape & 2 != 0 { metadata += [0x38, 1] }
    // One that runs once, perhaps with a key, a time and a whole space.
    if shape & 4 != 0 {
      metadata += shape & 8 == 0 ? [0x1A, 1, 7] : []
      metadata += [0x4A, 16] + terms.space.bytes + (shape & 16 == 0 ? [0x50, 1] : [])
    }
    let bit: UInt32 = role == .client ? Wire.serverBit : 0
    let serial = (Wire.firstSerial + UInt32(input.byte() % 8)) | bit
    return sealed(0x80, 1, serial, [0, UInt8(metadata.count)] + metadata)
  }

  private func ask(_ input: inout FuzzInput) throws(FuzzFailure) {
    let shape = input.byte()
    let terms = StreamTerms(
      credit: shape & 1 != 0 ? 1_024 : nil, largestWindow: shape & 4 != 0 ? 1_024 : nil,
      sendsItems: shape & 2 != 0)
    guard mayAsk, connection.isOpen, connection.agreement.features.contains(.streams),
      10 <= connection.agreement.maxBody, connection.streams.hasRoom(for: terms.credit ?? 0)
    else { return }
    let metadata = Metadata(credit: terms.credit.map { UInt32($0) }, items: terms.sendsItems)
    do throws(BodyError) {
      let placement = try connection.request(
        nextSerial, type: 1, metadata: metadata.encodedBlock(), count: 0, stream: terms, at: now
      ) { _ in }
      asked.append((nextSerial, placement))
      nextSerial += 1
    } catch {
      throw FuzzFailure("metadata could not be encoded")
    }
  }

  private func write(_ serial: UInt32, _ count: Int) {
    guard !sending.contains(serial), count <= connection.agreement.maxBody else { return }
    let item = [UInt8](repeating: 8, count: count)
    let placement = connection.sendItem(serial, count: count, at: now) { span in
      item.encode(into: &span)
    }
    if placement == .waiting { sending.insert(serial) }
  }

  private func take(_ serial: UInt32, _ count: Int) {
    let taken = (untaken[serial] ?? []).prefix(count)
    untaken[serial]?.removeFirst(taken.count)
    connection.tookItems(serial, cost: taken.reduce(0, +), at: now)
  }

  /// The rest of an item does not fit: the exchange ends.
  func overLimit(_ serial: UInt32) {
    if let index = asked.firstIndex(where: { $0.serial == serial }) {
      cancel(index, notifying: true)
    } else if let index = running.firstIndex(where: { $0.id.serial == serial }) {
      forgetStream(serial)
      connection.respond(running.remove(at: index).id, code: .overloaded, [])
    }
  }

  func forgetStream(_ serial: UInt32) {
    untaken[serial] = nil
    sending.remove(serial)
    connection.tookUnread(serial, cost: .max)
  }

  func stray(_ kind: FrameKind, _ serial: UInt32) {
    guard asked.contains(where: { $0.serial == serial }) else { return }
    connection.rejectStray(kind, serial: serial)
  }

  /// The application holds the items that it has not taken, or some still wait for it.
  func stuck(_ serial: UInt32) {
    if serial.isMultiple(of: 4) { connection.lentItems(serial, at: now) }
  }

  func held(in items: [UInt32: [Int]]) -> Int { items.values.joined().reduce(0, +) }

  /// The most that items can cost that nobody has taken: all windows, and an item in many
  /// fragments.
  var windowLimit: Int {
    let settings = connection.settings
    return settings.windows.total + settings.maxBody
      + (settings.maxBody / Wire.fragmentLimit + 1) * Wire.itemOverhead
  }
}
