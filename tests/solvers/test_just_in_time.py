from __future__ import annotations

from prevalens.solvers.columns import just_in_time


def double(x):
    return 2 * x


def test_without_a_compiler_the_function_stays_as_it_is():
    assert just_in_time(None, double) is double


def test_where_no_cache_can_be_written_it_is_compiled_without_one():
    asked = []

    class Compiler:
        @staticmethod
        def njit(**flags):
            asked.append(flags.pop("cache", False))
            assert flags["nogil"]

            def compile_(function):
                if asked[-1]:
                    raise RuntimeError("cannot cache function: no locator available")
                return lambda x: function(x)

            return compile_

    assert just_in_time(Compiler, double)(3) == 6
    assert asked == [True, False]
