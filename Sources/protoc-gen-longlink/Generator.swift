// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The protoc plug-in, which generates Swift and C for messages, services and pushes.
@main
struct Generator: CodeGenerator {
  var supportedFeatures: [Google_Protobuf_Compiler_CodeGeneratorResponse.Feature] {
    [.proto3Optional]
  }

  var customOptionExtensions: [any AnyMessageExtension] {
    [CustomOption.messageType, CustomOption.runsOnce, CustomOption.pushType]
  }

  func generate(
    files: [FileDescriptor],
    parameter: any CodeGeneratorParameter,
    protoCompilerContext: any ProtoCompilerContext,
    generatorOutputs: any GeneratorOutputs
  ) throws {
    let options = try GeneratorOptions(parameter.parsedPairs)
    if options.messages == nil {
      guard let c = options.c else { throw GeneratorError("add Messages=FOLDER or C=FOLDER") }
      try CSource.plain(files).write(to: c, generatorOutputs)
      return
    }
    let schema = Schema(files, options)
    try Checker(schema).check()
    if options.runtime == .protobufC, let c = options.c {
      try CSource.forValues(files, schema.cNames).write(to: c, generatorOutputs)
    }
    for file in files {
      for output in try FileWriter(file, schema).outputs() {
        try generatorOutputs.add(fileName: output.name, contents: output.text)
      }
    }
  }
}

/// The reason for generating nothing, printed by protoc.
struct GeneratorError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// The options of `longlink/options.proto`.
enum CustomOption {
  static let messageType = MessageExtension<
    OptionalExtensionField<ProtobufUInt32>, Google_Protobuf_MethodOptions
  >(_protobuf_fieldNumber: 50720, fieldName: "longlink.message_type")

  static let runsOnce = MessageExtension<
    OptionalExtensionField<ProtobufBool>, Google_Protobuf_MethodOptions
  >(_protobuf_fieldNumber: 50721, fieldName: "longlink.runs_once")

  static let pushType = MessageExtension<
    OptionalExtensionField<ProtobufUInt32>, Google_Protobuf_MessageOptions
  >(_protobuf_fieldNumber: 50720, fieldName: "longlink.push_type")
}

extension MethodDescriptor {
  /// The message type of its requests; nil without the option.
  var messageType: UInt32? {
    guard options.hasExtensionValue(ext: CustomOption.messageType) else { return nil }
    return options.getExtensionValue(ext: CustomOption.messageType)
  }

  /// Whether its requests run once.
  var runsOnce: Bool { options.getExtensionValue(ext: CustomOption.runsOnce) == true }
}

extension Descriptor {
  /// The message type of its pushes; nil without the option.
  var pushType: UInt32? {
    guard options.hasExtensionValue(ext: CustomOption.pushType) else { return nil }
    return options.getExtensionValue(ext: CustomOption.pushType)
  }
}
#else
import Foundation

/// Replaces the plug-in while the trait that it needs is not enabled.
@main
struct Generator {
  static func main() {
    let advice =
      "protoc-gen-longlink: enable LongLink's trait SwiftProtobuf, as in "
      + ".package(url: …, from: …, traits: [\"SwiftProtobuf\"])\n"
    FileHandle.standardError.write(Data(advice.utf8))
    exit(69)
  }
}
#endif
