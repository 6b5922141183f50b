// SPDX-License-Identifier: Apache-2.0

import LongLinkCertificates
import LongLinkTesting
import LongLinkTransport
import Testing

@testable import LongLinkTLS

/// What a hostile or unlucky peer can send.
@Suite struct RecordTests {
  @Test func `a stream that is cut anywhere never ends normally`() async throws {
    try await Stage.run { loop in
      let whole = { (stage: Stage) in
        stage.client.write(Array(repeating: 5, count: 40)) + stage.client.close()
      }
      let sample = try Stage(on: loop)
      #expect(sample.shakeHands())
      let length = whole(sample).count
      for cut in 0...length {
        let stage = try Stage(on: loop)
        stage.shakeHands()
        stage.below.hasEnded = true
        stage.send(Array(whole(stage).prefix(cut)))
        stage.readAll()
        #expect(stage.ending == (cut == length ? "end" : "cut off"), "cut at \(cut)")
        stage.stream.close()
      }
    }
  }

  @Test func `a handshake that is cut anywhere has failed`() async throws {
    try await Stage.run { loop in
      for cut in 0..<220 {
        let stage = try Stage(on: loop)
        _ = stage.client.handshake()
        stage.below.hasEnded = true
        stage.send(Array(stage.client.takeOutput().prefix(cut)))
        stage.below.deliver()
        stage.readAll()
        #expect(stage.ending == "cutOff", "cut at \(cut)")
        stage.stream.close()
      }
    }
  }

  @Test func `a changed byte anywhere is damage`() async throws {
    try await Stage.run { loop in
      for position in 0..<60 {
        let stage = try Stage(on: loop)
        stage.shakeHands()
        var record = stage.client.write(Array(repeating: 5, count: 40))
        record[position] ^= 0x21
        // A longer record waits for its rest.
        stage.below.hasEnded = true
        stage.send(record)
        stage.readAll()
        #expect(["damaged", "cut off"].contains(stage.ending), "\(position)")
        #expect(stage.bytes == [])
        stage.stream.close()
      }
    }
  }

