// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

extension Requests {
  /// Sends a request over a link that is being prepared, or fails it: it does not wait, and no
  /// other link ever carries it. One that runs once has a ticket, which says so where nothing is
  /// retried.
  package func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion, defaults: RequestDefaults, over link: Link
  ) -> RequestID {
    handlersDeferred &+= 1
    defer { handlersDeferred &-= 1 }
    let now = loop.now
    var options = copy options
    if options.runsOnce, options.ticket == nil {
      let key = options.idempotencyKey
      options.ticket = OnceTicket(key: key.isEmpty ? loop.randomKey() : key)
    }
    // A key that is too long makes no ticket, and the request fails for it below.
    if options.ticket != nil || !options.runsOnce { options.retry = .never }
    // Requests of the client may wait in their order for the current link.
    options.isOrdered = nil
    let deadline = deadline(of: completion, options, at: now, defaults)
    counters.submitted += 1
    guard let id = table.nextID() else { return turnAway(type, completion, options.ticket) }
    let request = PendingRequest(
      type, body, options, from: now, until: deadline, offline: .failUnlessConnecting, completion)
    if request.runsOnce { beginOnce(id, options) }
    register(id, request, options, at: now)
    do throws(Unsendable) {
      try check(request, isTakenBy: link)
      let sent = try send(id, request, on: link, at: now)
      table.placed(id, on: link.id, sent.position, isTimeTold: sent.isTimeTold)
      request.channel?.opened(on: link, serial: id.serial)
    } catch {
      fail(id, error)
    }
    return id
  }

  /// Throws if a link does not take a request now.
  private func check(
    _ request: PendingRequest, isTakenBy link: Link
  ) throws(Unsendable) {
    guard link.isOpen else { throw Unsendable(.notConnected, "the connection is ending") }
    guard link.hasRoom, !link.connection.marks.isAboveLarge || !request.isLarge,
      table.carriedCount(by: link.id) < link.connection.agreement.maxInFlight
    else {
      throw Unsendable(.overloaded, "no request waits for room while its connection is prepared")
    }
  }
}
