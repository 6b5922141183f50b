// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import Configuration
internal import Logging
internal import LongLinkCore
internal import LongLinkDriver

/// A key of a client's or a server's configuration: the row of the table, and where its value goes.
struct ConfigurationKey<Target: Sendable>: Sendable {
  /// The form of a value.
  enum Kind: String, Sendable {
    case integer, number, flag, text, texts, integers

    var type: ConfigType {
      switch self {
      case .integer: .int
      case .number: .double
      case .flag: .bool
      case .text: .string
      case .texts: .stringArray
      case .integers: .intArray
      }
    }

    /// The name of the form in the table and in errors.
    var name: String {
      switch self {
      case .integer: "integer"
      case .number: "number"
      case .flag: "true or false"
      case .text: "text"
      case .texts: "list of texts"
      case .integers: "list of integers"
      }
    }
  }

  /// The name, which is that of the configuration's field wherever there is one.
  let name: String
  let kind: Kind
  /// The unit of the number; empty for none.
  let unit: String
  /// The values that are allowed, as text; empty for any.
  let range: String
  /// Whether a change takes effect while the client or server runs.
  var isLive = false
  /// Whether a change takes effect at once only if there was a value at the start, and still is.
  var needsStart = false
  /// Whether the value must not be shown.
  var isSecret = false
  /// The text of the value that a configuration has.
  let text: @Sendable (Target) -> String
  /// Sets the value in a configuration. Returns why the value is not allowed; nil if it is.
  let set: @Sendable (inout Target, ConfigContent) -> String?

  /// What a value has to be, as text.
  var expected: String {
    let what = [kind.name, range].filter { !$0.isEmpty }.joined(separator: ", ")
    return unit.isEmpty ? what : "\(what), in \(unit)"
  }

  /// The same key, whose changes take effect at once.
  var live: Self {
    var key = self
    key.isLive = true
    return key
  }

  /// The same key, whose value is never shown, and which cannot appear or go at run time.
  var secret: Self {
    var key = self
    (key.isSecret, key.needsStart) = (true, true)
    return key
  }

  /// Whether a change from one value to another takes effect at once.
  func isLive(from old: Setting?, to new: Setting?) -> Bool {
    isLive && !(needsStart && (old == nil || new == nil))
  }
}

/// The durations that are allowed, in seconds.
enum SecondsRange: Sendable {
  case positive
  case notNegative
  case between(Double, Double)

  /// The longest duration of a key.
  static let longest = 1_000_000_000.0

  var text: String {
    switch self {
    case .positive: "above 0"
    case .notNegative: "0 or more"
    case .between(let least, let most): "\(Shown.number(least)) to \(Shown.number(most))"
    }
  }

  func contains(_ value: Double) -> Bool {
    guard value.isFinite, value <= SecondsRange.longest else { return false }
    return switch self {
    case .positive: value > 0
    case .notNegative: value >= 0
    case .between(let least, let most): (least...most).contains(value)
    }
  }
}

/// How values are shown in the table and in errors.
enum Shown {
  static func integer(_ value: Int) -> String {
    let digits = String(value.magnitude)
    var text = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text += "," }
      text.append(digit)
    }
    return value < 0 ? "-\(text)" : text
  }

  static func number(_ value: Double) -> String {
    Int(exactly: value).map(integer) ?? "\(value)"
  }

  static func seconds(_ value: Duration) -> String {
    let (seconds, attoseconds) = value.components
    return number(Double(seconds) + Double(attoseconds / 1_000_000_000) / 1_000_000_000)
  }

  static func texts(_ values: [String]) -> String {
    values.isEmpty ? "none" : values.joined(separator: ", ")
  }
}

// MARK: - Keys of fields

extension ConfigurationKey {
  /// Whole numbers; `most` is nil if there is no bound.
  static func integer(
    _ name: String, _ path: any WritableKeyPath<Target, Int> & Sendable, from least: Int,
    to most: Int? = nil, unit: String = ""
  ) -> Self {
    Self(
      name: name, kind: .integer, unit: unit, range: rangeText(least, most),
      text: { Shown.integer($0[keyPath: path]) },
      set: { target, content in
        guard case .int(let value) = content, value >= least, value <= most ?? .max else {
          return "is out of range"
        }
        target[keyPath: path] = value
        return nil
      })
  }

