"Tests run side by side: the longest start first, so that none of them is left alone at the end"
longest = ('test_example', 'test_killed_and_resumed', 'howto', 'agents.dqn', 'first_agent', 'test_processes_end', 'sac', 'test_two_machines', 'plain_pytorch', 'test_two_drivers',
    'test_cli', 'larger_than_ram', 'episodes_workers', 'test_parallel', 'recurrent_tmaze', 'test_page', 'test_bench', 'many_workers', '12_parallel', 'test_episodes', 'tutorials')

def rank(item): return next((i for i,o in enumerate(longest) if o in item.nodeid), len(longest))
def pytest_collection_modifyitems(items): items.sort(key=rank)
