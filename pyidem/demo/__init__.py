"""The demonstration: a refunds API on a hostile network, and the proof that no refund was paid twice.

    pyidem demo --operations 1000 --seed 7

`service.py` is the part to copy. Around it, `worker.py` serves it in processes that `processes.py` starts again when
they are killed, `provider.py` is the payment provider that it calls, `proxy.py` loses, cuts, delays and repeats what
`clients.py` sends, `stage.py` puts all this up, and `verdict.py` asks the databases what came of it. `unknown.py` is
the second part: what becomes of work whose worker has died half-way.
"""
