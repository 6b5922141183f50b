-- SPDX-License-Identifier: Apache-2.0

-- Recordings -------------------------------------------------------------------------------------

-- Registers dissectors for the two interfaces of a recording: frames and events, each behind 16
-- bytes that say where and when. Only the native protocol is recorded.
local function register_recordings(about)
  local name = protocol.name .. "_recording"
  local frames = Proto(name, protocol.title .. " recording, a frame")
  local events = Proto(name .. "_event", protocol.title .. " recording, an event")
  local own = name .. "."
  local shown = {
    connection = ProtoField.uint32(own .. "connection", "Connection"),
    direction = ProtoField.uint8(
      own .. "direction", "Direction", base.DEC,
      { [0] = "received", [1] = "sent", [2] = "neither" }),
    loop = ProtoField.uint8(own .. "loop", "Loop"),
    version = ProtoField.uint16(own .. "version", "Version"),
    instant = ProtoField.int64(own .. "instant", "Nanoseconds of the loop's clock"),
    left_out = ProtoField.uint32(own .. "left_out", "Bytes that were left out"),
    event = ProtoField.uint8(own .. "event", "Event", base.DEC, about.events),
    taken = ProtoField.uint8(own .. "taken", "Messages and effects taken before"),
    count = ProtoField.uint16(own .. "count", "Number of numbers"),
    number = ProtoField.uint64(own .. "number", "Number"),
    text = ProtoField.string(own .. "text", "Text"),
  }
  local listed_here = {}
  for _, field in pairs(shown) do listed_here[#listed_here + 1] = field end
  frames.fields = listed_here

  -- Shows the 16 bytes, and returns the conversation.
  local function show_prefix(tvb, pinfo, tree)
    tree:add(shown.connection, tvb(0, 4))
    tree:add(shown.direction, tvb(4, 1))
    tree:add(shown.loop, tvb(5, 1))
    tree:add(shown.version, tvb(6, 2))
    tree:add(shown.instant, tvb(8, 8))
    pinfo.cols.protocol = protocol.title
    pinfo.cols.info = "connection " .. tvb(0, 4):uint() .. " "
    return conversation_of(tvb(5, 1):uint() .. "/" .. tvb(0, 4):uint())
  end

  -- The end of the body may have been left out, and secrets blanked.
  local function show_recorded_body(frame, record, tvb, pinfo, tree, conversation, is_new)
    if not frame.left_out and not record.fragment then
      return show_body(frame, record, tvb, pinfo, tree, conversation, is_new)
    end
    local start, size = frame.body[1], frame.body[2]
    local item = size > 0 and tree:add(fields.body, tvb(start, size)) or tree
    if (frame.left_out or 0) > 0 then
      tree:add(shown.left_out, frame.left_out):set_generated()
    end
    if frame.is_broken or size == 0 then return end
    local description = protocol.messages[frame.rule.kind]
    if description and frame.left_out == 0 then
      local message = show_message(tvb(start, size):tvb(), description, item)
      if message and is_new then agree(frame, record, conversation, message) end
    elseif frame.rule.fragments and frame.flags >= 2 and size > 2 then
      local count = math.min(tvb(start, 2):uint(), size - 2)
      if count > 0 then
        local block = tree:add(fields.metadata_block, tvb(start + 2, count))
        show_message(tvb(start + 2, count):tvb(), protocol.messages.metadata, block)
      end
    end
  end

  -- Who has sent a frame: its request or response says so, else the role of the recorded side.
  local function sender_of_recorded(part, is_received, conversation)
    local kind, serial = part(0, 1):uint() % 64, part(4, 4):uint()
    local owner = serial >= 2147483648 and "server" or "client"
    if kind == about.request then return owner end
    if kind == about.response then return other[owner] end
    local role = conversation.role or "server"
    return is_received and other[role] or role
  end

  function frames.dissector(tvb, pinfo, tree)
    if tvb:len() < 16 then return 0 end
    local top = tree:add(frames, tvb(0, 16))
    local conversation = show_prefix(tvb, pinfo, top)
    local length = protocol.shapes.client.length
    if tvb:len() - 16 < length then
      pinfo.cols.info:append("an incomplete frame")
      return tvb:len()
    end
    local part = tvb(16):tvb()
    local sender = sender_of_recorded(part, tvb(4, 1):uint() == 0, conversation)
    conversation.show_body, conversation.is_first = show_recorded_body, true
    local frame = read_header(part, 0, sender, conversation)
    local size = part:len() - length
    local is_blanked = frame.flags >= 2 or frame.rule and frame.rule.kind == "hello"
    if frame.length == size and not is_blanked then
      complete(frame, part, { length, size }, part:len())
    else
      frame.body, frame.total, frame.trailer = { length, size }, part:len(), part:len()
      frame.contents = size > 0 and part:raw(length, size) or ""
      frame.left_out = math.max(0, frame.length - size)
    end
    show(frame, part, pinfo, tree, conversation, pinfo.number .. "/recorded")
    return tvb:len()
  end

  function events.dissector(tvb, pinfo, tree)
    if tvb:len() < 20 then return 0 end
    local top = tree:add(events, tvb())
    local conversation = show_prefix(tvb, pinfo, top)
    local code, count = tvb(16, 1):uint(), tvb(18, 2):uint()
    local text = about.events[code] or "event " .. code
    pinfo.cols.info:append(text)
    top:append_text(", " .. text)
    top:add(shown.event, tvb(16, 1))
    top:add(shown.taken, tvb(17, 1))
    top:add(shown.count, tvb(18, 2))
    local place = 20
    for _ = 1, count do
      if place + 8 > tvb:len() then return tvb:len() end
      top:add(shown.number, tvb(place, 8))
      place = place + 8
    end
    if place < tvb:len() then top:add(shown.text, tvb(place)) end
    if code == about.began and count >= 2 then
      -- The lowest of the flags, which are the second number.
      conversation.role = tvb(35, 1):uint() % 2 == 1 and "server" or "client"
    end
    return tvb:len()
  end

  local encapsulations = DissectorTable.get("wtap_encap")
  local types = wtap or wtap_encaps
  encapsulations:add(types.USER0, frames)
  encapsulations:add(types.USER1, events)
end

if protocol.recording then register_recordings(protocol.recording) end
