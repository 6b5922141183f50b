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
      message.tag = try arena.bytes(value.tag)
    },
    read: { message in
      Quote(
        number: message.number, symbol: ProtobufCField.string(message.symbol),
        price: message.price, quantity: message.quantity, tag: ProtobufCField.bytes(message.tag))
    }
  )
}
