-- SPDX-License-Identifier: Apache-2.0

-- Showing ----------------------------------------------------------------------------------------

local function add_note(item, name, detail)
  if detail then
    item:add_proto_expert_info(experts[name], protocol.notes[name].text .. " (" .. detail .. ")")
  else
    item:add_proto_expert_info(experts[name])
  end
end

local function varint(data, place)
  local value, unit = 0, 1
  for index = place, math.min(place + 9, #data) do
    local byte = data:byte(index)
    value = value + byte % 128 * unit
    if byte < 128 then return value, index + 1 end
    unit = unit * 128
  end
end

-- Whether bytes are UTF-8 (RFC 3629) without a NUL.
local function is_text(data)
  local place = 1
  while place <= #data do
    local first = data:byte(place)
    local count = first < 0x80 and 0 or first < 0xC2 and 9 or first < 0xE0 and 1
      or first < 0xF0 and 2 or first < 0xF5 and 3 or 9
    if first == 0 or place + count > #data then return false end
    for index = place + 1, place + count do
      local byte = data:byte(index)
      if byte < 0x80 or byte > 0xBF then return false end
    end
    local second = data:byte(place + 1)
    if first == 0xE0 and second < 0xA0 or first == 0xED and second > 0x9F
      or first == 0xF0 and second < 0x90 or first == 0xF4 and second > 0x8F
    then
      return false
    end
    place = place + count + 1
  end
  return true
end

-- An entry of a map, as text; nil if it is malformed.
local function pair(data)
  local parts, place = { "", "" }, 1
  while place <= #data do
    local key, length, after
    key, after = varint(data, place)
    if not key or key % 8 ~= 2 then return nil end
    length, after = varint(data, after)
    if not length or after + length > #data + 1 then return nil end
    local number = math.floor(key / 8)
    if parts[number] then parts[number] = data:sub(after, after + length - 1) end
    place = after + length
  end
  return is_text(parts[1]) and is_text(parts[2]) and parts[1] .. " = " .. parts[2] or nil
end

-- Shows a Protocol Buffers message and returns its numbers by name; nil if it is malformed. A field
-- of bytes counts as 0 if all of them are zero, else as 1.
local function show_message(tvb, description, tree)
  local data, place, numbers = tvb:raw(), 1, {}
  while place <= #data do
    local key, after = varint(data, place)
    if not key or key < 8 or key > 4294967295 or after > place + 5 then return nil end
    local kind, field = key % 8, description.fields[math.floor(key / 8)]
    local value, stop
    if kind == 0 then
      value, stop = varint(data, after)
      if not value then return nil end
    elseif kind == 1 or kind == 5 then
      stop = after + (kind == 1 and 8 or 4)
    elseif kind == 2 then
      local length
      length, after = varint(data, after)
      if not length or length > 4294967295 then return nil end
      stop = after + length
    else
      return nil
    end
    if stop > #data + 1 then return nil end
    local whole = tvb(place - 1, stop - place)
    if field and field.type == "number" and kind == 0 then
      numbers[field.name] = value
      tree:add(field.shown, whole, UInt64(value % 4294967296, math.floor(value / 4294967296)))
    elseif field and field.type ~= "number" and kind == 2 then
      local content = stop > after and tvb(after - 1, stop - after)
      if field.type == "bytes" then
        if content and field.size and stop - after ~= field.size then return nil end
        if content then
          tree:add(field.shown, content)
          numbers[field.name] = data:sub(after, stop - 1):find("[^\0]") and 1 or 0
        end
      else
        local text = data:sub(after, stop - 1)
        if field.type == "entry" then text = pair(text) end
        if not text or not is_text(text) then return nil end
        tree:add(field.shown, whole, text)
      end
    elseif field then
      return nil
    end
    place = stop
  end
  return numbers
end

local function show_fields(tvb, tree, list, offset, kind)
  local items = {}
  for _, field in ipairs(list) do
    local range, shown = tvb(offset, field.width), fields[field.filter]
    local item
    if field.bytes then
      item = tree:add(shown, range)
    elseif field.width == 8 then
      item = tree:add(shown, range, field.little and range:le_uint64() or range:uint64())
    else
      local value = field.little and range:le_uint() or range:uint()
      -- The field may be wider in the other direction.
      item = tree:add(shown, range, wide[field.filter] and UInt64(value, 0) or value)
    end
    items[field.means] = item
    for _, part in ipairs(field.parts or {}) do
      local is_here = (not part.only or part.only == kind) and part.except ~= kind
      if part.filter and is_here then item:add(fields[part.filter], range) end
    end
    offset = offset + field.width
  end
  return items
end

local function show_sum(frame, item)
  if frame.computed == nil or not item then return end
  item:append_text(frame.is_intact and " [correct]" or
    string.format(" [incorrect, should be 0x%08x]", frame.computed))
  item:add(fields.sum, frame.computed):set_generated()
  item:add(fields.status, frame.is_intact and 1 or 0):set_generated()
end

local function show_exchange(frame, record, tree)
  local exchange = record.exchange
  if not exchange then return end
  if frame.rule.kind == "cancel" or record.answers or record.carried then
    tree:add(fields.question, exchange.asked):set_generated()
  elseif exchange.answer then
    tree:add(fields.answer, exchange.answer):set_generated()
  end
  if exchange.cancelled and exchange.cancelled ~= record.number then
    tree:add(fields.cancelled, exchange.cancelled):set_generated()
  end
  if record.answers then
    local time = math.max(0, record.time - exchange.time)
    local seconds = math.floor(time)
    local rest = math.floor((time - seconds) * 1e9 + 0.5)
    tree:add(fields.time, NSTime.new(seconds, rest)):set_generated()
  end
end

-- The number of an item among those of its sender, and how many of each side were before a response.
local function show_items(record, tree)
  for _, name in ipairs({ "item", "items_up", "items_down" }) do
    if record[name] then tree:add(fields[name], record[name]):set_generated() end
  end
end

local function summary(frame, record)
  local rule = frame.rule
  if not rule then return "damaged" end
  local text = rule.kind
  if rule.shows_type and frame.type then text = text .. " type=" .. frame.type end
  if rule.kind == "response" then
    local name = protocol.codes[frame.code]
    if protocol.has_codes then
      text = text .. " code=" .. frame.code .. (name and " (" .. name .. ")" or "")
    end
    if frame.refused == 1 then text = text .. " refused" end
  end
  text = text .. " serial=" .. frame.serial
  if record.fragment then
    text = text .. " fragment=" .. record.fragment .. (record.has_more and " more" or " last")
  end
  if record.item then text = text .. " item=" .. record.item end
  if record.items_up then
    text = text .. " items=" .. record.items_up .. " up, " .. record.items_down .. " down"
  end
  if record.metadata then text = text .. " metadata=" .. record.metadata end
  local count = (frame.left_out or 0) + (record.payload or frame.contents and #frame.contents or 0)
  if count > 0 then text = text .. " body=" .. count end
  return text
end

local bodies = DissectorTable.new(
  filter .. "type", protocol.title .. " message type", ftypes.UINT32, base.DEC, proto)

local function show_body(frame, record, tvb, pinfo, tree, conversation, is_new)
  local rule = frame.rule
  local content
  if record.message then
    content = ByteArray.new(record.message, true):tvb("Reassembled message")
  elseif #frame.contents == 0 then
    return
  elseif protocol.delimiter and #frame.contents ~= frame.body[2] then
    content = ByteArray.new(frame.contents, true):tvb("Unescaped body")
  end
  -- The last fragment of a message may be empty.
  local place = frame.body[2] > 0 and tvb(frame.body[1], frame.body[2])
  local item = place and tree:add(fields.body, place) or tree
  if not rule or frame.is_broken then return end
  if record.fragment then
    item:append_text(" [fragment " .. record.fragment .. "]")
    if not record.message then return end
  end
  content = content or tvb(frame.body[1], frame.body[2]):tvb()
  local description = protocol.messages[rule.kind]
  if description then
    local message = show_message(content, description, item)
    if not message then return add_note(item, "malformedControl") end
    if is_new then agree(frame, record, conversation, message) end
    return
  end
  local has_metadata = record.message and record.has_metadata or not record.message
    and (frame.flags or 0) >= 2
  if has_metadata then
    local size = content:len() >= 2 and content(0, 2):uint() or 65536
    if size + 2 > content:len() then return add_note(item, "metadataTooLong") end
    if size > 0 then
      local part = content(2, size)
      local block = tree:add(fields.metadata_block, part)
      local metadata = show_message(part:tvb(), protocol.messages.metadata, block)
      if not metadata then return add_note(block, "malformedControl") end
      if is_new then judge_metadata(frame, record, conversation, metadata) end
    end
    if size + 2 == content:len() then return end
    content = content(size + 2):tvb()
  end
  local is_answer = rule.kind == "response"
    and (protocol.successes[frame.code] or not protocol.has_codes)
  local exchange = is_answer and record.exchange
  local type = exchange and exchange.type or rule.shows_type and frame.type
  local dissector = type and bodies:get_dissector(type)
  if dissector then dissector:call(content, pinfo, tree) end
end

local function show(frame, tvb, pinfo, tree, conversation, id)
  local record = conversation.records[id]
  local is_new = not record
  if is_new then
    record = { number = pinfo.number, time = pinfo.rel_ts, notes = {} }
    conversation.records[id] = record
    if frame.rule and not frame.is_broken then follow(frame, record, conversation) end
    -- A new connection has not negotiated anything; what an older one has is unknown.
    record.flags = conversation.flags or conversation.is_whole and 0
    local lacks_all = conversation.has_streams == nil and conversation.is_whole
    record.lacks_streams = conversation.has_streams == false or lacks_all
    record.lacks_renewal = conversation.has_renewal == false or lacks_all
  end
  local kind = frame.rule and frame.rule.kind
  local text = summary(frame, record)
  pinfo.cols.info:append((conversation.is_first and "" or ", ") .. text)
  conversation.is_first = false
  local top = tree:add(proto, tvb(frame.offset, math.max(1, frame.total)))
  top:append_text(", " .. text)
  top:add(fields.kind, kind or "damaged"):set_generated()
  local shape = protocol.shapes[frame.sender]
  local items = show_fields(tvb, top, shape.header, frame.offset, kind)
  show_exchange(frame, record, top)
  show_items(record, top)
  if frame.trailer then
    if protocol.delimiter then
      local width = #protocol.delimiter.bytes
      top:add(fields.delimiter, tvb(frame.offset + shape.length, width))
      top:add(fields.delimiter, tvb(frame.trailer, width))
    end
    (conversation.show_body or show_body)(frame, record, tvb, pinfo, top, conversation, is_new)
    local trailing = show_fields(tvb, top, shape.trailer, frame.trailer, kind)
    show_sum(frame, items.checksum or trailing.checksum)
    items.checksum = items.checksum or trailing.checksum
  end
  for _, entry in ipairs(frame.notes) do
    local item = entry[1] == "checksumMismatch" and items.checksum or top
    add_note(item, entry[1], entry[2])
  end
  for _, entry in ipairs(record.notes) do add_note(top, entry[1], entry[2]) end
  if not frame.is_broken and frame.rule.kind == "response" and protocol.has_codes
    and not protocol.successes[frame.code]
  then
    add_note(items.code or top, "failed", protocol.codes[frame.code] or tostring(frame.code))
  end
  if not frame.is_broken and record.flags and frame.flags and frame.flags > 0
    and (frame.flags >= 2 and record.flags % 2 == 0 or frame.flags % 2 == 1 and record.flags < 2)
  then
    add_note(top, "flagNotAllowed")
  end
  if not frame.is_broken
    and (record.lacks_streams and (kind == "item" or kind == "end" or kind == "credit")
      or record.lacks_renewal and (kind == "renewal" or kind == "renewed"))
  then
    add_note(top, "kindNotAgreed")
  end
end

-- The dissector ----------------------------------------------------------------------------------

local stream_number = Field.new("tcp.stream")
local tcp_fin, tcp_reset = Field.new("tcp.flags.fin"), Field.new("tcp.flags.reset")
local tcp_syn = Field.new("tcp.flags.syn")

local function sender_of(pinfo)
  if pinfo.dst_port == proto.prefs.port then return "client" end
  if pinfo.src_port == proto.prefs.port then return "server" end
  return pinfo.dst_port < pinfo.src_port and "client" or "server"
end

local function conversation_of(number)
  local conversation = conversations[number]
  if not conversation then
    conversation = new_conversation()
    conversations[number] = conversation
  end
  return conversation
end

function proto.dissector(tvb, pinfo, tree)
  local number = stream_number()
  if not number or tvb:len() == 0 then return 0 end
  local conversation = conversation_of(number.value)
  local sender = sender_of(pinfo)
  -- A packet may end one reassembled range and contain another, perhaps of the same length.
  local id = pinfo.number .. "/" .. tvb:offset() .. "/" .. tvb:len()
  if conversation.states[id] == nil then
    conversation.states[id] = conversation.is_lost[sender]
  end
  local stream = {
    sender = sender, conversation = conversation, is_lost = conversation.states[id],
    skip = function(offset, count)
      local item = tree:add(fields.skipped, tvb(offset, count))
      add_note(item, "skipped")
    end,
  }
  pinfo.cols.protocol = protocol.title
  if conversation.packet ~= pinfo.number then
    conversation.packet, conversation.is_first = pinfo.number, true
    pinfo.cols.info:clear()
  end
  local step = protocol.delimiter and delimited or counted
  local offset, wanted = step(tvb, stream, function(frame)
    show(frame, tvb, pinfo, tree, conversation, id .. "/" .. frame.offset)
  end)
  if not pinfo.visited then
    conversation.is_lost[sender] = stream.is_lost
    conversation.open[sender] = offset ~= nil and not stream.is_lost
  end
  if offset then
    if pinfo.can_desegment == 0 then
      add_note(tree:add(fields.skipped, tvb(offset)), "notReassembled")
    else
      pinfo.desegment_offset, pinfo.desegment_len = offset, wanted
    end
  end
  return tvb:len()
end

-- The dissector above is not called for packets without payload. This one looks at those that begin
-- a stream, and at those that end one, perhaps within a frame.
local tail = Proto(protocol.name .. "_end", protocol.title .. ", the end of a stream")

function tail.dissector(_, pinfo, tree)
  local number = stream_number()
  if not number then return end
  local conversation = conversation_of(number.value)
  if not pinfo.visited then
    if tcp_syn().value then conversation.is_whole = true end
    local fin, reset = tcp_fin(), tcp_reset()
    local is_end = fin and fin.value or reset and reset.value
    local sender = sender_of(pinfo)
    if is_end and conversation.open[sender] then
      conversation.ends[pinfo.number] = true
      conversation.open[sender] = false
    end
  end
  if conversation.ends[pinfo.number] then
    add_note(tree:add(tail), "truncatedFrame")
  end
end

register_postdissector(tail)

local ports = DissectorTable.get("tcp.port")
local current = proto.prefs.port
ports:add(current, proto)
ports:add_for_decode_as(proto)

function proto.prefs_changed()
  ports:remove(current, proto)
  current = proto.prefs.port
  ports:add(current, proto)
end
