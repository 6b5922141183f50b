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
  /// The addresses of the server, and whether its name was looked up in this round.
  private var addresses: [SocketAddress] = []
  private var isResolved = false
  /// The credential for this round; nil until the application has returned it.
  private var credential: [UInt8]?
  /// The number of refusals of credentials before this round.
  private var refusalsBefore: UInt64 = 0
  private let lookUps = LookUpOwner()
  /// The last round that has looked up a name; nil once the look-up was withdrawn.
  private var lookUpRound: UInt32?
  /// Whether all failed attempts of this round met TLS; nil if none has failed yet.
  private var metTLS: Bool?

  init(for core: ClientCore) {
    self.core = core
    server = core.configuration.connectedServers[0].endpoint
  }

  /// Begins a round: asks for the credential and looks up the server's name.
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

  /// Withdraws the look-up of a round that has ended, because it would delay those of other
  /// clients.
  func withdrawLookUp() {
    guard let round = lookUpRound, !core.machine.link.isResolving(round) else { return }
    lookUpRound = nil
    core.loop.driver.withdrawLookUps(of: lookUps)
  }

  private func answered(_ result: Result<[UInt8], ConnectFailure>, _ round: UInt32) {
    // The round may have ended meanwhile, for example because the client was suspended.
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
  /// Begins an attempt to connect to the address with this index.
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
    // This is longer than the heartbeat takes, so that the heartbeat reports a dead peer first.
    let heartbeat = configuration.dialect.heartbeat(configuration.heartbeat)
    let options = SocketOptions(
      userTimeout: (heartbeat.interval + heartbeat.timeout * 2).clampedNanoseconds)
    do throws(SocketError) {
      var transport = try core.loop.driver.connect(to: address, options: options)
      if let security = configuration.security {
        transport = security.provider.secure(transport, host: server.host, on: core.loop)
      }
      configuration.record(on: core.loop)
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

  /// Notes why the round, or one of its attempts, has failed.
  func failed(_ failure: ConnectFailure) {
    core.lastFailure = failure
    metTLS = metTLS != false && failure.securityFailure?.code == .securePeer
  }

  /// Handles that a server has refused the credential of this round.
  func refused(_ code: ResponseCode) {
    core.tell(.long(.refused(credential ?? [], code, since: refusalsBefore)))
    core.failIfRefused()
  }

  /// Explains a refusal in place of a welcome.
  func text(ofRefusal code: ResponseCode) -> String {
    ConnectFailure.text(ofRefusal: code, of: credential ?? [])
  }

  /// Handles the failure of all attempts of a round.
  func roundFailed() {
    let (endpoint, failure) = (server, core.lastFailure ?? .unknown)
    let isReplacing = core.machine.link.isReplacing
    core.notifyObserver(.roundFailed(server: endpoint, replaces: isReplacing))
    core.log.log(.warning, "Could not connect", at: core.loop.now) {
      ["server": "\(endpoint)"].merging(failure.logMetadata) { $1 }
    }
    // While a link takes requests, they wait for room on it and not for this round.
    guard !isReplacing else { return }
    core.servers.failed(endpoint, speaksTLS: metTLS == true)
    // The failure's address does not show the server's host name.
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
