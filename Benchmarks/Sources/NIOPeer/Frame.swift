// SPDX-License-Identifier: Apache-2.0

import CFloor
import NIOCore

/// A frame in the native layout.
struct Frame {
  static let headerLength = 16

  var type: UInt32
  var serial: UInt32
  var body: ByteBuffer
}

struct ChecksumMismatch: Error {}

extension ByteBuffer {
  /// Takes the next complete frame, whose checksum has to be correct.
  mutating func readFrame() throws -> Frame? {
    guard let length = getInteger(at: readerIndex + 8, as: UInt32.self),
      readableBytes >= Frame.headerLength + Int(length)
    else { return nil }
    let sum = withUnsafeReadableBytes { Frame.checksum($0, Int(length)) }
    let type = readInteger(as: UInt32.self)!
    let serial = readInteger(as: UInt32.self)!
    moveReaderIndex(forwardBy: 4)
    guard readInteger(as: UInt32.self)! == sum else { throw ChecksumMismatch() }
    return Frame(type: type, serial: serial, body: readSlice(length: Int(length))!)
  }

  mutating func writeFrame(_ frame: Frame) {
    var body = frame.body
    let length = body.readableBytes
    let start = writerIndex
    writeInteger(frame.type)
    writeInteger(frame.serial)
    writeInteger(UInt32(length))
    writeInteger(UInt32(0))
    writeBuffer(&body)
    let sum = withUnsafeReadableBytes { bytes in
      Frame.checksum(UnsafeRawBufferPointer(rebasing: bytes[(start - readerIndex)...]), length)
    }
    setInteger(sum, at: start + 12)
  }
}

extension Frame {
  /// The checksum of the first 12 bytes of the header and the body.
  static func checksum(_ frame: UnsafeRawBufferPointer, _ length: Int) -> UInt32 {
    let bytes = frame.baseAddress!.assumingMemoryBound(to: UInt8.self)
    return floor_checksum(bytes, length)
  }
}

/// Splits received bytes into frames, and joins the frames of one turn into one buffer.
final class FrameCodec: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = Frame
  typealias OutboundIn = Frame
  typealias OutboundOut = ByteBuffer

  private var rest: ByteBuffer?
  private var out: ByteBuffer!

  func handlerAdded(context: ChannelHandlerContext) {
    out = context.channel.allocator.buffer(capacity: 65_536)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if var whole = rest {
      whole.writeBuffer(&bytes)
      bytes = whole
      rest = nil
    }
    do {
      while let frame = try bytes.readFrame() {
        context.fireChannelRead(wrapInboundOut(frame))
      }
    } catch {
      context.fireErrorCaught(error)
      context.close(promise: nil)
      return
    }
    if bytes.readableBytes > 0 {
      bytes.discardReadBytes()
      rest = bytes
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    out.writeFrame(unwrapOutboundIn(data))
    promise?.succeed()
  }

  func flush(context: ChannelHandlerContext) {
    guard out.readableBytes > 0 else { return context.flush() }
    context.writeAndFlush(wrapOutboundOut(out), promise: nil)
    out.clear()
  }
}
