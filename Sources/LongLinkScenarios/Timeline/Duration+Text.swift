// SPDX-License-Identifier: Apache-2.0

extension Duration {
  /// The time in seconds, to the millisecond, such as `2.153 s` or `3 s`.
  var inSeconds: String {
    let milliseconds = Int64((self / .milliseconds(1)).rounded())
    let (whole, part) = milliseconds.magnitude.quotientAndRemainder(dividingBy: 1_000)
    var digits = String(part + 1_000).dropFirst()
    while digits.last == "0" { digits.removeLast() }
    let sign = milliseconds < 0 ? "-" : ""
    return "\(sign)\(whole)\(digits.isEmpty ? "" : ".\(digits)") s"
  }
}

extension Int {
  /// The number with a noun, which is plural unless the number is 1.
  func of(_ noun: String) -> String {
    "\(self) \(noun)\(self == 1 ? "" : "s")"
  }
}
