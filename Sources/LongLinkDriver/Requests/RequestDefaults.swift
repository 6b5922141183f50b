// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The defaults of a client or server for options that a request leaves nil.
package struct RequestDefaults: Sendable {
  /// The timeout of requests, in nanoseconds.
  package var timeout: Int64
  package var offline: OfflinePolicy

  package init(timeout: Int64, offline: OfflinePolicy) {
    self.timeout = timeout
    self.offline = offline
  }
}
