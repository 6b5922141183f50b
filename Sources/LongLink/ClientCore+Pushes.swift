import LongLinkConnection
import LongLinkCore
import LongLinkTransport

extension ClientCore {
  func push(
    _ type: MessageType, _ body: any BodyEncodable & Sendable, _ options: PushOptions
  ) -> PushStep {
    do throws(LongLinkError) {
      let link = try linkForPush(.push(type))
      return pushes.push(type, body, options, over: link)
    } catch {
      return .ended(.failure(error))
    }
  }

  func pushNow(
    _ type: MessageType, _ body: any BodyEncodable & Sendable, priority: UInt32
  ) throws(LongLinkError) {
    let link = try linkForPush(.push(type))
    try pushes.pushNow(type, body, priority: priority, over: link)
  }

  private func linkForPush(_ operation: LongLinkError.Operation) throws(LongLinkError) -> Link {
    guard closing == nil else { throw LongLinkError(.closed, doing: operation) }
    guard let link = requests.current else {
      if machine.state == .idle { start() }
      throw notConnected(operation)
    }
    return link
  }

  func cancelPush(_ id: UInt64) {
    pushes.cancel(id)
  }

  /// There is room again: requests and pushes take turns in being the first to use it.
  func resumeSending(_ link: Link) {
    guard requests.isCurrent(link) else { return }
    pushesGoFirst.toggle()
    if pushesGoFirst { pushes.pump(over: link) }
    requests.pump()
    pushes.pump(over: link)
    if closing != nil { finishClosingIfDone() }
  }

  /// Sends the pushes that wait over the link that there is now, or fails them where there is none:
  /// like a push that is made without one.
  func followPushes(_ reason: CloseReason) {
    guard pushes.count > 0 else { return }
    if let link = requests.current, link.session.isOpen {
      pushes.pump(over: link)
    } else {
      pushes.failAll { operation in
        .lost(reason, delivery: .notSent, doing: operation, peer: nil)
      }
    }
  }
}
