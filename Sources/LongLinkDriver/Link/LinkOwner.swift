// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import Logging

/// Receives, on the loop, the events of its links. A callback may give a link any command.
package protocol LinkOwner: AnyObject {
  /// A message of the peer arrived. Its bytes and the link's metadata are valid during the call.
  func link(_ link: Link, received message: Arrival)
  /// The link was established, or begins to end.
  func link(_ link: Link, reports news: LifeNews)
  /// The link has news about the requests of this side.
  func link(_ link: Link, reports news: RequestNews)
  /// The link has news about the stream with a serial, for the side that the stream belongs to.
  func link(_ link: Link, reports news: StreamNews, of serial: UInt32)
  /// The link observed something that does not change its state.
  func link(_ link: Link, observed observation: LinkObservation)
  /// The client has shown its credential, about which the owner decides. Only a server is called.
  func linkIdentifies(_ link: Link)
  /// The peer has cancelled one of its requests. A client's short link has no such requests.
  func link(_ link: Link, cancels request: InboundID)
  /// There is room again for messages that wait.
  func linkResumesSending(_ link: Link)
  /// Returns the number of this side's requests that the link carries.
  func requestsCarried(by link: Link) -> Int
  /// The link has ended; this is its last event.
  func link(_ link: Link, endedWith reason: CloseReason)
  /// The link has written all of its output.
  func linkWroteAll(_ link: Link)
}

extension LinkOwner {
  package func link(_ link: Link, observed observation: LinkObservation) {}
  package func linkIdentifies(_ link: Link) {}
  package func link(_ link: Link, cancels request: InboundID) {}
  package func linkResumesSending(_ link: Link) {}
  package func requestsCarried(by link: Link) -> Int { 0 }
}

extension LinkNews {
  /// Records or logs these news where that is due, and calls the owner's function for them.
  func tell(_ owner: (any LinkOwner)?, of link: Link) {
    switch self {
    case .life(let news): link.record?.note(news, of: link)
    case .observed(.damaged(let violation)):
      link.log(
        .warning, "Dropped a damaged packet",
        ["reason": "\(violation.rule.rawValue)", "detail": "\(violation)"])
    default: break
    }
    if let owner { tell(owner, of: link) }
  }

  private func tell(_ owner: any LinkOwner, of link: Link) {
    switch self {
    case .life(let news): owner.link(link, reports: news)
    case .request(let news): owner.link(link, reports: news)
    case .stream(let news, let serial): owner.link(link, reports: news, of: serial)
    case .observed(let observation): owner.link(link, observed: observation)
    case .identify: owner.linkIdentifies(link)
    case .cancel(let request): owner.link(link, cancels: request)
    case .resumeSending: owner.linkResumesSending(link)
    }
  }
}
