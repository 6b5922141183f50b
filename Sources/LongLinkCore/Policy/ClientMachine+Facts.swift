// SPDX-License-Identifier: Apache-2.0

extension ClientMachine {
  /// An event or request that a client tells its machine.
  package enum Fact: Sendable {
    /// The machine's `deadline` has passed.
    case elapsed
    /// A link is wanted. A client that servers do not accept makes one only if `again` is true.
    case wanted(again: Bool)
    /// The application asks to connect, which gives refused credentials another try.
    case asked
    /// The network has changed.
    case pathChanged
    /// No link is wanted for now. Links that carry requests linger for this time, in nanoseconds.
    case suspended(lingering: Int64)
    case resumed
    /// The servers were replaced. For each of them, `kept` has its index in the old list; nil if
    /// new.
    case serversSwitched([ServerList.Entry], kept: [Int?])
    /// The client is closed, for good.
    case closed
    case long(Long)
    case short(Short)
  }

  /// An event of a round, or of one of the long links.
  package enum Long: Sendable {
    /// A look-up has found this many addresses; 0 if it failed.
    case resolved(round: UInt32, addresses: Int)
    /// The application has no credential for this round.
    case noCredential(round: UInt32)
    /// A server has refused the credential of the round that began after `known` refusals.
    case refused([UInt8], ResponseCode, since: UInt64)
    /// The system of an attempt's server has answered the TCP connect.
    case reached(ID)
    /// A goaway came instead of a welcome. `isRefusal` says that the server does not accept the
    /// client.
    case turnedAway(ID, isRefusal: Bool, Hints)
    /// An attempt has ended; or a link has, in its trial or while it was being prepared.
    case failed(ID, CloseReason?)
    /// A handshake is complete. The link takes requests, unless another link was first, or this one
    /// has to stand a trial or to be prepared.
    case established(ID, Terms)
    /// The trial of a link is over, so it can be prepared or used.
    case accepted(ID, Terms)
    /// The preparation of a link is complete, so it can be used.
    case prepared(ID, Terms)
    /// The preparation of a link has failed. The link only finishes what it has begun.
    case notPrepared(ID)
    /// A goaway came during a link's trial or preparation.
    case leftEarly(ID, Hints)
    /// A goaway came on a link that takes requests, or took them.
    case peerLeft(ID, ResponseCode, Hints)
    /// Bytes from the server have arrived since the link was established.
    case heard(ID)
    /// The server has answered a ping.
    case ponged(ID)
    /// The server has answered a request, so that it is known to work.
    case worked(ID)
    /// A request on the link has ended: with a response, or at its deadline if deadlines count.
    case outcome(ID, isError: Bool)
    /// The server has accepted the renewed credential of a link, for `validity` nanoseconds; nil
    /// for no end.
    case renewed(ID, validity: Int64?)
    /// The credential of a link was not renewed. `refusal` is the refused credential and the code;
    /// nil if the application had no credential, or the server could not judge it.
    case notRenewed(ID, refusal: (credential: [UInt8], code: ResponseCode)?)
    /// The credential of a link cannot be renewed in place: the new one needs another link.
    case cannotRenew(ID)
    /// A link has answered requests, and takes none any more.
    case answered
    /// A link that took requests has ended.
    case ended(ID, CloseReason, Record)
  }

  /// An event of a short link.
  package enum Short: Sendable {
    /// The application has given a credential for a short link.
    case credential([UInt8])
    /// The application has no credential for this short link.
    case noCredential(ID)
    /// The short link can be written to: it gets a request, or is given up.
    case opened(ID)
    /// The next waiting request cannot go over short links.
    case unfit
    /// A server has accepted a request with this credential over a short link.
    case accepted([UInt8])
    /// A server has refused the credential of a short link that was opened after `known` refusals.
    case refused([UInt8], ResponseCode, since: UInt64)
    /// A server takes no requests for now; `hint` is how long it asks the client to stay away, in
    /// nanoseconds.
    case turnedAway(ID, hint: Int64?)
    case ended(ID, WayMachine.Outcome)
  }

  /// The hints of a goaway: how long the server asks clients to stay away, in nanoseconds and
  /// within the policy's limit (nil if it does not), and the number of servers that it names.
  package typealias Hints = (stayAway: Int64?, alternatives: Int)

  /// What a handshake has agreed on: after how many nanoseconds the link is proven, once bytes have
  /// arrived; for how many the server accepts the credential (nil for no end); and whether the
  /// credential can be renewed on the link.
  package typealias Terms = (proof: Int64, validity: Int64?, renewsInPlace: Bool)

  /// The history of a long link: whether the server has answered any exchange, whether the link has
  /// carried requests, and for how many nanoseconds it has taken them.
  package typealias Record = (hasAnswered: Bool, hasRequests: Bool, life: Int64)
}
