// SPDX-License-Identifier: Apache-2.0

/// A kind of fault in a scenario. The seed decides which faults are injected, and their victims.
package enum FaultKind: String, CaseIterable, Hashable, Sendable, CustomStringConvertible {
  /// Latencies from 30 ms to 2 s, most of them short, and 40 kB per second, for a while.
  case weakRadio
  /// Reads and writes of a few bytes each, for a while.
  case smallPieces
  /// A link breaks: both sides get a reset.
  case lostLink
  /// All links break at the same time.
  case lostLinks
  /// One side gets a reset that the other side has not sent.
  case reset
  /// One direction of a link ends, though its writer has not ended it.
  case halfClose
  /// A link silently drops both directions for a while.
  case halfOpen
  /// A link silently drops one direction for a while.
  case oneWay
  /// Two processes cannot reach each other for a while.
  case partition
  /// One bit is flipped in transit.
  case flippedBit
  /// Attempts to connect to a server are refused for a while.
  case refusedConnects
  /// Attempts to connect to a server get no answer for a while.
  case ignoredConnects
  /// Look-ups of a server's name take seconds for a while.
  case slowNames
  /// Look-ups of a server's name fail for a while.
  case failingNames
  /// Writes to a link take nothing for a while.
  case cloggedLink
  /// One side of a link reads nothing for a while.
  case stalledReader
  /// A process's clock jumps forward.
  case clockJump
  /// A process is frozen for a while.
  case pause
  /// A server's process crashes, its sockets are closed, and it is started again.
  case crash
  /// A server's machine vanishes silently, and the server is started again.
  case machineCrash
  /// A server shuts down gracefully and is started again.
  case restart
  /// A server closes every connection right after the handshake, for a while.
  case flapping
  /// A server closes its connections once.
  case closedConnection
  /// A client is notified that its network has changed.
  case changedPath
  /// A client is suspended for a while, like an app in the background.
  case suspension
  /// A network lets no client connect to the servers' long ports for a while, and breaks the links
  /// there. Only profiles with short links draw it.
  case blockedPorts
  /// A server ends the connections of a client's principal. Only profiles with credentials draw it.
  case endedPrincipal
  /// A server's process or machine crashes at a point of a request that runs once (``OncePoint``),
  /// and is started again. This and the kinds below are drawn only by profiles with such requests.
  case crashedRun
  /// A second process of a client's application takes over, while the first one's connection may be
  /// there.
  case secondClient
  /// The user of a client changes.
  case login
  /// Calls of a store fail, are slow, come late or come twice, for a while.
  case failingStore
  /// A store loses all of its records, and takes another name.
  case lostStore
  /// The clock of a store jumps, or is set back, so that it stands still; then it goes slowly or
  /// fast.
  case storeClock
  /// The certificates of a server are replaced, and its connections perhaps asked to move. Drawn
  /// beside the faults of a profile, in runs with a ``ScenarioSecurity``.
  case replacedCertificates

  /// The kind's name.
  package var description: String { rawValue }
}
