// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// When refusals of credentials are final, and what a client does with its waiting requests then.
@Suite struct CredentialRefusalTests {
  private let first: [UInt8] = [1]
  private let other: [UInt8] = [2]

  /// Two refusals in a row, of the same credential or not, and whether the second is final.
  @Test(
    arguments: [
      (true, .unauthenticated, .unauthenticated, true),
      (true, .unauthenticated, .forbidden, true),
      (true, .forbidden, .unauthenticated, true),
      (true, .forbidden, .forbidden, true),
      (false, .unauthenticated, .unauthenticated, false),
      (false, .unauthenticated, .forbidden, false),
      (false, .forbidden, .unauthenticated, false),
      (false, .forbidden, .forbidden, true),
    ] as [(Bool, ResponseCode, ResponseCode, Bool)])
  func `the second refusal is final for the same credential, or with 403 both times`(
    isSame: Bool, former: ResponseCode, code: ResponseCode, isFinal: Bool
  ) {
    var refusals = CredentialRefusals()
    refusals.refused(first, former, since: 0)
    #expect(refusals.finalCode == nil)
    var connected = refusals
    refusals.refused(isSame ? first : other, code, since: 1)
    #expect(refusals.finalCode == (isFinal ? code : nil))
    // While another link shows that a server accepts the client, nothing is final.
    connected.refused(isSame ? first : other, code, since: 1, hasOther: true)
    #expect(connected.finalCode == nil)
  }

  @Test func `of refusals of what was shown together only the first counts`() {
    var refusals = CredentialRefusals()
    #expect(refusals.counts(since: 0))
    refusals.refused(first, .unauthenticated, since: 0)
    #expect(!refusals.counts(since: 0))
    refusals.refused(first, .forbidden, since: 0)
    #expect(refusals.finalCode == nil)
    #expect(refusals.count == 2)
    // Shown when the first was known, but not the second.
    #expect(refusals.counts(since: 1))
    refusals.refused(first, .unauthenticated, since: 1)
    #expect(refusals.finalCode == .unauthenticated)
  }

  @Test func `after a final refusal with 401 another credential may be shown, and counts anew`() {
    var refusals = CredentialRefusals()
    var allowed: [Bool] = []
    for known: UInt64 in 0...1 {
      allowed.append(refusals.allows(first))
      refusals.refused(first, .unauthenticated, since: known)
    }
    allowed.append(refusals.allows(first))
    #expect(refusals.finalCode == .unauthenticated)
    allowed.append(refusals.allows(other))
    #expect(allowed == [true, true, false, true])
    #expect(refusals.finalCode == nil)
    refusals.refused(other, .unauthenticated, since: 2)
    #expect(refusals.finalCode == nil)
  }

  @Test func `after a final refusal with 403 no credential may be shown until it is forgotten`() {
    var refusals = CredentialRefusals()
    for known: UInt64 in 0...1 { refusals.refused(first, .forbidden, since: known) }
    var allowed = [refusals.allows(first), refusals.allows(other)]
    #expect(refusals.finalCode == .forbidden)
    refusals.forget()
    allowed.append(refusals.allows(first))
    #expect(allowed == [false, false, true])
    #expect(refusals.finalCode == nil)
  }

  @Test func `a credential that is accepted clears its own refusal alone`() {
    var refusals = CredentialRefusals()
    refusals.refused(first, .unauthenticated, since: 0)
    refusals.accepted(other)
    #expect(refusals.areOf(first) && !refusals.areOf(other))
    refusals.accepted(first)
    #expect(!refusals.areOf(first))
    refusals.refused(first, .unauthenticated, since: 1)
    #expect(refusals.finalCode == nil)
  }

  @Test func `a setback fails the requests that have nothing to wait for`() {
    let table: [(Setback, Setback.ShortLinks, Setback.Failing)] = [
      (.failed, .unused, .impatient),
      (.failed, .paused, .impatient),
      (.failed, .open, .none),
      (.refused, .unused, .all),
      (.refused, .paused, .impatient),
      (.refused, .open, .none),
      (.refusedOverShortLinks, .unused, .all),
      (.refusedOverShortLinks, .paused, .all),
      (.refusedOverShortLinks, .open, .all),
    ]
    #expect(table.count == Setback.allCases.count * Setback.ShortLinks.allCases.count)
    for (setback, shortLinks, failing) in table {
      #expect(setback.failing(hasLink: false, shortLinks: shortLinks) == failing)
      #expect(setback.failing(hasLink: true, shortLinks: shortLinks) == .none)
    }
  }
}