  /// Whole numbers, where 0 stands for no limit.
  static func limit(
    _ name: String, _ path: any WritableKeyPath<Target, Int?> & Sendable, from least: Int,
    to most: Int? = nil, unit: String
  ) -> Self {
    Self(
      name: name, kind: .integer, unit: unit, range: "\(rangeText(least, most)); 0 for no limit",
      text: { Shown.integer($0[keyPath: path] ?? 0) },
      set: { target, content in
        guard case .int(let value) = content,
          value == 0 || value >= least && value <= most ?? .max
        else { return "is out of range" }
        target[keyPath: path] = value == 0 ? nil : value
        return nil
      })
  }

  private static func rangeText(_ least: Int, _ most: Int?) -> String {
    let least = Shown.integer(least)
    return most.map { "\(least) to \(Shown.integer($0))" } ?? "\(least) or more"
  }

  static func seconds(
    _ name: String, _ path: any WritableKeyPath<Target, Duration> & Sendable, _ range: SecondsRange
  ) -> Self {
    Self(
      name: name, kind: .number, unit: "s", range: range.text,
      text: { Shown.seconds($0[keyPath: path]) },
      set: { target, content in
        guard case .double(let value) = content, range.contains(value) else {
          return "is out of range"
        }
        target[keyPath: path] = .nanoseconds(Int64((value * 1_000_000_000).rounded()))
        return nil
      })
  }

  static func number(
    _ name: String, _ path: any WritableKeyPath<Target, Double> & Sendable, _ range: String,
    standard: String? = nil, _ contains: @escaping @Sendable (Double) -> Bool
  ) -> Self {
    Self(
      name: name, kind: .number, unit: "", range: range,
      text: { standard ?? Shown.number($0[keyPath: path]) },
      set: { target, content in
        guard case .double(let value) = content, value.isFinite, contains(value) else {
          return "is out of range"
        }
        target[keyPath: path] = value
        return nil
      })
  }

  static func flag(_ name: String, _ path: any WritableKeyPath<Target, Bool> & Sendable) -> Self {
    Self(
      name: name, kind: .flag, unit: "", range: "", text: { "\($0[keyPath: path])" },
      set: { target, content in
        guard case .bool(let value) = content else { return "is no flag" }
        target[keyPath: path] = value
        return nil
      })
  }

  static func text(
    _ name: String, _ range: String, text: @escaping @Sendable (Target) -> String,
    _ set: @escaping @Sendable (inout Target, String) -> String?
  ) -> Self {
    Self(
      name: name, kind: .text, unit: "", range: range, text: text,
      set: { target, content in
        guard case .string(let value) = content else { return "is no text" }
        return set(&target, value)
      })
  }

  /// A list whose elements `make` reads; nil if it cannot.
  static func list<Element: Sendable>(
    _ name: String, _ path: any WritableKeyPath<Target, [Element]> & Sendable, _ range: String,
    _ make: @escaping @Sendable (String) -> Element?
  ) -> Self {
    texts(name, range, text: { Shown.texts($0[keyPath: path].map { "\($0)" }) }) { target, values in
      var elements: [Element] = []
      for value in values {
        guard let element = make(value) else { return "has \(Self.quoted(value))" }
        elements.append(element)
      }
      target[keyPath: path] = elements
      return nil
    }
  }

  static func texts(
    _ name: String, _ range: String, text: @escaping @Sendable (Target) -> String,
    _ set: @escaping @Sendable (inout Target, [String]) -> String?
  ) -> Self {
    Self(
      name: name, kind: .texts, unit: "", range: range, text: text,
      set: { target, content in
        guard case .stringArray(let values) = content else { return "is no list" }
        // An empty variable of the environment is a list with one empty text.
        return set(&target, values.filter { !$0.isEmpty })
      })
  }

  /// A value in an error: escaped, and cut to 200 bytes.
  static func quoted(_ value: String) -> String { "\"\(PeerText(value))\"" }
}
#endif
