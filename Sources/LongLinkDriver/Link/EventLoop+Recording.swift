// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

extension EventLoop {
  /// What the ring holds; nil if nothing is recorded. Call it on the loop.
  package var recorded: RecorderSnapshot? {
    #if Operations
    recorder?.snapshot()
    #else
    nil
    #endif
  }
}
