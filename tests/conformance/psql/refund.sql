-- A refund, however often it is asked for:
--
--     select * from answer_once('client:42', :'key_header', 'POST', '/refunds', :'body', 'application/json', 'refund');

create or replace function refund(body bytea) returns idem.response language plpgsql as $$
-- ten lines:
declare
    asked jsonb := convert_from(body, 'UTF8');
    made bigint;
begin
    if (asked -> 'amount')::int <= 0 then return row(422, null, '{"error": "amount"}')::idem.response; end if;
    insert into refunds ("order", amount) values (asked ->> 'order', (asked -> 'amount')::int) returning id into made;
    return idem.json_response(201, (asked || jsonb_build_object('id', made))::json,
        jsonb_build_array(array['Location', '/refunds/' || made], array['Content-Type', 'application/json']));
end
-- end of ten lines
$$;
