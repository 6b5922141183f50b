// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension DialectDecoder {
  /// The result of a search for the end of a body.
  private enum BodyEnd {
    case at(Int)
    case notYet
    case damaged(Int, Violation)
  }

  mutating func delimited(_ bytes: UnsafeMutableRawBufferPointer) -> DialectStep {
    let plan = codec.incoming
    let width = plan.delimiter.count
    let raw = UnsafeRawBufferPointer(bytes)
    if isLost { return unsafe search(raw) }
    guard raw.count >= plan.lead else { return .needMore(atLeast: plan.lead) }
    guard unsafe plan.isDelimiter(raw, at: plan.headerLength) else {
      // The bytes in place of the header may contain the start of the next packet.
      return lose(1, Violation(.delimiterMissing))
    }
    let facts: DialectCodec.Facts
    do throws(Violation) {
      facts = try unsafe codec.validate(header: raw)
    } catch {
      // The delimiter after its header does not end a packet.
      return lose(plan.lead, error)
    }
    switch unsafe bodyEnd(raw, facts) {
    case .notYet:
      let wanted = plan.inside == .lengthChecked ? plan.lead + facts.length! + width : 0
      return .needMore(atLeast: max(wanted, raw.count + 1))
    case .damaged(let count, let violation):
      return lose(count, violation)
    case .at(let end):
      let length = end + width
      var body = plan.lead..<end
      if case .escaped(let escape) = plan.inside {
        body = unsafe DialectDecoder.unescape(body, escape, bytes)
      }
      do throws(Violation) {
        guard body.count <= codec.maximumIncoming else {
          throw facts.violation(.lengthOverLimit, UInt64(body.count))
        }
        guard facts.length == nil || facts.length == body.count else {
          throw facts.violation(.sizeNotAllowed, UInt64(body.count))
        }
        return .frame(try unsafe codec.frame(facts, raw, body, length: length))
      } catch {
        // The end of the frame is known, so the decoder is not lost.
        return .damaged(length, error)
      }
    }
  }

  private mutating func lose(_ count: Int, _ violation: Violation) -> DialectStep {
    isLost = true
    return .damaged(count, violation)
  }

  private mutating func bodyEnd(
    _ bytes: UnsafeRawBufferPointer, _ facts: DialectCodec.Facts
  ) -> BodyEnd {
    let plan = codec.incoming
    let width = plan.delimiter.count
    switch plan.inside {
    case .lengthChecked, nil:
      let end = plan.lead + facts.length!
      guard bytes.count >= end + width else { return .notYet }
      guard unsafe plan.isDelimiter(bytes, at: end) else {
        // The length is wrong, or the end was damaged; the body may contain the next packet.
        return .damaged(plan.lead, facts.violation(.delimiterMissing))
      }
      return .at(end)
    case .refused:
      let start = max(searched, plan.lead)
      if let end = unsafe plan.delimiter(in: bytes, from: start) { return .at(end) }
      searched = max(plan.lead, bytes.count - width + 1)
      guard searched - plan.lead <= codec.maximumIncoming else {
        let value = UInt64(searched - plan.lead)
        return .damaged(searched, facts.violation(.lengthOverLimit, value))
      }
      return .notYet
    case .escaped(let escape):
      return unsafe escapedEnd(bytes, facts, escape)
    }
  }

  private mutating func escapedEnd(
    _ bytes: UnsafeRawBufferPointer, _ facts: DialectCodec.Facts, _ escape: UInt8
  ) -> BodyEnd {
    let plan = codec.incoming
    let width = plan.delimiter.count
    var place = max(searched, plan.lead)
    defer { searched = place }
    while place < bytes.count {
      let byte = unsafe bytes[place]
      if byte == escape {
        guard place + 1 < bytes.count else { break }
        place += 2
      } else if byte == plan.delimiter[0] {
        guard place + width <= bytes.count else { break }
        if unsafe plan.isDelimiter(bytes, at: place) { return .at(place) }
        return .damaged(place, facts.violation(.delimiterMissing))
      } else {
        place += 1
      }
    }
    guard place - plan.lead <= 2 * codec.maximumIncoming else {
      let value = UInt64(place - plan.lead)
      return .damaged(place, facts.violation(.lengthOverLimit, value))
    }
    return .notYet
  }

  /// Removes the escape bytes from a body, and returns its new position.
  private static func unescape(
    _ body: Range<Int>, _ escape: UInt8, _ bytes: UnsafeMutableRawBufferPointer
  ) -> Range<Int> {
    var (from, to) = (body.lowerBound, body.lowerBound)
    while from < body.upperBound {
      // The search for the end treated an escape byte and the byte after it as a pair.
      if unsafe bytes[from] == escape { from += 1 }
      unsafe bytes[to] = bytes[from]
      from += 1
      to += 1
    }
    return body.lowerBound..<to
  }

  /// Searches for the next delimiter that is followed by a plausible packet.
  private mutating func search(_ bytes: UnsafeRawBufferPointer) -> DialectStep {
    let plan = codec.incoming
    let width = plan.delimiter.count
    while let found = unsafe plan.delimiter(in: bytes, from: searched) {
      let begin = found + width
      guard bytes.count >= begin + plan.lead else {
        if found > 0 { return .skipped(found) }
        return .needMore(atLeast: begin + plan.lead)
      }
      if unsafe isCredible(UnsafeRawBufferPointer(rebasing: bytes[begin...])) {
        isLost = false
        return .skipped(begin)
      }
      searched = found + 1
    }
    let useless = bytes.count - width + 1
    return useless > 0 ? .skipped(useless) : .needMore(atLeast: width)
  }

  private func isCredible(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard unsafe codec.incoming.isDelimiter(bytes, at: codec.incoming.headerLength) else {
      return false
    }
    do throws(Violation) {
      _ = try unsafe codec.validate(header: bytes)
      return true
    } catch {
      return false
    }
  }
}
