// SPDX-License-Identifier: Apache-2.0

extension ClientMachine {
  /// What has happened to a client.
  package enum Fact: Sendable {
    /// The time has come that `deadline` states.
    case elapsed
    /// A link is wanted. A client that is not accepted makes one only if it is to try `again`.
    case wanted(again: Bool)
    /// The application asks to connect, which gives refused credentials another try.
    case asked
    /// The network has changed.
    case pathChanged
    /// No link is wanted for now; those that carry requests linger for this time, in nanoseconds.
    case suspended(lingering: Int64)
    case resumed
    /// There are other servers; `kept` has for each of them its index in the old list, if any.
    case serversSwitched([ServerList.Entry], kept: [Int?])
    /// The client is closed, for good.
    case closed
    case long(Long)
    case short(Short)
  }

  /// What has happened to a round, or to one of the long links.
  package enum Long: Sendable {
    /// A look-up has found this many addresses; 0 is a failure.
    case resolved(round: UInt32, addresses: Int)
    /// The application has no credential for a round.
    case noCredential(round: UInt32)
    /// A server has refused the credential of the round that began after `known` refusals.
    case refused([UInt8], ResponseCode, since: UInt64)
    /// The system of an attempt's server has answered the connect.
    case reached(ID)
    /// A goaway came in place of a welcome; `isRefusal` says that it is about who the client is.
    case turnedAway(ID, isRefusal: Bool, Hints)
    /// An attempt has ended, or a link in its trial, or one that was being prepared.
    case failed(ID, CloseReason?)
    /// A handshake is complete. The link takes requests, unless another one was first, or it has to
    /// stand a trial or to be prepared.
    case established(ID, Terms)
    /// A link whose trial is over is used, or prepared.
    case accepted(ID, Terms)
    /// A link is prepared.
    case prepared(ID, Terms)
    /// A link was not prepared, because the application could not. It ends what it has begun.
    case notPrepared(ID)
    /// A goaway came in a link's trial, or while it was being prepared.
    case leftEarly(ID, Hints)
    /// A goaway came.
    case peerLeft(ID, ResponseCode, Hints)
    /// Bytes of the server have arrived since the link was established.
    case heard(ID)
    /// The server has answered a ping.
    case ponged(ID)
    /// The server has answered a request, so that it is known to work.
    case worked(ID)
    /// A request has ended on the link: with a response or, if those count, at its deadline.
    case outcome(ID, isError: Bool)
    /// The server has accepted the next credential of a link for this time, in nanoseconds; nil
    /// without an end.
    case renewed(ID, validity: Int64?)
    /// The credential of a link was not renewed: the next one is refused or, if `refusal` is nil,
    /// the application has none, or the server cannot judge it.
    case notRenewed(ID, refusal: (credential: [UInt8], code: ResponseCode)?)
    /// The next credential of a link can only be shown on another one.
    case cannotRenew(ID)
    /// A link takes no requests any more, and has answered some.
    case answered
    /// A link that took requests has ended.
    case ended(ID, CloseReason, Record)
  }

  /// What has happened to a short link.
  package enum Short: Sendable {
    /// The application has given a credential for one.
    case credential([UInt8])
    /// The application has no credential for it.
    case noCredential(ID)
    /// It can be written to: it gets a request, or is given up.
    case opened(ID)
    /// The next request cannot go over short links.
    case unfit
    /// A server has taken a request with a credential.
    case accepted([UInt8])
    /// A server has refused the credential of one that was opened after `known` refusals.
    case refused([UInt8], ResponseCode, since: UInt64)
    /// A server takes no requests for now; `hint` is how long it asks the client to stay away, in
    /// nanoseconds.
    case turnedAway(ID, hint: Int64?)
    case ended(ID, WayMachine.Outcome)
  }

  /// The hints of a goaway: how long the server asks clients to stay away, in nanoseconds, within
  /// the policy's limit, and the number of servers that it names.
  package typealias Hints = (stayAway: Int64?, alternatives: Int)

  /// What a handshake has agreed on, in nanoseconds: when the link is proven, once bytes have
  /// arrived, and how long the server accepts its credential; nil without an end. And whether it
  /// takes the next one on the link.
  package typealias Terms = (proof: Int64, validity: Int64?, renewsInPlace: Bool)

  /// What a long link has done: whether the server has answered anything of an exchange, whether
  /// there were requests, and how long it took them, in nanoseconds.
  package typealias Record = (hasAnswered: Bool, hasRequests: Bool, life: Int64)
}
