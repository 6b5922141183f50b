// SPDX-License-Identifier: Apache-2.0

/// The documents that are read. They are the same in each run.
enum Documents {
  /// What an element of about 1 KiB is mostly made of.
  enum Content: String, CaseIterable {
    case text
    case references
    case children
  }

  /// An element with attributes, children, and more content of one kind.
  static func node(_ number: Int, _ content: Content) -> [UInt8] {
    let log =
      switch content {
      case .text:
        String(
          repeating: "The ship \(number) leaves the harbour and sails to the west. ", count: 14)
      case .references:
        String(
          repeating: "The ship \(number) leaves &amp; sails west; 12 &lt; 13. ", count: 16)
      case .children:
        String(repeating: #"<leg n="\#(number)">west</leg><stop/>"#, count: 24)
      }
    return Array(
      """
      <node id="\(number)" kind="ship"><name>Ship &amp; Co</name><port code="\(number % 97)">Åbo</port>\
      <draught unit="m">4.\(number % 10)</draught><log>\(log)</log></node>

      """.utf8)
  }

  /// A document of nodes with at least so many bytes.
  static func xml(_ count: Int, _ content: Content) -> [UInt8] {
    var bytes = Array("<?xml version=\"1.0\"?><nodes>".utf8)
    var number = 0
    while bytes.count < count {
      bytes += node(number, content)
      number += 1
    }
    return bytes + Array("</nodes>".utf8)
  }

  struct Ship: Codable {
    struct Port: Codable {
      var code: Int
      var name: String
    }

    var id: Int
    var name: String
    var ports: [Port]
    var log: String
    var draught: Double
    var isAfloat: Bool
  }

  /// An object of about 1 KiB.
  static func ship(_ number: Int) -> [UInt8] {
    let text = String(
      repeating: #"The ship \"\#(number)\" leaves the harbour, and sails {west}. "#, count: 10)
    let ports = (0..<6).map { #"{"code":\#(number % 97 + $0),"name":"Åbo"}"# }
    return Array(
      """
      {"id":\(number),"name":"Ship \(number)","ports":[\(ports.joined(separator: ","))],\
      "log":"\(text)","draught":4.\(number % 10),"isAfloat":true}
      """.utf8)
  }

  /// An array of ships with at least so many bytes.
  static func json(_ count: Int) -> [UInt8] {
    var bytes = Array("[".utf8)
    var number = 0
    while bytes.count < count {
      if number > 0 { bytes.append(UInt8(ascii: ",")) }
      bytes += ship(number)
      number += 1
    }
    return bytes + Array("]".utf8)
  }
}
