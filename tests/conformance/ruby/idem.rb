# frozen_string_literal: true

require "json"
require "pg"
require "securerandom"

# Idempotency keys decided in Postgres, for ruby-pg. Copy this file into your project.
#
#   answer = Idem.atomic(connection, request) { |connection| Idem::Answer.new(status: 201, body: "{}") }
module Idem
  # One attempt: key_header, body, content_type and policy may be nil.
  Request = Struct.new(:scope, :key_header, :method, :path, :body, :content_type, :policy, keyword_init: true)

  # What every attempt is sent; headers is a list of pairs. Headers and body may be nil.
  Answer = Struct.new(:status, :headers, :body, keyword_init: true)

  # What a program got wrong, by SQLSTATE. Other errors stay those of the driver.
  class Error < StandardError
    attr_reader :sqlstate, :code, :hint

    def initialize(cause)
      field = ->(name) { cause.result.error_field(name) }
      @sqlstate = field[PG::PG_DIAG_SQLSTATE]
      @code = JSON.parse(field[PG::PG_DIAG_MESSAGE_DETAIL] || "{}")["code"]
      @hint = field[PG::PG_DIAG_MESSAGE_HINT]
      super(field[PG::PG_DIAG_MESSAGE_PRIMARY])
    end
  end

  class KeyInvalid < Error; end
  class LostReservation < Error; end
  class NoSuchReservation < Error; end
  class WrongMode < Error; end
  class NotCompleted < Error; end
  class NoSuchPolicy < Error; end
  class LimitExceeded < Error; end

  KINDS = {
    "IK001" => KeyInvalid, "IK002" => LostReservation, "IK003" => NoSuchReservation, "IK004" => WrongMode,
    "IK005" => NotCompleted, "IK006" => NoSuchPolicy, "IK007" => LimitExceeded
  }.freeze

  BYTES = %i[fingerprint body].freeze
  DECODERS = PG::TypeMapByOid.new.tap do |map|
    map.add_coder(PG::TextDecoder::Boolean.new(oid: 16))
    map.add_coder(PG::TextDecoder::Bytea.new(oid: 17))
    [20, 23].each { |oid| map.add_coder(PG::TextDecoder::Integer.new(oid: oid)) }
    map.add_coder(PG::TextDecoder::Array.new(oid: 1009))
    map.add_coder(PG::TextDecoder::JSON.new(oid: 3802))
  end
  TRIES = 5

  class << self
    # Makes reservation, the block and its answer one transaction, and begins it again where Postgres asks (40001).
    def atomic(connection, request, &work)
      tried ||= 0
      query(connection, "begin")
      attempt(connection, request, &work)
    rescue PG::TRSerializationFailure
      raise if (tried += 1) == TRIES

      roll_back(connection)
      retry
    ensure
      roll_back(connection)
    end

    # A random UUID by which one attempt is known.
    def new_token = SecureRandom.uuid

    # Calls a function of schema idem: call(connection, :lookup, scope: "shop", key: "k"). Returns rows as hashes.
    def call(connection, function, **arguments)
      named = arguments.keys.each.with_index(1).map { |name, place| "#{name} => $#{place}" }
      values = arguments.map { |name, value| encode(name, value) }
      query(connection, "select * from idem.#{function}(#{named.join(', ')})", values).map_types!(DECODERS).to_a
    end

    # Runs a statement; errors of pyidem are raised as Idem::Error, others as the driver has them.
    def query(connection, sql, values = [])
      connection.exec_params(sql, values)
    rescue PG::Error => e
      kind = KINDS[e.result&.error_field(PG::PG_DIAG_SQLSTATE)]
      raise kind ? kind.new(e) : e
    end

    private

    def attempt(connection, request)
      row, = call(connection, :http_reserve, token: new_token, **request.to_h)
      row = row.transform_keys(&:to_sym)
      return Answer.new(**row.slice(:status, :headers, :body)) if row[:status]

      answer = yield connection
      owned = { scope: request.scope, **row.slice(:key, :token) }
      ending, = call(connection, :http_complete, **owned, **answer.to_h)
      query(connection, "commit") unless %w[rollback repeated].include?(ending["http_complete"])
      answer
    end

    def roll_back(connection)
      connection.exec("rollback") unless connection.transaction_status == PG::PQTRANS_IDLE
    rescue PG::Error
      # without a connection the server does it
    end

    def encode(name, value)
      return { value: value, type: 17, format: 1 } if value && BYTES.include?(name)
      return PG::TextEncoder::Array.new.encode(value) if value.is_a?(Array) && name != :headers

      value.is_a?(Array) || value.is_a?(Hash) ? JSON.generate(value) : value
    end
  end
end
