// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore
@testable import LongLinkDriver

/// What people are told of the end of a link.
@Suite struct LinkEndingTests {
  private func ending(
    _ role: Role = .client, way: String? = nil, goaway: GoAway? = nil,
    failure: SecurityFailure? = nil, text: String? = nil, isHandshaking: Bool = false
  ) -> LinkEnding {
    LinkEnding(
      role: role, way: way, goaway: goaway, securityFailure: failure, failureText: text,
      isHandshaking: isHandshaking, handshakeLimit: .seconds(3))
  }

  @Test func `a handshake that takes too long names the side and the setting`() {
    let late = [CloseReason.handshakeTimeout, .violation(Violation(.firstFrameTimeout))]
    let details = [
      ending(isHandshaking: true).detail(of: late[0]),
      ending(.server, isHandshaking: true).detail(of: late[1]),
    ]
    #expect(details[0].contains("server did not") && details[0].contains("timeouts.connect: 3.0"))
    #expect(details[1].contains("client did not") && details[1].contains("timeouts.firstFrame"))
    #expect(late.map { ending().detail(of: $0) } == late.map(\.detail))
  }

  @Test func `a short link names its way, and what its transport knows`() {
    let reason = CloseReason.transport(104)
    #expect(ending(text: "status 502").detail(of: reason) == reason.detail)
    #expect(ending(way: "w", text: "status 502").detail(of: reason) == "w: status 502")
    #expect(ending(way: "w").detail(of: .noResponse) == "w: \(CloseReason.noResponse.detail)")
    #expect(ending(way: "w", text: "x").detail(of: .closedHere).contains("x") == false)
  }

  @Test func `a goaway is told once, with its reason`() {
    let goaway = GoAway(code: ResponseCode.overloaded.rawValue, reason: "too\nbusy")
    let ending = ending(goaway: goaway)
    #expect(ending.farewell.hasPrefix(": too") && !ending.farewell.contains("\n"))
    let announced = ending.detail(of: .closedByPeer)
    #expect(announced.contains("after a goaway") && announced.hasSuffix(ending.farewell))
    #expect(!ending.detail(of: .goneAway(.overloaded)).contains("after a goaway"))
    #expect(self.ending().farewell.isEmpty)
  }

  @Test func `the core's own failures of security have a text for each side`() {
    let secure = CloseReason.securityFailed(.securePeer)
    let texts = [Role.client, .server].map { "\(LinkEnding.failure(secure, of: $0)!)" }
    #expect(texts[0].contains("the server speaks TLS") && texts[1].contains("the client speaks"))
    #expect(LinkEnding.failure(.closedHere, of: .client) == nil)
    let failure = LinkEnding.failure(.securityFailed(.cutOff), of: .client)
    let detail = ending(way: "w", failure: failure).detail(of: .securityFailed(.cutOff))
    #expect(detail.hasPrefix("w: ") && detail.contains("cut off"))
  }
}
