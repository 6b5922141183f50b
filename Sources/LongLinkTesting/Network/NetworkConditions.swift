// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport

/// The path from one machine to another, in one direction.
struct MachinePath: Hashable {
  let from: Int
  let to: Int
}

/// What a test has set for future links: how bytes travel, and how connects are answered.
struct NetworkConditions {
  var general = LinkConditions.normal
  var byAddress: [SocketAddress: LinkConditions] = [:]
  var byPath: [MachinePath: LinkConditions] = [:]
  var connects = ConnectBehavior.normal
  var connectsByAddress: [SocketAddress: ConnectBehavior] = [:]

  /// The conditions from `machine` to `other` on links to an address.
  func of(_ destination: SocketAddress, from machine: Int, to other: Int?) -> LinkConditions {
    other.flatMap { byPath[MachinePath(from: machine, to: $0)] } ?? byAddress[destination]
      ?? general
  }

  /// How a connect to an address is answered.
  func answer(at address: SocketAddress) -> ConnectBehavior {
    connectsByAddress[address] ?? connects
  }
}
