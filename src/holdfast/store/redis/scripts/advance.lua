-- Moves the cursor on, if it stands where the writer left it and the lease is theirs.
-- KEYS: the writer, the cursor. ARGV: who asks, 1 if a cursor is expected, which, the new one.
local function text_of(key)
  local found = redis.pcall('GET', key)
  return type(found) == 'string' and found or nil
end

local expected = ARGV[2] == '1' and ARGV[3] or nil
if text_of(KEYS[1]) ~= ARGV[1] or text_of(KEYS[2]) ~= expected then
  return 0
end
redis.call('SET', KEYS[2], ARGV[4])
return 1
