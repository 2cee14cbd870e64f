"""The local page and the HTTP interface: ``prevalens serve``.

The server process only moves bytes: it checks, stores and forwards. Files are read, models are
trained and asked in worker processes, which can be stopped at any time. It needs the extra
``serve``: ``pip install "prevalens[serve]"``.
"""
