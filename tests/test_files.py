"Files that lie about themselves are refused: none is run, and none takes more memory than it has bytes"
import json, os, random, signal, time
import pytest, torch
from fastrl.memory.episode_files import read_episode_file
from fastrl.memory.files import LoadError, read_meta, read_tensors, scan_tensors, write_tensors
from fastrl.run_state import read_policy, read_run

@pytest.fixture
def tried(tmp_path):
    "Is a file of these bytes refused? If not, its tensors are no larger than it is"
    def f(raw):
        path = tmp_path/'file'
        path.write_bytes(raw)
        try: res = read_tensors(path)
        except LoadError: return True
        assert sum(o.nbytes for o in res.values())<=len(raw)*max(1, len(res))
        return False
    return f

def test_random_bytes(tried, tmp_path):
    "Random bytes, random cuts, and flips in the header"
    write_tensors(tmp_path/'good', dict(obs=torch.arange(10.), n=torch.arange(10)))
    good,rng,refused = (tmp_path/'good').read_bytes(),random.Random(0),0
    for i in range(1500):
        raw = bytearray(good)
        if i%3==0: raw = bytearray(rng.randbytes(rng.randrange(200)))
        elif i%3==1: raw = raw[:rng.randrange(len(raw))]
        else:
            for _ in range(rng.randrange(1,4)): raw[rng.randrange(120)] = rng.randrange(256)
        refused += tried(raw)
    assert refused>900

def with_header(o):
    o = json.dumps(o).encode() if not isinstance(o, bytes) else o
    return len(o).to_bytes(8, 'little')+o

def column(**changes): return dict(a=dict(dtype='F32', shape=[1], data_offsets=[0,4])|changes)

@pytest.mark.parametrize('header', [
    column(shape=[2**62], data_offsets=[0,2**64]), column(shape=[-1], data_offsets=[0,-4]), column(data_offsets=[-4,0]),
    column(shape=['1']), column(dtype='X'), column(shape=[True]), dict(a=5), [1], b'['*10**6, b'"'],
    ids=lambda o: str(o)[:40])
def test_header(tried, header):
    "A header that promises bytes which are not there, or makes no sense"
    assert tried(with_header(header))

def test_endless_header(tried): assert tried((2**63).to_bytes(8, 'little'))

@pytest.mark.parametrize('meta', [5, 'a', [1], dict(a=1), dict(a=dict(b='c'))], ids=str)
def test_meta(tmp_path, meta):
    "Metadata are strings by name"
    (tmp_path/'file').write_bytes(with_header({'__metadata__':meta}))
    with pytest.raises(LoadError, match='strings by name'): read_meta(tmp_path/'file')

@pytest.mark.parametrize('raw', [b'', b'abc', (2**63).to_bytes(8, 'little'), with_header([1]), with_header(b'['*10**6)],
                         ids=['empty','short','endless','list','deep'])
def test_meta_of_anything(tmp_path, raw):
    (tmp_path/'file').write_bytes(raw)
    with pytest.raises(LoadError, match='damaged'): read_meta(tmp_path/'file')

def test_no_meta(tmp_path):
    write_tensors(tmp_path/'file', dict(a=torch.zeros(1)))
    assert read_meta(tmp_path/'file')=={}
    with pytest.raises(FileNotFoundError): read_meta(tmp_path/'none')

def read_episode(path): return read_episode_file(path, 50)['a',].sum()
def read_copy(path): return read_tensors(path, mapped=False)['a'].sum()
def scan(path): return scan_tensors(path, lambda *_: None)

@pytest.mark.skipif(not hasattr(os, 'fork'), reason='the reader is forked')
@pytest.mark.parametrize('read', [read_episode, read_copy, scan])
def test_cut_while_read(tmp_path, read):
    "A file that becomes shorter in the middle of a read costs an error, not the process"
    write_tensors(path := tmp_path/'a.safetensors', dict(a=torch.arange(20_000.).view(50,400)))
    whole,rng = path.read_bytes(),random.Random(0)
    if not (pid := os.fork()):
        status,n = 1,0
        try:
            while n<300:
                try: read(path)
                except LoadError: n += 1
            status = 0
        finally: os._exit(status)
    until = time.monotonic()+60
    while not (ended := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic()<until:
        with open(path, 'r+b') as f:
            f.truncate(rng.choice((0,120,5000,60_000)))
            f.write(whole)
    if not ended[0]:
        os.kill(pid, signal.SIGKILL)
        ended = os.waitpid(pid, 0)
    assert ended[1]==0

@pytest.mark.skipif(not hasattr(os, 'mkfifo'), reason='the system has no named pipes')
@pytest.mark.parametrize('read', [read_tensors, read_meta, scan, lambda path: read_run(path.parent),
                                  lambda path: read_policy(path.parent, dict(policy=path.name))])
def test_pipe(tmp_path, read):
    "A named pipe in the place of a file: an error, where a reader would wait for ever"
    os.mkfifo(path := tmp_path/'run.json')
    with pytest.raises(LoadError): read(path)

@pytest.mark.parametrize('name', ['../policy.pt', '/dev/null', 'a/../../policy.pt', '..'])
def test_policy_outside(tmp_path, name):
    "A run names no policy outside of its folder"
    torch.save(dict(w=torch.ones(1)), tmp_path/'policy.pt')
    (tmp_path/'run'/'a').mkdir(parents=True)
    with pytest.raises(LoadError, match='should be a file of the run'): read_policy(tmp_path/'run', dict(policy=name))

def test_metric_too_large(tmp_path):
    (tmp_path/'run.json').write_text('{"iterations":1, "metrics":{"0":1%s}}' % ('0'*400))
    with pytest.raises(LoadError, match='should say how many'): read_run(tmp_path)
