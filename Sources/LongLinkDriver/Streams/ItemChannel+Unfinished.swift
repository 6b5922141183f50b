// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension ItemChannel {
  /// What has become of the items so far, as text for people; empty if nothing is to be said.
  var progress: String {
    let receives = shape.contains(isRequester ? .responseItems : .requestItems)
    var parts = receives ? [arrivals] : []
    if writing.isAwaited { parts.append("an item waits to be sent") }
    if isResuming { parts.append("it is opened again when it is cut off") }
    return parts.joined(separator: "; ")
  }

  /// How many items have come, and what the application does with them.
  private var arrivals: String {
    let waiting = reading.inbox.count
    let came = reading.count + UInt64(waiting)
    let text = came == 1 ? "1 item came" : "\(came) items came"
    if reading.isAwaited {
      return text + ", \(isRequester ? "the application" : "the handler") awaits the next"
    }
    if waiting > 0 { return text + ", \(waiting) of them wait to be read" }
    return peerHasEnded ? text + ", no more follow" : text
  }
}
