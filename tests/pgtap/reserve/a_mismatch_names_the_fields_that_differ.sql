begin;
select plan(3);

select idem.reserve(
    'shop', 'k', '\x01',
    fields => '{"method": "h1", "/amount": "h2", "/items/0": "h3", "/note": "h4", "/Zip": null}'
);

select is(
    (idem.reserve(
        'shop', 'k', '\x02',
        fields => '{"method": "h1", "/amount": "h9", "/items/0": "h3", "/items/1": "h5", "/Zip": "h6"}'
    )).mismatched,
    array['/Zip', '/amount', '/items/1', '/note'],
    'changed, added and removed ones, in order'
);
select is(
    (idem.reserve(
        'shop', 'k', '\x02',
        fields => '{"method": "h1", "/amount": "h2", "/items/0": "h3", "/note": "h4", "/Zip": null}'
    )).mismatched,
    array[]::text[],
    'none, where only the fingerprint differs'
);
select is(
    (idem.reserve('shop', 'k', '\x02', fields => '{}')).mismatched,
    array['/Zip', '/amount', '/items/0', '/note', 'method'],
    'all, where none is given'
);

select * from finish();
rollback;
