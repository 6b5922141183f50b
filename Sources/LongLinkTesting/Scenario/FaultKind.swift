// SPDX-License-Identifier: Apache-2.0

/// What can go wrong in a scenario, each kind drawn from the seed and done to a random victim.
public enum FaultKind: String, CaseIterable, Hashable, Sendable, CustomStringConvertible {
  /// Latencies between 30 ms and 2 s, most of them short, and 40 kB a second, for a while.
  case weakRadio
  /// Reads and writes of a few bytes each, for a while.
  case smallPieces
  /// A link is lost: both sides hear of a reset.
  case lostLink
  /// All links are lost at once.
  case lostLinks
  /// One side's kernel resets a link; the other hears of it.
  case reset
  /// One side's end of the stream arrives, though its owner has not ended it.
  case halfClose
  /// What is sent on a link vanishes in both directions for a while, and nobody is told.
  case halfOpen
  /// What is sent on a link vanishes in one direction for a while.
  case oneWay
  /// Two processes cannot reach each other for a while.
  case partition
  /// One bit on its way is flipped.
  case flippedBit
  /// Attempts to connect to a server are refused for a while.
  case refusedConnects
  /// Attempts to connect to a server are not answered for a while.
  case ignoredConnects
  /// Look-ups of a server's name take seconds for a while.
  case slowNames
  /// Look-ups of a server's name fail for a while.
  case failingNames
  /// A link takes no byte for a while.
  case cloggedLink
  /// One side of a link reads nothing for a while.
  case stalledReader
  /// A process's clock jumps forward.
  case clockJump
  /// A process is frozen for a while.
  case pause
  /// A server's process dies, its sockets are reset, and it is started again.
  case crash
  /// A server's machine vanishes without a word, and the server is started again.
  case machineCrash
  /// A server shuts down in good order and is started again.
  case restart
  /// A server closes every connection as soon as it has greeted, for a while.
  case flapping
  /// A server closes its connections once.
  case closedConnection
  /// A client is told that its network has changed.
  case changedPath
  /// A client is suspended for a while, as an app in the background.
  case suspension

  /// The kind's name.
  public var description: String { rawValue }
}
