select outcome, retry_after from idem.reserve('client', 'busy', sha256('request'));