  @Test(
    arguments: [
      [0x17, 0x03, 0x03, 0xFF, 0xFF], [0x17, 0x03, 0x03, 0x48, 0x01], [0x18, 0x03, 0x03, 0, 1, 0],
      [0x17, 0x02, 0x03, 0, 1, 0], [0x15, 0x03, 0x03, 0, 0], [0x16, 0x03, 0x03, 0, 4, 0, 0, 0, 0],
      [0x14, 0x03, 0x03, 0, 1, 1],
    ] as [[UInt8]])
  func `a record that may not come is refused before it is whole`(record: [UInt8]) async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      stage.send(record)
      stage.readAll()
      #expect(stage.ending == "damaged")
      // The peer is told, and nothing is held for it.
      #expect(stage.below.takeOutput().count > 7)
      #expect(stage.below.hasShutDown)
      #expect(stage.stream.layer?.heldBytes == 0)
      stage.stream.close()
    }
  }

  @Test func `a client that asks for new keys all the time is refused`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      for round in 0..<100 where stage.ending == nil {
        for _ in 0..<100 { stage.below.inbox += stage.client.updateKeys() }
        stage.send([])
        stage.readAll()
        #expect(round == 0)
      }
      #expect(stage.ending == "damaged")
      // One answer at most for each record that was read.
      #expect(stage.below.takeOutput().count < 34 * 64)
      stage.stream.close()
    }
  }

  @Test func `a client that asks for new keys and does not read the answers is refused`()
    async throws
  {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      stage.below.room = 10
      #expect(try stage.write(Array(repeating: 1, count: 200_000)) == 65_536)
      var mostHeld = 0
      for round in 0..<2_000 where stage.ending == nil {
        // As many records with bytes as earn the next request.
        for _ in 0..<16 { stage.below.inbox += stage.client.write([1]) }
        stage.send(stage.client.updateKeys())
        stage.readAll()
        mostHeld = max(mostHeld, stage.stream.layer?.heldBytes ?? 0)
        // Some are fine, behind a whole piece that waits.
        if round == 100 { #expect(stage.ending == nil) }
      }
      #expect(stage.ending == "damaged")
      #expect(stage.stream.layer?.securityFailure?.detail.contains("new keys") == true)
      // With OpenSSL's buffers of a connection that is used.
      #expect(mostHeld < 200_000, "\(mostHeld)")
      stage.stream.layer?.releaseStorage()
      #expect(stage.stream.layer?.heldBytes == 0)
      stage.stream.close()
    }
  }

  @Test func `damage behind records that wait to be read is found`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      var records = stage.client.write([1, 2, 3]) + stage.client.write([4, 5, 6])
      records[records.count - 1] ^= 1
      stage.send(records + [0x17, 3, 3, 0, 30])
      // The damaged record is read from what waits here, and not from below.
      try stage.readOnce(2)
      try stage.readOnce(1)
      stage.readAll()
      #expect(stage.bytes == [1, 2, 3])
      #expect(stage.ending == "damaged")
      stage.stream.close()
    }
  }

  @Test func `an alert is found though what waits cannot be written`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      stage.below.room = 10
      _ = try stage.write(Array(repeating: 1, count: 100))
      // The request for new keys is answered before the alert is read.
      stage.below.inbox += stage.client.updateKeys()
      stage.client.receive([0x17, 3, 3, 0, 30] + Array(repeating: 0, count: 30))
      _ = stage.client.read()
      let alert = stage.client.takeOutput()
      #expect(!alert.isEmpty)
      stage.below.inbox += alert
      stage.below.failure = SocketError(operation: "write", errno: 32, address: nil)
      stage.below.room = .max
      stage.stream.setInterest([.read, .write])
      stage.below.deliver()
      stage.readAll()
      #expect(stage.ending == "damaged")
      #expect(stage.stream.layer?.securityFailure?.detail.contains("alert") == true)
      #expect(stage.stream.layer?.heldBytes == 0)
      stage.stream.close()
    }
  }

  @Test func `new keys now and then are fine`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      for round in 0..<400 {
        if round % 20 == 0 { stage.send(stage.client.updateKeys()) }
        stage.send(stage.client.write([UInt8(truncatingIfNeeded: round)]))
        stage.readAll()
        stage.client.receive(stage.below.takeOutput())
        #expect(stage.client.read() == [])
      }
      #expect(stage.ending == nil)
      #expect(stage.bytes.count == 400)
      #expect(try stage.write([1, 2]) == 2)
      stage.client.receive(stage.below.takeOutput())
      #expect(stage.client.read() == [1, 2])
      stage.stream.close()
    }
  }

  @Test func `a plain client gets an alert, and time to read it`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.send(Array("GET / HTTP/1.1\r\n\r\n".utf8))
      stage.readAll()
      #expect(stage.ending == "plainPeer")
      #expect(stage.below.takeOutput() == [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46])
      #expect(stage.below.hasShutDown)
      stage.stream.close()
      #expect(stage.below.closings == [])
      stage.below.inbox = Array(repeating: 1, count: 1_000)
      stage.below.deliver()
      #expect(stage.below.closings == [])
      stage.below.hasEnded = true
      stage.below.deliver()
      #expect(stage.below.closings == ["close"])
    }
  }

  @Test func `a plain client that goes on for long is cut off`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.send([0x20])
      stage.readAll()
      stage.stream.close()
      for _ in 0..<17 {
        stage.below.inbox = Array(repeating: 1, count: 65_536)
        stage.below.deliver()
      }
      #expect(stage.below.closings == ["close"])
    }
  }

  @Test(arguments: [nil, "\u{2}h2", "\u{8}http/1.1\u{2}h2"])
  func `a client of another protocol is refused with its alert`(protocols: String?) async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop, client: RawTLS(protocols: protocols))
      stage.shakeHands()
      stage.readAll()
      #expect(stage.ending == "noApplicationProtocol")
      stage.stream.close()
    }
  }

  @Test func `a server finds that a client has no certificate`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(
        on: loop, .with { $0.clientCertificates = .required(.only(Certificates.authority)) })
      stage.shakeHands()
      stage.readAll()
      #expect(stage.ending == "clientCertificateRequired")
      stage.client.receive(stage.below.takeOutput())
      #expect(stage.client.read() == [])
      stage.stream.close()
    }
  }

  @Test func `a client of TLS 1.2 is refused, unless that is allowed`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop, client: RawTLS(version: 0x0303))
      stage.shakeHands()
      stage.readAll()
      #expect(stage.ending == "noCommonVersion")
      stage.stream.close()
      let old = try Stage(
        on: loop,
        .with(Certificates.make(.server, ["DNS:a"], keyKind: .p256)) {
          $0.minimumVersion = .tls12
        }, client: RawTLS(version: 0x0303))
      #expect(old.shakeHands())
      #expect(old.stream.layer?.security?.version == "TLSv1.2")
      #expect(old.stream.layer?.security?.cipher.contains("GCM") == true)
      old.stream.close()
    }
  }
}
