// SPDX-License-Identifier: Apache-2.0

internal import LongLink
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkServer
internal import LongLinkTransport
internal import Synchronization

// Certificates and credentials of a scenario.
extension ScenarioStage {
  // MARK: Certificates

  /// What secures a server that starts; nil in a plain world.
  func makeSecurity(ofServer index: Int) throws -> ServerSecurity? {
    guard let security else { return nil }
    let edition = state.withLock { $0.editions[index, default: 0] }
    let replaceable = ReplaceableSecurity(try security.server(edition))
    state.withLock { $0.replaceable[index] = replaceable }
    return oracle.watching(ServerSecurity(replaceable))
  }

  /// Replaces certificates at the times of the plan.
  func replaceCertificates() async throws {
    guard let security else { return }
    for replacement in plan.replacements {
      let rest = replacement.at - elapsed
      if rest > .zero { try await simulation.sleep(for: rest) }
      let (edition, replaceable) = state.withLock { state in
        state.editions[replacement.server, default: 0] += 1
        state.faults[.replacedCertificates, default: 0] += 1
        return (
          state.editions[replacement.server, default: 0], state.replaceable[replacement.server]
        )
      }
      oracle.note("the certificates of \(plan.servers[replacement.server].name) are replaced")
      replaceable?.replace(with: try security.server(edition), moves: replacement.moves)
    }
  }

  // MARK: Credentials

  private struct NoCredential: Error {}
  private struct CannotSay: Error {}

  /// The credential of a client's next connect.
  func credential(of client: Int, on loop: EventLoop) async throws -> [UInt8] {
    let (number, isHealed) = state.withLock { state in
      state.credentials[client, default: 0] += 1
      return (state.credentials[client, default: 0], state.isHealed)
    }
    let plan = isHealed ? .healed : plan.credential(number, of: client)
    if plan.delay > .zero { try await loop.sleep(for: plan.delay) }
    switch plan.source {
    case .fresh: return Self.bytes(client, number, isHealed)
    case .stale: return Self.bytes(client, max(1, number - 1), isHealed)
    case .fails: throw NoCredential()
    }
  }

  private static func bytes(_ client: Int, _ number: Int, _ isHealed: Bool) -> [UInt8] {
    var bytes: [UInt8] = [UInt8(client), isHealed ? 1 : 0]
    bytes.appendWord(UInt32(number))
    return bytes
  }

  /// A server's judgement of a client.
  func authenticate(
    _ request: AuthenticationRequest, on loop: EventLoop
  ) async throws -> Authentication {
    guard let bytes = request.credential, bytes.count == 6 else {
      throw AuthenticationRefusal.unauthenticated("there is no credential")
    }
    let client = Int(bytes[0])
    let isHealed = bytes[1] == 1 || state.withLock { $0.isHealed }
    let number = Int(Array(bytes[2...]).word(at: 0))
    let plan = isHealed ? .healed : plan.credential(number, of: client)
    if plan.judging > .zero { try await loop.sleep(for: plan.judging) }
    switch plan.verdict {
    case .accepted: return Authentication(Self.principal(client), validity: plan.validity)
    case .anonymous: return .anonymous
    case .unauthenticated: throw AuthenticationRefusal.unauthenticated("it has expired")
    case .forbidden: throw AuthenticationRefusal.forbidden("not today")
    case .unknown: throw CannotSay()
    }
  }

  private static func principal(_ client: Int) -> Principal { Principal("client-\(client)") }

  /// Ends all connections of a client's principal at one server.
  func endPrincipal(_ fault: ScenarioPlan.Fault, at server: LongLinkServer) {
    let client = Int(fault.detail % UInt64(plan.clients.count))
    let bound = Duration.milliseconds(Int(fault.detail >> 8 % 3_000))
    simulation.spawn {
      _ = await server.endConnections(of: Self.principal(client).name, within: bound)
    }
  }

  /// Lets clients try again that have stopped because their credentials were refused, as their
  /// applications would after a new login.
  func restartStoppedClients() {
    for client in clients {
      guard case .notAccepted = client.state else { continue }
      simulation.spawn { try? await client.connect() }
    }
  }
}
