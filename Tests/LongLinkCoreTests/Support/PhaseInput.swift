// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore

/// Something that happens to a connection: a fact, or a command.
enum PhaseInput: CaseIterable {
  case frameHello, frameWelcome, frameRequest, frameSecondRequest, frameFragment, frameResponse
  case framePush, frameCancel, framePing, framePong, frameGoAway, frameItem, frameIgnored
  case frameUnknown, frameDamaged, frameHalf, emptyRead
  case ended, failed, failedSecurity, elapsedNow, elapsedToDeadline, elapsedLong
  case receivedPart, slowed, unslowed, resumedReading, wroteNothing, wroteSome, wroteAll
  case goawayDecoded, strayItem
  case ping, request, largeRequest, respond, refuseLate, push, cancelKnown, cancelUnknown
  case goAway, shutDown, close, abandonResponse, releaseStorage
  case evict, probe, deadlineMissed, quickenPace, restorePace, setPriority
  case outlive, deafen, handlersReturn, handlersHadTurn, pushEncoded, pushLargeEncoded
  case frameStream, frameStreamItem, frameStreamPart, frameStreamEnd, frameStreamCredit
  case frameOwnItem, openStream, writeItem, endItems, takeItems, respondStream
  case takeCredential, admit, turnAway

  /// What matters most on short links, and while a client is identified: there, not every pair of
  /// the others is tried, because this would take as long as it does on long links.
  static let special: Set<PhaseInput> = [
    .takeCredential, .admit, .turnAway, .slowed, .unslowed, .receivedPart, .failedSecurity,
    .handlersHadTurn, .frameHello, .frameRequest, .ended, .elapsedToDeadline, .respond,
  ]

  /// Whether a driver may do it to a connection in this state: the documented preconditions.
  func isAllowed(_ connection: borrowing Connection) -> Bool {
    switch self {
    // A short link carries one request, and neither pushes nor pings of the application.
    case .request, .largeRequest: connection.isOpen && connection.carriage.takesRequest
    case .push, .pushEncoded, .pushLargeEncoded: connection.isOpen && !connection.settings.isShort
    case .ping: !connection.settings.isShort
    // Servers slow clients down, and the cause is a read.
    case .slowed: connection.isOpen && connection.settings.role == .server
    case .handlersHadTurn: connection.readHold.waitsForHandlers
    // A dialect has no goaway that could be decoded, and nothing is while a client is identified.
    case .goawayDecoded, .strayItem: connection.framing.isNative && connection.phase != .identifying
    case .openStream:
      connection.isOpen && connection.carriage.takesRequest
        && connection.agreement.features.contains(.streams)
    default: true
    }
  }
}
