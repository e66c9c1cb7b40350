# frozen_string_literal: true

require_relative "idem"

module Idem
  class << self
    # For an effect outside this database: it happens under a key of its own, between the commit of the reservation and
    # the transaction that the block and its answer share. What is raised once it may have happened leaves the outcome
    # unknown, which the policy of the key decides.
    #
    #   Idem.leased(connection, request, ->(key) { provider.refund(key:) }) { |connection, made| ... }
    def leased(connection, request, effect)
      row, = call(connection, :http_reserve, mode: "leased", token: new_token, **request.to_h)
      row = row.transform_keys(&:to_sym)
      return Answer.new(**row.slice(:status, :headers, :body)) if row[:status]

      owned = { scope: request.scope, **row.slice(:key, :token) }
      begin
        made = effect.call(row[:downstream_key])
        query(connection, "begin isolation level read committed")
        answer = yield connection, made
        ending, = call(connection, :http_complete, **owned, **answer.to_h)
        query(connection, ending["http_complete"] == "repeated" ? "rollback" : "commit")
      rescue StandardError
        give_up(connection, owned)
        raise
      end
      answer
    end

    private

    def give_up(connection, owned)
      roll_back(connection)
      call(connection, :defer, **owned) if owned[:key]
    rescue Error, PG::Error
      # the lease ends by itself
    end
  end
end
