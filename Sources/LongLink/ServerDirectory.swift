// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// The servers of a client, as its link machine names them: by their indices in the list, and by
/// numbers for those that draining servers named.
struct ServerDirectory {
  private var listed: [ServerEntry]
  /// The servers that a draining server named last, and the machine's number of the first.
  private var alternatives: [Endpoint] = []
  private var firstAlternative = 0

  init(_ listed: [ServerEntry]) {
    self.listed = listed
  }

  var entries: [ServerList.Entry] { listed.map(\.entry) }

  subscript(target: LinkMachine.Target) -> Endpoint {
    switch target {
    case .listed(let index): listed[index].endpoint
    case .alternative(let number): alternatives[number - firstAlternative]
    }
  }

  /// Replaces the list; returns for each server its index in the old list, if any.
  mutating func replace(with servers: [ServerEntry]) -> [Int?] {
    let old = listed
    listed = servers
    return servers.map { server in old.firstIndex { $0.endpoint == server.endpoint } }
  }

  /// Keeps the servers that the machine has numbered from `first` on.
  mutating func take(_ named: [Endpoint], from first: Int) {
    alternatives = named
    firstAlternative = first
  }
}
