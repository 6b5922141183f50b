// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkTestSupport
import LongLinkTransport
import Logging
import Testing

@Suite struct PeerLogTests {
  private let lines = LogLines()
  private let log: PeerLog

  init() {
    log = PeerLog(lines.logger)
  }

  private static func seconds(_ count: Double) -> LinkInstant {
    LinkInstant(nanoseconds: 1_000_000_000) + Int64(count * 1e9)
  }

  @Test func `lines of one message are of several kinds if that is said`() {
    for kind in ["one", "other", "one", "other"] {
      for _ in 0..<100 {
        log.log(.warning, "A flood", kind: .name(kind), at: Self.seconds(1)) { ["kind": "\(kind)"] }
      }
    }
    #expect(lines.all("A flood").count { $0.metadata["kind"] == "one" } == 5)
    #expect(lines.all("A flood").count == 10)
  }

  @Test func `five lines of a kind pass, then three a minute, which count those left out`() {
    for millisecond in 0..<600_000 {
      log.log(.warning, "A flood", at: Self.seconds(Double(millisecond) / 1000)) {
        ["n": "\(millisecond)"]
      }
    }
    let told = lines.all
    #expect(told.prefix(5).allSatisfy { $0.metadata["suppressed"] == nil })
    #expect(told.count == 5 + 29)
    #expect(told[5].metadata["n"] == "20000")
    #expect(told[5].metadata["suppressed"] == "19995")
    #expect(told.dropFirst(6).allSatisfy { $0.metadata["suppressed"] == "19999" })
  }

  @Test func `usual lines do not hold back warnings with the same message`() {
    for _ in 0..<100 { log.log(.info, "It ended", at: Self.seconds(0)) { [:] } }
    log.log(.warning, "It ended", at: Self.seconds(0)) { [:] }
    #expect(lines.all.count == 6 && lines.all.last?.level == .warning)
  }

  @Test func `one kind does not hold back another`() {
    for _ in 0..<100 { log.log(.info, "One", at: Self.seconds(0)) { [:] } }
    log.log(.info, "Other", at: Self.seconds(0)) { [:] }
    #expect(lines.all.map(\.message) == ["One", "One", "One", "One", "One", "Other"])
  }

  @Test func `a flood of one address does not hide what others cause`() {
    func line(_ address: SocketAddress, at second: Double) {
      log.log(.warning, "A flood", of: address.group, at: Self.seconds(second)) {
        ["peer": "\(address)"]
      }
    }
    let (loud, other) = (SocketAddress.ipv4(192, 0, 2, 1, port: 1), "192.0.2.9")
    for millisecond in 0..<600_000 { line(loud, at: Double(millisecond) / 1_000) }
    // Three at once, and one a minute.
    #expect(lines.all.count == 3 + 9)
    line(.ipv4(192, 0, 2, 9, port: 1), at: 600)
    #expect(lines.all.last?.metadata["peer"]?.hasPrefix(other) == true)
    // All addresses together have the limit of the kind.
    for number: UInt8 in 10..<110 { line(.ipv4(192, 0, 2, number, port: 1), at: 7_200) }
    #expect(lines.all.count == 3 + 9 + 1 + 5)
  }

  @Test func `after a pause as many lines pass at once as at first, and no more`() {
    for _ in 0..<50 { log.log(.info, "A line", at: Self.seconds(0)) { [:] } }
    for _ in 0..<50 { log.log(.info, "A line", at: Self.seconds(7_200)) { [:] } }
    #expect(lines.all.map { $0.metadata["suppressed"] }.count == 10)
    #expect(lines.all[5].metadata["suppressed"] == "45")
  }

  @Test func `lines of a level that is not logged cost nothing and are not counted`() {
    for _ in 0..<100 {
      log.log(.trace, "Too fine", at: Self.seconds(0)) {
        Issue.record("the metadata is not needed")
        return [:]
      }
    }
    #expect(lines.all.isEmpty)
  }
}
