// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkScenarios

/// Recordings: whatever is in the file, it can be read, described and replayed.
enum RecordingFuzz {
  static func run(_ bytes: [UInt8]) throws {
    guard let recording = try? RecordingFile(bytes) else { return }
    for packet in recording.packets { _ = RecordedStep(packet, names: recording.names).text }
    let outcomes = Replayer.replay(recording)
    _ = SimulationTimeline(recording, outcomes).svg()
    if case .replayed(let steps) = Replayer.sum(outcomes) {
      try expect(steps <= recording.packets.count, "there are more steps than packets")
    }
  }

  // MARK: - First inputs

  /// What both sides of a short conversation record, with bodies and without.
  static var seeds: [[UInt8]] {
    [false, true].flatMap { hasBodies -> [[UInt8]] in
      let (client, server) = (Side(.client, hasBodies), Side(.server, hasBodies))
      client.connect()
      for round in 0..<4 {
        if round == 1 { client.request() }
        client.write(to: server)
        server.write(to: client)
      }
      client.end()
      server.end()
      return [client.file, server.file]
    }
  }

  /// A core that is recorded as a link records its own.
  private final class Side {
    private var core: Connection
    private let recorder: Recorder
    private var now = LinkInstant(nanoseconds: 1_000_000)

    init(_ role: Role, _ hasBodies: Bool) {
      let settings = ConnectionSettings(role: role)
      core = Connection(settings: settings, at: now)
      recorder = Recorder(capacity: 65_536, recordsBodies: hasBodies, epoch: 0, loop: 0)
      recorder.note(
        .began, of: 1, at: now, numbers: RecordedSettings.encode(settings, id: 1),
        bytes: Array("peer\n\n".utf8))
    }

    var file: [UInt8] { RecordingWriter.file([recorder.snapshot()], names: [1: "Echo"]) }

    func connect() {
      recorder.note(.connected, of: 1, at: now)
      core.connected(at: now)
      deliver()
    }

    func request() {
      let body: [UInt8] = [1, 2, 3]
      recorder.note(
        .request, of: 1, at: now, RecordedNumber.pair(50, 1), 0,
        RecordedNumber.sizes(body.count, metadata: nil))
      _ = try? core.request(50, type: 1, metadata: nil, count: body.count, at: now) { span in
        body.encode(into: &span)
      }
    }

    func write(to other: Side) {
      let chunk = core.outbox.chunk
      guard !chunk.isEmpty else { return }
      let bytes = core.outbox.bytes.withBytes(chunk) { [UInt8](decoding: $0) }
      unsafe bytes.withUnsafeBytes {
        // The buffer is valid during the call.
        unsafe recorder.noteOutput(
          bytes.count, of: $0, of: 1, at: now, from: core.settings.role, isParsed: true)
      }
      core.wrote(bytes.count, at: now)
      deliver()
      other.read(bytes)
    }

    private func read(_ bytes: [UInt8]) {
      now = now + 1_000_000
      unsafe bytes.withUnsafeBytes {
        // The buffer is valid during the call.
        unsafe recorder.noteInput(
          bytes.count, in: $0, of: 1, at: now, from: core.settings.role.peer, isParsed: true)
      }
      core.inbox.input.append(unsafe bytes.span.bytes)
      core.received(bytes.count, at: now)
      deliver()
    }

    func end() {
      recorder.note(.ended, of: 1, at: now, 0)
      core.ended(at: now)
      deliver()
    }

    /// Takes everything from the core; a server responds to each request.
    private func deliver() {
      while true {
        recorder.took(of: 1, at: now)
        while let message = core.nextMessage() {
          if message.kind == .request { respond(to: core.id(of: message)) }
          recorder.took(of: 1, at: now)
        }
        recorder.took(of: 1, at: now)
        guard let effect = core.nextEffect() else { return }
        recorder.note(
          .effect, of: 1, at: now,
          numbers: RecordedEffect.encode(effect, frames: core.counters.framesReceived))
      }
    }

    private func respond(to id: InboundID) {
      recorder.note(.respond, of: 1, at: now, RecordedNumber.pair(id.serial, id.number), 2)
      _ = try? core.respond(id, code: .ok, count: 2, [7, 7] as [UInt8])
    }
  }
}
