from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from prevalens.errors import InputError
from prevalens.service.settings import Settings
from prevalens.service.state import ServerState


def test_nothing_is_left_when_a_model_is_missing(tmp_path: Path) -> None:
    async def run() -> None:
        state = ServerState(Settings(models=(tmp_path / "none.prevalens",)))
        with pytest.raises(InputError, match="no model file and no folder"):
            await state.start()
        assert not state.storage.root.exists()
        await state.close()

    asyncio.run(run())


def test_a_state_that_was_never_started_can_be_closed() -> None:
    asyncio.run(ServerState(Settings()).close())


def test_the_memory_of_the_server_is_told(server: Any) -> None:
    lines = server.state.metrics.text().splitlines()
    (line,) = [one for one in lines if one.startswith("process_resident_memory_bytes ")]
    assert float(line.split()[1]) > 10**7
