import Testing

/// What a test of behaviour runs over.
enum World: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case simulated
  case loopback
  case unix

  var testDescription: String { rawValue }
}
