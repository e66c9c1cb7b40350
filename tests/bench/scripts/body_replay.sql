select outcome, body from idem.reserve('client', 'body-' || :size, sha256('request'));
