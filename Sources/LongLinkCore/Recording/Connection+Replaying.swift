// SPDX-License-Identifier: Apache-2.0

// What a replay asks before it makes a call. A link never makes one that is not allowed; the file
// of a recording may contain any.
extension Connection {
  /// Whether `request` may be called with this serial.
  package func mayRequest(_ serial: UInt32) -> Bool {
    isOpen && framing.owns(serial, as: settings.role) && carriage.takesRequest
      && streams.slot(of: serial) == nil && !outbox.kept.holds(serial)
  }

  /// Whether `sendItem` may be called: no item of this stream waits.
  package func maySendItem(_ serial: UInt32) -> Bool {
    streams.slot(of: serial).flatMap { streams[$0].outgoing }?.isPending != true
  }

  /// Whether `tookItems` may be called: items of this cost have come and were not taken.
  package func mayTakeItems(_ serial: UInt32, cost: Int) -> Bool {
    guard let inflow = streams.slot(of: serial).flatMap({ streams[$0].incoming }) else {
      return true
    }
    return cost <= inflow.untaken
  }

  /// Whether `respond` may be called with this code: not with 200 while an item of the stream is
  /// waiting.
  package func mayRespond(_ id: InboundID, _ code: ResponseCode) -> Bool {
    code != .ok || streams.pending(id.serial) == nil || inbound.running(id) == nil
  }
}
