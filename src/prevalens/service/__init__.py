"""The local page and the HTTP interface: ``prevalens serve``.

The server process checks requests, stores files and forwards tasks. Worker processes, which can be
killed at any time, read the files, train models and estimate. The room needs the extra ``serve``:
``pip install "prevalens[serve]"``; nothing else in the package imports it.
"""
