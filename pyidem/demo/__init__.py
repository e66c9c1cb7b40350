"""The demonstration: a refund service on a hostile network, and the proof that no refund was paid twice.

    python -m pyidem.demo --operations 1000 --seed 7

`service.py` is the part to copy. Around it, `worker.py` serves it in processes that `processes.py` starts again when
they are killed, `provider.py` is the payment provider that it calls, `network.py` loses, repeats and reverses what
`clients.py` sends, and `verdict.py` asks the databases what came of it.
"""
