// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTesting
internal import LongLinkTransport
internal import Synchronization

/// The certificates of a scenario's servers.
struct ScenarioCertificates: Sendable {
  let stage: ScenarioStage

  /// Makes the security of a server that starts; nil in a scenario without security.
  func security(ofServer index: Int) throws -> ServerSecurity? {
    guard let security = stage.security else { return nil }
    let edition = stage.state.withLock { $0.editions[index, default: 0] }
    let replaceable = ReplaceableSecurity(try security.server(edition))
    stage.state.withLock { $0.replaceable[index] = replaceable }
    return stage.oracle.watching(ServerSecurity(replaceable))
  }

  /// Replaces certificates at the times of the plan.
  func replaceAll() async throws {
    guard let security = stage.security else { return }
    for replacement in stage.plan.replacements {
      let rest = replacement.at - stage.elapsed
      if rest > .zero { try await stage.simulation.sleep(for: rest) }
      let (edition, replaceable) = stage.state.withLock { state in
        state.editions[replacement.server, default: 0] += 1
        state.faults[.replacedCertificates, default: 0] += 1
        return (
          state.editions[replacement.server, default: 0], state.replaceable[replacement.server]
        )
      }
      stage.oracle.note(
        "the certificates of \(stage.plan.servers[replacement.server].name) are replaced")
      replaceable?.replace(with: try security.server(edition), moves: replacement.moves)
    }
  }
}
