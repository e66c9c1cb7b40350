# frozen_string_literal: true

# Speaks the line protocol of the conformance suite: see ../README.md.

require_relative "idem"
require_relative "leased"
require_relative "refund"

WorkFailed = Class.new(StandardError)
SESSIONS = {}

def perform(asked)
  name, session = asked["session"], SESSIONS[asked["session"]]
  case asked["do"]
  when "open" then SESSIONS[name] = PG.connect(user: asked["user"])
  when "close" then SESSIONS.delete(name).close
  when "token" then return { token: Idem.new_token }
  when "begin" then Idem.query(session, ["begin", *asked["isolation"]].join(" isolation level "))
  when "commit", "rollback" then Idem.query(session, asked["do"])
  when "execute" then Idem.query(session, asked["sql"])
  when "call" then return { rows: Idem.call(session, asked["function"], **symbols(asked["arguments"])) }
  when "atomic" then return atomic(session, asked["request"], asked["work"])
  when "leased" then return leased(session, asked)
  when "refund" then return answered(refund(session, *asked.values_at("scope", "key_header", "body")))
  else raise ArgumentError, asked["do"]
  end
  {}
end

def atomic(session, request, work)
  answer = Idem.atomic(session, Idem::Request.new(**symbols(request))) { |connection| perform_work(connection, work) }
  answered(answer)
rescue WorkFailed
  { failed: true }
end

def leased(session, asked)
  request, effect, work = asked.values_at("request", "effect", "work")
  outside = lambda do |key|
    session.exec(effect["sql"].gsub("{key}", key))
    raise WorkFailed if effect["fail"]
  end
  answer = Idem.leased(session, Idem::Request.new(**symbols(request)), outside) do |connection|
    perform_work(connection, work)
  end
  answered(answer)
rescue WorkFailed
  { failed: true }
end

def perform_work(connection, work)
  connection.exec(work["sql"])
  raise WorkFailed if work["fail"]

  Idem::Answer.new(**symbols(work).slice(:status, :headers, :body))
end

def answered(answer) = { **answer.to_h, body: answer.body&.b }

def symbols(hash) = hash.transform_keys(&:to_sym)

def decode(value)
  return value unless value.is_a?(Hash)

  value.keys == ["bytes"] ? [value["bytes"]].pack("H*") : value.transform_values { |inner| decode(inner) }
end

def encode(value)
  case value
  when Hash then value.transform_values { |inner| encode(inner) }
  when Array then value.map { |inner| encode(inner) }
  when String then value.encoding == Encoding::BINARY ? { bytes: value.unpack1("H*") } : value
  else value
  end
end

def described(error)
  if error.is_a?(PG::Error)
    state = error.result&.error_field(PG::PG_DIAG_SQLSTATE) || "08006" # a lost connection has no result
    return { sqlstate: state, code: nil, kind: nil }
  end
  kind = error.class.name.split("::").last.gsub(/(?<!^)[A-Z]/) { |letter| "_#{letter}" }.downcase
  { sqlstate: error.sqlstate, code: error.code, kind: }
end

$stdout.sync = true
$stdin.set_encoding(Encoding::UTF_8)
$stdin.each_line do |line|
  answer = perform(decode(JSON.parse(line)))
  puts JSON.generate(encode(answer))
rescue Idem::Error, PG::Error => e
  puts JSON.generate({ error: described(e) })
end
