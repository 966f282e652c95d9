import asyncio

from bench.agent import resting


def test_the_control_of_the_agents_cost_says_what_rest_makes_of_the_same_work() -> None:
    async def said() -> str:
        async with resting(1) as control:
            return (await control.communicate())[0].decode()

    assert "at once (" in asyncio.run(said())
