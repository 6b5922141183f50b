internal import LongLinkCore
internal import LongLinkTransport

extension Link {
  /// Asks the peer for a sign of life.
  package func probe() {
    session.probe(at: loop.driver.now, unacknowledged: unacknowledgedBytes)
    if session.wantsToWrite { writeAtEndOfTurn() }
    arm()
  }

  /// Tells that a request which had left on this link was not answered in its time.
  package func deadlineMissed() {
    session.deadlineMissed(at: loop.driver.now, unacknowledged: unacknowledgedBytes)
    if session.wantsToWrite { writeAtEndOfTurn() }
    arm()
  }

  /// Sets how long this side itself lets a silence last, in nanoseconds.
  package func setPace(_ interval: Int64) {
    session.setPace(interval)
    followDeadline()
  }
}
