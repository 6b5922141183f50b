// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport

extension ClientCore {
  /// Looks up the addresses of a round's server.
  func resolve(_ target: LinkMachine.Target, _ round: UInt32) {
    let endpoint = servers[target]
    roundServer = endpoint
    roundMetTLS = nil
    prepareRound(round)
    switch endpoint.kind {
    case .unix(let path):
      resolved(round, .success([.unix(path: path)]), endpoint)
    case .host(let host, let port):
      withdrawLookUp()
      lookUpRound = round
      let bound = LoopBound(self, on: loop)
      loop.driver.resolve(host: host, port: port, for: lookUps) { result in
        bound.value.resolved(round, result, endpoint)
        bound.value.perform()
      }
    }
  }

  /// Withdraws the look-up of a round that has ended, because it delays those of other clients.
  func withdrawLookUp() {
    guard let round = lookUpRound, !machine.isResolving(round) else { return }
    lookUpRound = nil
    loop.driver.withdrawLookUps(of: lookUps)
  }

  private func resolved(
    _ round: UInt32, _ result: Result<[SocketAddress], ResolveError>, _ endpoint: Endpoint
  ) {
    // Ignore the result of an earlier round, and of one that has ended.
    guard machine.isResolving(round) else { return }
    switch result {
    case .success(let found):
      addresses = found
      if found.isEmpty {
        noteFailure(ConnectFailure("noAddress", detail: "\(endpoint) has no address"))
      }
    case .failure(let error):
      addresses = []
      noteFailure(ConnectFailure("lookUpFailed", detail: "\(error)"))
    }
    foundAddresses(addresses.count, round: round)
  }
}
