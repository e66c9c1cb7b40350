"""A transaction that Postgres asks to run again (40001) is run again by the clients that get the work as a function."""

from collections.abc import Callable

import pytest

from tests.conformance.conftest import Theatre
from tests.conformance.languages import Language, chosen

AGAIN = {"c", "go", "java", "javascript", "perl", "php", "ruby"}
CHOSEN = [language for language in chosen() if language.key in AGAIN]
REQUEST = {"scope": "s", "key_header": "k", "method": "POST", "path": "/", "body": None, "content_type": None}
ANSWER = {"status": 201, "headers": None, "body": None}


@pytest.mark.parametrize("language", CHOSEN, ids=[language.key for language in CHOSEN])
def test_an_atomic_transaction_is_begun_again_at_most_five_times(
    language: Language, prepared: Callable[[Language], Language], theatre: Theatre
) -> None:
    prepared(language)
    theatre.admin.execute("""
        create sequence tries;
        grant usage, update on sequence tries to public;
        create function fails_until(try bigint) returns void language plpgsql as $$
        begin
            insert into effects values ('again');
            if nextval('tries') < try then  -- a sequence does not roll back
                raise exception 'once more' using errcode = '40001';
            end if;
        end
        $$
    """)
    with theatre.start(language) as player:
        player.do(do="open", session="a", user=theatre.users["client"])

        def attempt(key: str, *, works_at: int) -> dict[str, object]:
            theatre.admin.execute("select setval('tries', 1, false)")
            work = {**ANSWER, "sql": f"select fails_until({works_at})"}
            return player.ask(do="atomic", session="a", request={**REQUEST, "key_header": key}, work=work)

        assert attempt("fifth", works_at=5) == ANSWER
        assert attempt("never", works_at=6) == {"error": {"sqlstate": "40001", "code": None, "kind": None}}
        assert attempt("never", works_at=1) == ANSWER, "the key is free, and the session can be used"

    (effects,) = theatre.admin.execute("select count(*) from effects").fetchone() or (None,)
    assert effects == 2
