// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport
internal import Synchronization

/// The security of a server whose certificates are replaced while it runs.
final class ReplaceableSecurity: ServerSecurityProvider {
  private struct State {
    var provider: any ServerSecurityProvider
    /// The functions that ask a running server's connections to move, with the server.
    var movers: [(server: ObjectIdentifier, move: @Sendable () -> Void)] = []
  }

  private let state: Mutex<State>

  init(_ security: ServerSecurity) {
    state = Mutex(State(provider: security.provider))
  }

  /// Secures new connections with `security`, and asks existing ones to move if `moves` is true.
  func replace(with security: ServerSecurity, moves: Bool) {
    let movers = state.withLock { state in
      state.provider = security.provider
      return moves ? state.movers.map(\.move) : []
    }
    for move in movers { move() }
  }

  func secure(_ stream: any Transport, on loop: EventLoop) -> any Transport {
    state.withLock { $0.provider }.secure(stream, on: loop)
  }

  // Nothing here watches certificate files, so the log is not needed.
  func serverStarted(
    _ server: ObjectIdentifier, on loop: EventLoop, _: @escaping SecurityLog,
    replaced: @escaping @Sendable () -> Void
  ) {
    state.withLock { $0.movers.append((server, replaced)) }
  }

  func serverStopped(_ server: ObjectIdentifier, on loop: EventLoop) {
    state.withLock { $0.movers.removeAll { $0.server == server } }
  }
}
