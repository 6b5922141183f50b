// SPDX-License-Identifier: Apache-2.0

import CQuote
import LongLinkProtobufC

/// The five fields of the typed runs.
struct Quote: Equatable, Sendable {
  var number: UInt64
  var symbol = "LONGLINK"
  var price: Int64 = -98_765
  var quantity: UInt32 = 250
  var tag = [UInt8](repeating: 7, count: 32)
}

extension Quote: ProtobufCBody {
  static let layout = ProtobufCLayout<Quote>(
    initialize: longlink__bench__quote__init,
    fill: { message, value, arena in
      message.number = value.number
      message.symbol = try arena.string(value.symbol)
      message.price = value.price
      message.quantity = value.quantity
      message.tag = arena.bytes(value.tag)
    },
    read: { reader in
      var value = Quote(number: 0, symbol: "", price: 0, quantity: 0, tag: [])
      while let field = try reader.next() {
        switch field {
        case 1: value.number = try reader.uint64()
        case 2: value.symbol = try reader.string()
        case 3: value.price = try reader.sint64()
        case 4: value.quantity = try reader.uint32()
        case 5: value.tag = try reader.bytes()
        default: try reader.skip()
        }
      }
      return value
    }
  )
}
