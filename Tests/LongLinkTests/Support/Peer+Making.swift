// SPDX-License-Identifier: Apache-2.0

import Logging

@testable import LongLinkCore
@testable import LongLinkDriver
@testable import LongLinkTransport

extension Peer {
  /// A peer whose requests no handler gets.
  convenience init(id: UInt64, address: SocketAddress?, on loop: EventLoop) {
    self.init(
      id: id, address: address, routes: Router().snapshot,
      log: PeerLog(Logger(label: "peer") { _ in SwiftLogNoOpLogHandler() }), on: loop)
  }
}
