"Velora's suite, with its agents on our `ReplayBuffer`"
url = 'https://github.com/Achronus/velora'
commit = '88b8103'
needs = [] # pip requirements, complete: nothing else is installed
tests = ['tests']
differs = {} # test: why

def prepare(src):
    "Change the import in the copy `src`"
