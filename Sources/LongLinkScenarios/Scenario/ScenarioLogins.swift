// SPDX-License-Identifier: Apache-2.0

internal import LongLink
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkServer
internal import LongLinkTesting
internal import LongLinkTransport
internal import Synchronization

/// The credentials of a scenario's clients, and how its servers judge them.
struct ScenarioLogins: Sendable {
  let stage: ScenarioStage

  private struct NoCredential: Error {}
  private struct CannotSay: Error {}

  /// Returns a client's next credential, or throws if the plan says so.
  func credential(of client: Int, on loop: EventLoop) async throws -> [UInt8] {
    let (number, isHealed) = stage.state.withLock { state in
      state.credentials[client, default: 0] += 1
      return (state.credentials[client, default: 0], state.isHealed)
    }
    let plan = plan(of: number, of: client, isHealed: isHealed)
    if plan.delay > .zero { try await loop.sleep(for: plan.delay) }
    switch plan.source {
    case .fresh: return bytes(client, number, isHealed)
    case .stale: return bytes(client, max(1, number - 1), isHealed)
    case .fails: throw NoCredential()
    }
  }

  /// The plan for a client's credential. `number` counts the client's credentials from 1.
  private func plan(
    of number: Int, of client: Int, isHealed: Bool
  ) -> ScenarioPlan.Credential {
    if isHealed { return .healed }
    let drawn = stage.plan.credential(number, of: client)
    guard !stage.scenario.profile.refusesCredentials else { return drawn }
    return ScenarioPlan.Credential(validity: drawn.validity ?? .seconds(12))
  }

  private func bytes(_ client: Int, _ number: Int, _ isHealed: Bool) -> [UInt8] {
    var bytes: [UInt8] = [UInt8(client), isHealed ? 1 : 0]
    bytes.appendWord(UInt32(number))
    // Only users who change are named.
    let user = stage.state.withLock { $0.users[client, default: 0] }
    if user > 0 { bytes.append(UInt8(user)) }
    return bytes
  }

  /// Judges the credential of a client for a server, as the plan says.
  func authenticate(
    _ request: AuthenticationRequest, on loop: EventLoop
  ) async throws -> Authentication {
    guard let bytes = request.credential, bytes.count >= 6 else {
      throw Rejection(.unauthenticated, "there is no credential")
    }
    let client = Int(bytes[0])
    let isHealed = bytes[1] == 1 || stage.state.withLock { $0.isHealed }
    let number = Int(Array(bytes[2..<6]).word(at: 0))
    let plan = plan(of: number, of: client, isHealed: isHealed)
    if plan.judging > .zero { try await loop.sleep(for: plan.judging) }
    switch plan.verdict {
    case .accepted:
      if stage.plan.once?.anonymous.contains(client) == true { return .anonymous }
      let user = bytes.count > 6 ? Int(bytes[6]) : 0
      return Authentication(Self.principal(client, user), validity: plan.validity)
    case .anonymous:
      stage.peers.mayBeSeveral(client)
      return .anonymous
    case .unauthenticated: throw Rejection(.unauthenticated, "it has expired")
    case .forbidden: throw Rejection(.forbidden, "not today")
    case .unknown: throw CannotSay()
    }
  }

  static func principal(_ client: Int, _ user: Int = 0) -> Principal {
    Principal(user == 0 ? "client-\(client)" : "client-\(client)-\(user)")
  }

  /// Ends all connections of one client's principal at one server.
  func endPrincipal(_ fault: ScenarioPlan.Fault, at server: LongLinkServer) {
    let client = Int(fault.detail % UInt64(stage.plan.clients.count))
    let bound = Duration.milliseconds(Int(fault.detail >> 8 % 3_000))
    stage.oracle.endsPrincipals()
    stage.simulation.spawn {
      _ = await server.endConnections(of: Self.principal(client).name, within: bound)
    }
  }

  /// Lets clients try again that have stopped because their credentials were refused, as their
  /// applications would after a new login.
  func restartStoppedClients() {
    for client in stage.clients {
      guard case .notAccepted = client.state else { continue }
      stage.simulation.spawn { try? await client.connect() }
    }
  }
}
