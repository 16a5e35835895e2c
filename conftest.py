"""Tests run side by side: the longest start first, so that none of them is left alone at the end

`@pytest.mark.halved` on a test with a table of cases leaves half of them to `make test-slow`."""
from collections import Counter
import pytest

longest = ('test_example', 'test_killed_and_resumed', 'howto', 'agents.dqn', 'first_agent', 'test_processes_end', 'sac', 'test_two_machines', 'plain_pytorch', 'test_two_drivers',
    'test_cli', 'larger_than_ram', 'episodes_workers', 'test_parallel', 'recurrent_tmaze', 'test_page', 'test_bench', 'many_workers', '12_parallel', 'test_episodes', 'tutorials')

def rank(item): return next((i for i,o in enumerate(longest) if o in item.nodeid), len(longest))

@pytest.hookimpl(tryfirst=True) # before pytest leaves out what is slow
def pytest_collection_modifyitems(items):
    seen = Counter()
    for o in items:
        if not o.get_closest_marker('halved') or any(map(o.get_closest_marker, ('slow','long'))): continue
        name = o.parent.nodeid,o.originalname
        if f'{seen[name]:b}'.count('1')%2: o.add_marker('slow') # not every second one, which could be all cases of one setting
        seen[name] += 1
    items.sort(key=rank)
