// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// The servers of a client, under the names that its link machine gives them: indices in the list,
/// and numbers of alternatives that draining servers have named.
struct ServerDirectory {
  private var listed: [ServerEntry]
  /// The alternatives that a draining server named last, and the machine's number of the first one.
  private var alternatives: [Endpoint] = []
  private var firstAlternative = 0
  /// The listed servers that spoke TLS at the last attempt, though the client does not.
  private var secured: Set<Endpoint> = []

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

  /// Replaces the list. Returns the index of each server in the old list; nil if it is new.
  mutating func replace(with servers: [ServerEntry]) -> [Int?] {
    let old = listed
    listed = servers
    secured = []
    return servers.map { server in old.firstIndex { $0.endpoint == server.endpoint } }
  }

  /// Whether all listed servers are known to speak TLS, which this client does not.
  var areAllSecured: Bool {
    !secured.isEmpty && listed.allSatisfy { secured.contains($0.endpoint) }
  }

  /// Records that a server could not be reached, because it speaks TLS or for another reason.
  mutating func failed(_ endpoint: Endpoint, speaksTLS: Bool) {
    secured.remove(endpoint)
    if speaksTLS, listed.contains(where: { $0.endpoint == endpoint }) { secured.insert(endpoint) }
  }

  /// Forgets which servers speak TLS, because a server was reached.
  mutating func forgetSecured() { secured = [] }

  /// Keeps the alternatives that a draining server has named, if the machine has numbered them.
  mutating func take(_ named: [Endpoint], numbered numbers: Range<Int>) {
    guard !numbers.isEmpty else { return }
    alternatives = named
    firstAlternative = numbers.lowerBound
  }
}
