# frozen_string_literal: true

require_relative "idem"

INSERT = 'insert into refunds ("order", amount) values ($1, $2) returning id'
JSON_TYPE = "application/json"

# Answers POST /refunds. The scope is the client that asks, as the server knows it.
# ten lines:
def refund(connection, scope, key_header, body)
  request = Idem::Request.new(scope:, key_header:, method: "POST", path: "/refunds", body:, content_type: JSON_TYPE)
  Idem.atomic(connection, request) do
    order, amount = JSON.parse(body).values_at("order", "amount")
    next Idem::Answer.new(status: 422, body: '{"error": "amount"}') unless amount.positive?
    id = connection.exec_params(INSERT, [order, amount.to_i]).getvalue(0, 0).to_i
    headers = [["Location", "/refunds/#{id}"], ["Content-Type", JSON_TYPE]]
    Idem::Answer.new(status: 201, headers:, body: JSON.generate({ id:, order:, amount: amount.to_i }))
  end
end
# end of ten lines
