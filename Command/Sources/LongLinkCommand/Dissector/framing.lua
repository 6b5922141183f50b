-- SPDX-License-Identifier: Apache-2.0

-- Reading ----------------------------------------------------------------------------------------

local function within(value, ranges)
  if not ranges then return true end
  for _, range in ipairs(ranges) do
    if value >= range[1] and value <= range[2] then return true end
  end
  return false
end

-- The number in a field, exact up to 2^53; no rule has larger numbers.
local function number(range, field)
  if field.width == 8 then
    local wide = field.little and range:le_uint64() or range:uint64()
    return wide:tonumber()
  end
  return field.little and range:le_uint() or range:uint()
end

local function rule_of(frame)
  for _, rule in ipairs(protocol.rules[frame.sender]) do
    if
      (not rule.types or frame.type) and within(frame.kind, rule.kinds)
      and within(frame.type, rule.types) and within(frame.serial, rule.serials)
    then
      return rule
    end
  end
end

local function note(frame, name, detail)
  frame.notes[#frame.notes + 1] = { name, detail }
end

local function break_rule(frame, name, detail)
  frame.is_broken = true
  note(frame, name, detail)
end

local function read_parts(frame, field, value)
  for _, part in ipairs(field.parts or {}) do
    frame[part.role] = math.floor(value / part.unit) % part.count
  end
end

-- Checks the fields with fixed values: constants, versions and the repeated type.
local function check_fixed(frame, tvb, fields_, offset)
  for _, field in ipairs(fields_) do
    local range = tvb(offset, field.width)
    if field.literal and tostring(range:bytes()):upper() ~= field.literal then
      break_rule(frame, "fieldMismatch", field.title)
    elseif field.means == "repeatedType" and number(range, field) ~= frame.type then
      break_rule(frame, "fieldMismatch", field.title)
    end
    offset = offset + field.width
  end
end

-- Checks that the size of the body fits the flags.
local function check_fragment(frame)
  if frame.flags % 2 == 1 and not within(frame.length, { { 1, protocol.fragment_limit } }) then
    break_rule(frame, "sizeNotAllowed", frame.length)
  elseif frame.flags >= 2 and frame.length < 2 then
    break_rule(frame, "metadataTooLong")
  end
end

-- Reads the header at `offset`, which must be complete.
local function read_header(tvb, offset, sender, conversation)
  local shape = protocol.shapes[sender]
  local frame = { offset = offset, sender = sender, notes = {}, code = 0 }
  local place = offset
  for _, field in ipairs(shape.header) do
    if not field.bytes then
      local value = number(tvb(place, field.width), field)
      if field.means == "length" then
        frame.stated = value
        frame.bias = field.bias
      else
        frame[field.means] = value
      end
      read_parts(frame, field, value)
    end
    place = place + field.width
  end
  check_fixed(frame, tvb, shape.header, offset)
  frame.rule = rule_of(frame)
  local rule = frame.rule
  if not rule then
    break_rule(frame, protocol.unknown)
  else
    if rule.breaks then break_rule(frame, rule.breaks) end
    if rule.must then
      if not within(frame.type, rule.must.types) then break_rule(frame, protocol.wrong_type) end
      if not within(frame.serial, rule.must.serials) then break_rule(frame, "serialOutOfRange") end
      if not within(frame.flags, rule.must.flags) then break_rule(frame, "flagNotAllowed") end
    end
  end
  if frame.stated then
    frame.length = frame.stated - frame.bias
    local limit = rule and rule.limit or conversation.limits[sender]
    if frame.length < 0 then
      break_rule(frame, "sizeNotAllowed", frame.stated)
      frame.length = 0
      frame.is_endless = true
    elseif frame.length > limit then
      break_rule(frame, "lengthOverLimit", frame.length)
      frame.is_endless = true
    elseif rule and rule.must and not within(frame.length, rule.must.sizes) then
      break_rule(frame, "sizeNotAllowed", frame.length)
    elseif rule and rule.fragments then
      check_fragment(frame)
    end
  end
  return frame
end

-- The body as a number, in the byte order of the serial field.
local function body_number(frame)
  local value = 0
  for index = 1, #frame.contents do
    local place = frame.rule.little and #frame.contents + 1 - index or index
    value = value * 256 + frame.contents:byte(place)
  end
  return value
end

-- Sets the values that need the whole frame.
local function complete(frame, tvb, body, total, contents)
  local shape = protocol.shapes[frame.sender]
  frame.body, frame.total = body, total
  frame.contents = contents or (body[2] > 0 and tvb:raw(body[1], body[2]) or "")
  frame.trailer = body[1] + body[2]
  check_fixed(frame, tvb, shape.trailer, frame.trailer)
  local sum = shape.sum
  if sum then
    local compute, value = sums[sum.algorithm][1], sums[sum.algorithm][2]
    for _, part in ipairs(sum.over) do
      if part[1] == "body" then
        value = compute(frame.contents, value)
      else
        local start = part[1] == "header" and frame.offset or frame.trailer
        value = compute(tvb:raw(start + part[2], part[3]), value)
      end
    end
    local place = sum.is_trailer and frame.trailer or frame.offset
    frame.computed = value
    local stated = number(tvb(place + sum.offset, sum.width), sum)
    frame.is_intact = stated == value
    if not frame.is_intact then
      break_rule(frame, "checksumMismatch", string.format("0x%08x is right", value))
    end
  end
  if not frame.is_broken and frame.rule.target == "body" then
    frame.named = body_number(frame)
    if not within(frame.named, frame.rule.must.body) then
      break_rule(frame, "serialOutOfRange", frame.named)
    end
  end
end

-- Framing by length ------------------------------------------------------------------------------

-- Steps through the available bytes and calls `show` for each frame. If the last frame is not
-- complete, returns its offset and the number of bytes that it still needs.
local function counted(tvb, stream, show)
  local shape = protocol.shapes[stream.sender]
  local offset, count = 0, tvb:len()
  while offset < count do
    local left = count - offset
    if left < shape.length then
      if stream.is_lost then break end
      return offset, shape.length - left
    end
    local frame = read_header(tvb, offset, stream.sender, stream.conversation)
    local total = shape.length + (frame.is_endless and 0 or frame.length) + shape.tail
    local is_whole = not frame.is_endless and total <= left
    if is_whole then
      complete(frame, tvb, { offset + shape.length, frame.length }, total)
    end
    if stream.is_lost then
      -- Resume only at an unambiguous frame.
      local is_sure = is_whole and not frame.is_broken and (shape.sum or total == left)
      if not is_sure then break end
      stream.is_lost = false
    end
    if frame.is_broken and not is_whole then
      -- The length in a broken header may be wrong too: nothing after it can be trusted.
      stream.is_lost = true
      frame.total, frame.body, frame.contents = shape.length, { offset + shape.length, 0 }, ""
      show(frame)
      offset = offset + shape.length
      break
    elseif not is_whole then
      return offset, total - left
    end
    show(frame)
    offset = offset + total
  end
  if offset < count then stream.skip(offset, count - offset) end
end

-- Framing by delimiter ---------------------------------------------------------------------------

-- Returns the end of the body that begins at `start`; else nil and the number of missing bytes, or
-- nil, nil and the broken rule.
local function body_end(data, start, frame, limit)
  local marks = protocol.delimiter
  local mark, inside = marks.bytes, marks.inside
  if inside == "lengthChecked" then
    local stop = start + frame.length
    if #data < stop + #mark then return nil, stop + #mark - #data end
    if data:sub(stop + 1, stop + #mark) == mark then return stop end
    return nil, nil, "delimiterMissing"
  elseif inside == "refused" then
    local found = data:find(mark, start + 1, true)
    if found then return found - 1 end
    if #data - start - #mark + 1 > limit then return nil, nil, "lengthOverLimit" end
    return nil, DESEGMENT_ONE_MORE_SEGMENT
  end
  local place, first = start, mark:byte(1)
  while place < #data do
    local byte = data:byte(place + 1)
    if byte == marks.escape then
      if place + 1 >= #data then break end
      place = place + 2
    elseif byte == first then
      if place + #mark > #data then break end
      if data:sub(place + 1, place + #mark) == mark then return place end
      return nil, nil, "delimiterMissing"
    else
      place = place + 1
    end
  end
  if place - start > 2 * limit then return nil, nil, "lengthOverLimit" end
  return nil, DESEGMENT_ONE_MORE_SEGMENT
end

local function unescape(data)
  local marks = protocol.delimiter
  if marks.inside ~= "escaped" then return data end
  local pieces, place = {}, 1
  while place <= #data do
    if data:byte(place) == marks.escape then place = place + 1 end
    pieces[#pieces + 1] = data:sub(place, place)
    place = place + 1
  end
  return table.concat(pieces)
end

-- Searches for a delimiter that a credible frame follows. Returns that frame's offset; else nil, the
-- offset at which to search again, and the number of bytes that the search still needs.
local function search(tvb, data, offset, stream)
  local shape, mark = protocol.shapes[stream.sender], protocol.delimiter.bytes
  local lead = shape.length + #mark
  local from = offset
  while true do
    local found = data:find(mark, from + 1, true)
    if not found then
      return nil, math.max(offset, #data - #mark + 1), DESEGMENT_ONE_MORE_SEGMENT
    end
    local start = found - 1 + #mark
    if #data < start + lead then return nil, found - 1, start + lead - #data end
    if data:sub(start + shape.length + 1, start + lead) == mark then
      local frame = read_header(tvb, start, stream.sender, stream.conversation)
      if not frame.is_broken then return start end
    end
    from = found
  end
end

local function delimited(tvb, stream, show)
  local shape, mark = protocol.shapes[stream.sender], protocol.delimiter.bytes
  local lead = shape.length + #mark
  local data = tvb:raw()
  local offset = 0
  local function lose(frame, name, length)
    if name then break_rule(frame, name) end
    stream.is_lost = true
    frame.body, frame.contents, frame.total = { offset + length, 0 }, "", length
    show(frame)
  end
  while offset < #data do
    if stream.is_lost then
      local start, from, wanted = search(tvb, data, offset, stream)
      if (start or from) > offset then stream.skip(offset, (start or from) - offset) end
      if not start then
        if from < #data then return from, wanted end
        return
      end
      stream.is_lost = false
      offset = start
    end
    if #data - offset < lead then
      if offset < #data then return offset, lead - (#data - offset) end
      return
    end
    local frame = read_header(tvb, offset, stream.sender, stream.conversation)
    local start = offset + lead
    if data:sub(offset + shape.length + 1, start) ~= mark then
      frame.notes, frame.rule, frame.length = {}, nil, nil
      lose(frame, "delimiterMissing", shape.length)
      offset = offset + 1
    elseif frame.is_broken then
      lose(frame, nil, shape.length)
      offset = start
    else
      local limit = stream.conversation.limits[stream.sender]
      local stop, wanted, fault = body_end(data, start, frame, limit)
      if fault then
        lose(frame, fault, shape.length)
        offset = start
      elseif not stop then
        return offset, wanted
      else
        local contents = unescape(data:sub(start + 1, stop))
        if frame.length and frame.length ~= #contents then
          break_rule(frame, "sizeNotAllowed", frame.length)
        elseif #contents > limit then
          break_rule(frame, "lengthOverLimit", #contents)
        elseif frame.rule.must and not within(#contents, frame.rule.must.sizes) then
          break_rule(frame, "sizeNotAllowed", #contents)
        end
        complete(frame, tvb, { start, stop - start }, stop + #mark - offset, contents)
        show(frame)
        offset = stop + #mark
      end
    end
  end
end
