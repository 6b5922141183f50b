// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCertificates
import LongLinkTLS
import LongLinkTesting
import Synchronization
import Testing

/// Pinned keys of servers.
@Suite struct PinTests {
  /// The answer, or the failure, of a request to a client with these pins.
  private func ask(
    _ pins: TLSPins, _ client: TLSClientConfiguration = .trusting(),
    _ server: TLSServerConfiguration = .with()
  ) async throws -> SecurityFailure.Code? {
    var client = client
    client.pins = pins
    do {
      _ = try await World.simulate(try World.Parts(client, server)) { world in
        try await world.client.connect()
        return try await world.client.request(World.echo, [1])
      }
      return nil
    } catch let error as LongLinkError {
      #expect(error.delivery == .notSent)
      return error.securityFailure?.code
    }
  }

  @Test func `the key of the server, or of its authority, may be pinned`() async throws {
    #expect(try await ask(TLSPins([Pins.none, try Pins.of(Certificates.server)])) == nil)
    #expect(try await ask(TLSPins([try Pins.of(Certificates.authority), Pins.none])) == nil)
  }

  @Test func `another key is refused`() async throws {
    #expect(try await ask(TLSPins([Pins.none, Pins.other])) == .pinMismatch)
    let other = try Pins.of(Certificates.otherAuthority)
    #expect(try await ask(TLSPins([Pins.none, other])) == .pinMismatch)
  }

  @Test func `a pinned key does not excuse an invalid chain`() async throws {
    let pins = TLSPins([Pins.none, try Pins.of(Certificates.server)])
    let code = try await ask(pins, .trusting(Certificates.otherAuthority))
    #expect(code == .unknownAuthority)
  }

  @Test func `a pinned key beside the verified chain counts for nothing`() async throws {
    // Everybody can send the certificate of somebody else.
    var server = TLSServerConfiguration.with()
    let chain = Certificates.server.certificate + Certificates.otherAuthority.certificate
    server.certificates = [TLSIdentity(chain: .bytes(chain), key: .bytes(Certificates.server.key))]
    let pins = TLSPins([Pins.none, try Pins.of(Certificates.otherAuthority)])
    #expect(try await ask(pins, .trusting(), server) == .pinMismatch)
    let own = TLSPins([Pins.none, try Pins.of(Certificates.server)])
    #expect(try await ask(own, .trusting(), server) == nil)
  }

  @Test func `an audit tells of another key, and goes on`() async throws {
    let failures = Mutex<[SecurityFailure]>([])
    let pins = TLSPins([Pins.none, Pins.other]) { failure in
      failures.withLock { $0.append(failure) }
    }
    #expect(try await ask(pins) == nil)
    let told = failures.withLock { $0 }
    #expect(told.map(\.code) == [.pinMismatch])
    #expect(told.first?.certificate?.names.first == .dns("server.test"))
  }

  @Test func `an audit tells of every connection, and others resume`() async throws {
    for (pins, expected) in [
      ([Pins.none, Pins.other], ["pinMismatch", "false 0", "pinMismatch", "false 0"]),
      ([Pins.none, try Pins.of(Certificates.server)], ["false 0", "true 0"]),
    ] {
      let events = Mutex<[String]>([])
      let audited = TLSPins(pins) { failure in
        events.withLock { $0.append("\(failure.code)") }
      }
      let parts = try World.Parts(.trusting { $0.pins = audited })
      _ = try await World.simulate(parts) { world in
        for _ in 0..<2 {
          let answer = try await world.client.request(World.identity, [])
          events.withLock { $0.append(String(decoding: answer, as: UTF8.self)) }
          world.simulation?.network.links.last?.lose()
          try await world.simulation?.sleep(for: .seconds(2))
        }
      }
      // Where connections are kept, the third one is under way.
      #expect(Array(events.withLock { $0 }.prefix(expected.count)) == expected)
    }
  }

  @Test func `pins end`() async throws {
    // A simulation begins at this second.
    let beginning = Int64(1_767_225_600)
    #expect(try await ask(TLSPins([Pins.none, Pins.other], end: beginning)) == nil)
    let code = try await ask(TLSPins([Pins.none, Pins.other], end: beginning + 5))
    #expect(code == .pinMismatch)
  }

  @Test func `pins are checked when they are set`() throws {
    for hashes in [
      [], [Pins.none], [Pins.none, Pins.none], [Pins.none, "AAAA"], [Pins.none, "?"],
    ] {
      var client = TLSClientConfiguration()
      client.pins = TLSPins(hashes)
      let error = #expect(throws: LongLinkError.self) { try ClientSecurity.tls(client) }
      #expect(error?.code == .invalidConfiguration)
      #expect(error?.field == "security.pins")
    }
    var client = TLSClientConfiguration()
    client.verification = .insecure
    client.pins = TLSPins([Pins.none, Pins.other])
    #expect(throws: LongLinkError.self) { try ClientSecurity.tls(client) }
  }
}
