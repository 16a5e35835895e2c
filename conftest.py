"Tests run side by side: those that take longest start first, so that none of them is left alone at the end"
slowest = []

def rank(item): return next((i for i,o in enumerate(slowest) if o in item.nodeid), len(slowest))
def pytest_collection_modifyitems(items): items.sort(key=rank)
