// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport

// Connections that are not open yet.

extension ServerLane {
  /// Reads the header of a proxy from an accepted transport before its connection is opened.
  func greet(_ accepted: any AcceptedTransport, _ admission: Admission) {
    guard !isDraining, !shared.isLeaving(admission) else {
      return shared.connectionEnded(admission)  // Releasing the transport closes it.
    }
    do throws(SocketError) {
      let transport = try accepted.adopt(on: loop)
      takeChangedLimits()
      let limit = admission.accepted + configuration.timeouts.firstFrame.clampedNanoseconds
      greetings[admission.id] = ProxyGreeting(of: admission, transport, on: loop, until: limit) {
        [unowned self] outcome in
        greetings[admission.id] = nil
        named(outcome, transport, admission)
      }
    } catch {
      logFailure(error, admission)
    }
  }

  private func named(
    _ outcome: ProxyGreeting.Outcome, _ transport: any Transport, _ admission: Admission
  ) {
    var admission = admission
    switch outcome {
    case .ended:
      end(transport, admission)
    case .failed(let detail):
      let objection = shared.reject(.proxyHeader)
      log.log(.warning, "Rejected a connection of a proxy", at: loop.now) {
        [
          "reason": "\(objection.rawValue)", "detail": "\(detail)",
          "peer": .peer(transport.peerAddress),
        ]
      }
      end(transport, admission)
    case .named(let client):
      do throws(ConnectionRejection) {
        try shared.name(client, of: &admission, at: loop.now, asking: hooks.accept)
        open(transport, admission)
      } catch {
        shared.logRejection(error, of: client, at: loop.now)
        end(transport, admission)
      }
    }
  }

  private func end(_ transport: any Transport, _ admission: Admission) {
    transport.close()
    shared.connectionEnded(admission)
    finishDraining()
  }

  /// Closes a connection that is not open, because newer ones need its place.
  func evictHandshake(_ id: UInt64) {
    if let greeting = greetings.removeValue(forKey: id) {
      greeting.abandon()
      logEviction(of: greeting.admission)
      shared.connectionEnded(greeting.admission)
      finishDraining()
    } else if let connection = connections[id] {
      // The connection may have opened in the meantime.
      guard connection.isUnopened else { return shared.spare(connection.admission) }
      logEviction(of: connection.admission)
      connection.link.close(.handshakeEvicted)
    }
  }

  private func logEviction(of admission: Admission) {
    log.log(
      .warning, "Closed the oldest connection that was not open, to make room",
      of: admission.group, at: loop.now
    ) {
      [
        "peer": .peer(admission.address),
        "ms": .milliseconds(loop.now - admission.accepted),
      ]
    }
  }

  /// Closes the connections of proxies that have not named their clients yet.
  func abandonGreetings() {
    let waiting = greetings.sorted { $0.key < $1.key }.map(\.value)
    greetings = [:]
    for greeting in waiting {
      greeting.abandon()
      shared.connectionEnded(greeting.admission)
    }
  }

  /// Returns the settings with the time that is left for the connection's first frame, and with
  /// what the observers need.
  func limited(_ settings: ConnectionSettings, by admission: Admission) -> ConnectionSettings {
    var settings = settings
    let used = max(0, loop.now - admission.accepted)
    settings.handshakeTimeout = max(1, settings.handshakeTimeout - used)
    if observers != nil { settings.reportsRefusals = true }
    return settings
  }
}
