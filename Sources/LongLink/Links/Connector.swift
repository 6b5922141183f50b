// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// Makes the long links of a client, as its machine says: looks up the server of a round, asks the
/// application for the credential, and opens connections.
final class Connector {
  private unowned let core: ClientCore
  /// The server of the current or last round.
  private(set) var server: Endpoint
  private var round: UInt32 = 0
  /// The addresses of the server, and whether they were looked up.
  private var addresses: [SocketAddress] = []
  private var isResolved = false
  /// What the client shows; nil while the application is asked.
  private var credential: [UInt8]?
  /// The refusals of credentials before the round.
  private var refusalsBefore: UInt64 = 0
  private let lookUps = LookUpOwner()
  /// The last round that has looked a name up; nil once that was withdrawn.
  private var lookUpRound: UInt32?
  /// Whether all attempts of the round that have failed met TLS; nil before the first has.
  private var metTLS: Bool?

  init(for core: ClientCore) {
    self.core = core
    server = core.configuration.connectedServers[0].endpoint
  }

  /// Begins what a round needs before its first attempt.
  func begin(_ round: UInt32, with server: Endpoint) {
    self.server = server
    self.round = round
    (addresses, isResolved, credential, metTLS) = ([], false, nil, nil)
    refusalsBefore = core.machine.refusals.count
    let bound = LoopBound(core, on: core.loop)
    core.withCredential { bound.value.connector.answered($0, round) }
    switch server.kind {
    case .unix(let path): found(.success([.unix(path: path)]), round)
    case .host(let host, let port):
      withdrawLookUp()
      lookUpRound = round
      core.loop.driver.resolve(host: host, port: port, for: lookUps) {
        bound.value.connector.found($0, round)
      }
    }
  }

  /// Withdraws the look-up of a round that has ended, because it delays those of other clients.
  func withdrawLookUp() {
    guard let round = lookUpRound, !core.machine.link.isResolving(round) else { return }
    lookUpRound = nil
    core.loop.driver.withdrawLookUps(of: lookUps)
  }

  private func answered(_ result: Result<[UInt8], ConnectFailure>, _ round: UInt32) {
    // The round may have ended meanwhile: the client was suspended, say.
    guard core.machine.link.isResolving(round) else { return }
    switch result {
    case .success(let credential):
      self.credential = credential
      beginIfReady()
    case .failure(let failure):
      core.lastFailure = failure
      core.tell(.long(.noCredential(round: round)))
    }
  }

  private func found(_ result: Result<[SocketAddress], ResolveError>, _ round: UInt32) {
    // Ignore the result of an earlier round, and of one that has ended.
    guard core.machine.link.isResolving(round) else { return }
    isResolved = true
    switch result {
    case .success([]): failed(ConnectFailure("noAddress", detail: "\(server) has no address"))
    case .success(let found): addresses = found
    case .failure(let error): failed(ConnectFailure("lookUpFailed", detail: "\(error)"))
    }
    beginIfReady()
  }

  private func beginIfReady() {
    guard isResolved, addresses.isEmpty || credential != nil else { return }
    core.tell(.long(.resolved(round: round, addresses: addresses.count)))
  }
}

// MARK: - Attempts

extension Connector {
  /// Begins an attempt to connect to one of the addresses.
  func connect(_ attempt: UInt32, to index: Int) {
    let address = addresses[index]
    core.notifyObserver(
      .attempt(
        attempt, round: round, server: server, address: address,
        replaces: core.machine.link.isReplacing))
    do throws(ConnectFailure) {
      let connection = ClientConnection(try link(attempt, to: address), to: address, for: core)
      core.connections.append(connection)
      connection.link.start(for: connection)
    } catch {
      core.counters.failedAttempts += 1
      failed(error)
      core.notifyObserver(.failed(attempt, error.reason))
      core.tell(.long(.failed(attempt, error.reason)))
    }
  }

  private func link(
    _ attempt: UInt32, to address: SocketAddress
  ) throws(ConnectFailure) -> Link {
    let configuration = core.configuration
    if let failure = objection(toCredentialFor: address) { throw failure }
    var settings: ConnectionSettings
    do throws(DialectTokenError) {
      settings = try configuration.connectionSettings()
    } catch {
      throw ConnectFailure("dialectTokenFailed", detail: error.description, address: address)
    }
    settings.pace = core.pathHeartbeat?.pace
    settings.credential = credential ?? []
    settings.clientID = core.clientID
    // Longer than the heartbeat takes, so that the heartbeat reports a dead peer first.
    let heartbeat = configuration.dialect.heartbeat(configuration.heartbeat)
    let options = SocketOptions(
      userTimeout: (heartbeat.interval + heartbeat.timeout * 2).clampedNanoseconds)
    do throws(SocketError) {
      var transport = try core.loop.driver.connect(to: address, options: options)
      if let security = configuration.security {
        transport = security.provider.secure(transport, host: server.host, on: core.loop)
      }
      return Link(
        id: attempt, transport: transport, isConnected: false, settings: settings, on: core.loop,
        log: core.log, observers: configuration.observers)
    } catch {
      throw ConnectFailure(.transport(error.errno), detail: error.reason, address: address)
    }
  }

  /// Why the credential must not be sent to an address; nil if it may be.
  private func objection(toCredentialFor address: SocketAddress) -> ConnectFailure? {
    let configuration = core.configuration
    guard credential?.isEmpty == false, configuration.security == nil,
      !configuration.identity.sendsCredentialUnencrypted, !address.isLocal
    else { return nil }
    return .unencryptedCredential(for: address, way: nil)
  }

  /// Notes why the round, or an attempt of it, has failed.
  func failed(_ failure: ConnectFailure) {
    core.lastFailure = failure
    metTLS = metTLS != false && failure.securityFailure?.code == .securePeer
  }

  /// Handles a server that did not accept the credential of the round.
  func refused(_ code: ResponseCode) {
    core.tell(.long(.refused(credential ?? [], code, since: refusalsBefore)))
    core.failIfRefused()
  }

  /// What a refusal in place of a welcome says.
  func text(ofRefusal code: ResponseCode) -> String {
    ConnectFailure.text(ofRefusal: code, of: credential ?? [])
  }

  /// Handles a round of which all attempts have failed.
  func roundFailed() {
    let (endpoint, failure) = (server, core.lastFailure ?? .unknown)
    let isReplacing = core.machine.link.isReplacing
    core.notifyObserver(.roundFailed(server: endpoint, replaces: isReplacing))
    core.log.log(.warning, "Could not connect", at: core.loop.now) {
      ["server": "\(endpoint)"].merging(failure.logMetadata) { $1 }
    }
    // While a link is being replaced, requests wait for room on it, not for this round.
    guard !isReplacing else { return }
    core.servers.failed(endpoint, speaksTLS: metTLS == true)
    // The error has the address, which does not show the host name.
    let isNamed = failure.address.map { "\($0)" != "\(endpoint)" } ?? false
    core.failWaiting(
      after: core.servers.areAllSecured ? .refused : .failed, resumesConnect: true
    ) {
      failure.error(.connectFailed, doing: $0, to: isNamed ? "\(endpoint): " : "")
    }
  }
}

extension SocketAddress {
  /// Whether bytes to this address stay on this machine.
  fileprivate var isLocal: Bool { family == .unix || group?.isLoopback ?? false }
}
