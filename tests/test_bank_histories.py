"""Banks beside plain lists: random histories of many banks, their copies and files, and what merges them

A row has a number of its own, which its copies share. So the lists know what a merge has to bring: the rows that are not there yet."""
import copy, itertools, logging, os, pickle, random
from pathlib import Path
from types import SimpleNamespace
import numpy as np, pytest, torch
from fastrl.memory.bank import BankUnion, Experience, ExperienceBank, create_experience, merge_banks
from test_bank import names, rose

# %% Experiences of every kind
odd_floats = 0., -0., float('inf'), float('-inf'), float('nan'), 5e-324, .1, 1e300, 2.**53
easy = dict(float=lambda k, f: f, int=lambda k, f: k, bool=lambda k, f: k%2==0, f32=lambda k, f: np.full(2, f, np.float32), f64=lambda k, f: np.array([k,f]),
            u8=lambda k, f: np.full((2,2), k%256, np.uint8), n32=lambda k, f: np.float32(f), t=lambda k, f: torch.tensor([k/2,f]), list=lambda k, f: [k,k+1],
            f16=lambda k, f: np.full(3, f, np.float16), c64=lambda k, f: np.full(2, k+1j*f, np.complex64))
kinds = dict(**easy, c=lambda k, f: complex(k, f), n64=lambda k, f: np.float64(f), i8=lambda k, f: np.int8(k%100), i64=lambda k, f: np.int64(2**60+k), large=lambda k, f: 2**53+1+2*k,
             i64s=lambda k, f: np.array([2**60+k]), u64s=lambda k, f: np.array([2**63+k], np.uint64), lists=lambda k, f: [2**60+k], f64s=lambda k, f: np.array([f]), t64=lambda k, f: torch.tensor([2**60+k]),
             a0=lambda k, f: np.array(f), t0=lambda k, f: torch.tensor(k), bf=lambda k, f: torch.tensor([f], dtype=torch.bfloat16), tb=lambda k, f: torch.tensor([k%2==0]),
             mixed=lambda k, f: [k,.5,True], nested=lambda k, f: [[k,1],[2,3]], empty=lambda k, f: np.zeros((0,2)), none=lambda k, f: None, str=lambda k, f: f'é{k}',
             huge=lambda k, f: 2**70+k, shapes=lambda k, f: np.zeros(k%4), bytes=lambda k, f: bytes([k%256]))

def bits(o):
    "What tells two values apart: their types, shapes and bits; one NaN is like the other"
    if isinstance(o, Experience): return *(bits(getattr(o, k)) for k in names), bits(o.info)
    if isinstance(o, dict): return 'dict',*((k, bits(v)) for k,v in o.items())
    if isinstance(o, (tuple,list)): return type(o).__name__,*map(bits, o)
    if isinstance(o, torch.Tensor): return 'tensor',str(o.dtype),*bits((o.float() if o.dtype==torch.bfloat16 else o).numpy())
    if not isinstance(o, (np.ndarray,np.generic)): return type(o).__name__,repr(o)
    return type(o).__name__,str(o.dtype),o.shape,repr(o.tolist()) if o.dtype.kind in 'fc' and np.isnan(o).any() else o.tobytes()

class Kinds:
    "Experiences of a few kinds, each with a number"
    def __init__(self, rng):
        self.rng,self.count = rng,itertools.count(1)
        pool = [*(easy if rng.random()<.5 else kinds)]
        def kind(): return rng.choice((rng.choice(pool), rng.choice(pool), ('dict', *rng.choices(pool, k=2)), ('tuple', *rng.choices(pool, k=2))))
        self.of = [dict(state=(s := kind()), action=kind(), reward=rng.choice(('float','n32','n64','int','a0')), next_state=rng.choice((s, s, kind()))) for _ in range(rng.choice((1,1,2,4)))]
    def value(self, k, kind):
        if isinstance(kind, str):
            with np.errstate(over='ignore'): return kinds[kind](k, self.rng.choice((k/2, k/2, self.rng.choice(odd_floats))))
        vs = [self.value(k, o) for o in kind[1:]]
        return dict(zip('ab', vs)) if kind[0]=='dict' else tuple(vs)
    def new(self):
        k,over = next(self.count),self.rng.random()<.25
        done = self.rng.choice((over, int(over), np.bool_(over)))
        return Experience(**{f: self.value(k, o) for f,o in self.rng.choice(self.of).items()}, done=done, info=self.rng.choice((None, {}, {'k':k}, {'k':[k,None,float('nan')]})))

# %% What a bank should hold
class Rows:
    "What a bank should hold: rows with their number, `bits`, who collected them, and an object for each episode"
    numbers = itertools.count()
    def __init__(self, cap, session, rows=(), had=(), episode=None):
        self.cap,self.session,self.rows,self.had,self.episode = cap,session,[],set(had),episode or object()
        self.take(rows)
    def take(self, rows):
        self.had |= {o.number for o in rows}
        self.rows = [*self.rows, *rows][-self.cap if self.cap else None:]
    def own(self, es):
        for e in es:
            self.take([SimpleNamespace(number=next(self.numbers), e=bits(e), who=self.session, episode=self.episode)])
            if bool(e.done): self.episode = object()
    def copy(self, cap=None): return Rows(cap or self.cap, self.session, self.rows, self.had, self.episode)
    def unlike(self, others, seen=None):
        "Those of `others` that are not here yet, or were not seen"
        here = {o.number for o in self.rows} if seen is None else seen
        return [o for o in others if o.number not in here]

def check(bank, m, where):
    want,got = [o.e for o in m.rows],[bits(e) for e in bank]
    assert len(bank)==len(got)==len(want) and bank.max_size==m.cap, f'{where}: {len(got)} rows of {bank.max_size}, not {len(want)} of {m.cap}'
    wrong = [(i,a,b) for i,(a,b) in enumerate(zip(got, want)) if a!=b]
    assert not wrong, f'{where}: row {wrong[0][0]} is\n{wrong[0][1]}, not\n{wrong[0][2]}'
    if not want: return
    at = bank._rows.slots(np.arange(len(bank)))
    sources,episodes = (bank.ring[k].flatten()[at].tolist() for k in ('source','episode'))
    assert [bank.sources[i] for i in sources]==[o.who for o in m.rows], f'{where}: collected by {sources} of {bank.sources}'
    assert len(bank.sources)==len({*bank.sources}), f'{where}: a name is there twice, {bank.sources}'
    of = {}
    for k,o in zip(episodes, m.rows): assert of.setdefault(k, o.episode) is o.episode, f'{where}: two episodes are called {k}'
    assert {bits(e) for e in bank.sample(4)}<={*want}, where

# %% Everything that may happen to them
class History:
    def __init__(self, seed, folder):
        self.rng,self.folder,self.where = random.Random(seed),folder,f'seed {seed}'
        self.kinds,self.banks,self.files,self.unions = Kinds(self.rng),[],{},[]
        for _ in range(2): self.begin()

    def begin(self):
        cap,session = self.rng.choice((None,None,1,2,3,7,20)),self.rng.choice(('a','b','c/d'))
        self.keep(ExperienceBank(cap, session), Rows(cap, session))
    def keep(self, *pair):
        if len(self.banks)<6: self.banks.append(pair)
        else: self.banks[self.rng.randrange(6)] = pair
        self.touched.append(pair)
    def a_file(self): return self.rng.choice(sorted(self.files)) if self.files else None

    def add(self, bank, m):
        for _ in range(self.rng.randint(1, 4)): bank.add(e := self.kinds.new()); m.own([e])
    def add_batch(self, bank, m):
        bank.add_batch(es := [self.kinds.new() for _ in range(self.rng.choice((0,1,3,8,25)))])
        m.own(es)
    def merge_inplace(self, bank, m):
        other,theirs = self.rng.choice(self.banks)
        bank.merge_inplace(other)
        m.take(m.unlike(theirs.rows))
    def merge(self, bank, m):
        other,theirs = self.rng.choice(self.banks)
        new = bank.merge(other)
        res = Rows(None if None in (m.cap, theirs.cap) else m.cap+theirs.cap, new.session_id, m.rows)
        res.take(res.unlike(theirs.rows))
        self.keep(new, res)
    def clear(self, bank, m):
        if self.rng.random()<.3: bank.clear(); m.__init__(m.cap, m.session)
    def stamp(self, bank, m):
        if self.rng.random()<.3: return
        bank.stamp(f'stamp {next(Rows.numbers)}')
        m.rows = [SimpleNamespace(**{**vars(o), 'number':next(Rows.numbers)}) for o in m.rows]
        m.had = {o.number for o in m.rows}

    def save(self, bank, m):
        "Under a name of its own, in place of no file that has rows which this bank never had"
        before = {o: o.read_bytes() for o in self.folder.iterdir()}
        path = Path(bank.save(self.folder))
        for o,raw in before.items():
            if o.read_bytes()!=raw: assert o==path and {r.number for r in self.files[o].rows}<=m.had, f'{self.where}: {o.name} was replaced'
        self.files[path] = m.copy()
    def save_as(self, bank, m): self.files[Path(bank.save(self.folder, f'{self.rng.choice("xyz")}.{self.rng.choice(("pkl","safetensors"))}'))] = m.copy()
    def load(self, *_):
        if path := self.a_file(): self.keep(ExperienceBank.load(path, max_size=(cap := self.rng.choice((None,None,1,4)))), self.files[path].copy(cap))
    def save_rose(self, bank, m):
        "ROSE's file of the same experiences; it says nothing of them"
        if not len(bank): return
        (path := self.folder/f'rose{self.rng.randint(0, 2)}.pkl').write_bytes(rose(list(bank), self.rng.choice((4,5))))
        os.utime(path, ns=(10**18+next(Rows.numbers)*10**9,)*2)
        self.files[path] = Rows(None, path.stem)
        self.files[path].own(list(bank))

    def copy(self, bank, m): self.keep(copy.deepcopy(bank) if self.rng.random()<.5 else pickle.loads(pickle.dumps(bank)), m.copy())
    def reader(self, bank, m):
        res = bank.reader()
        check(res, m, self.where)
        if self.rng.random()<.5: res.own_rows()
        else: res.add(e := self.kinds.new()); (m := m.copy()).own([e])
        self.keep(res, m.copy())

    def union_add(self, *_):
        if not (path := self.a_file()): return
        if len(self.unions)<3: self.unions.append((BankUnion(cap := self.rng.choice((None,5,30))), Rows(cap, None)))
        union,m = self.rng.choice(self.unions)
        new = m.unlike(self.files[path].rows, m.had)
        assert union.add(path)==len(new), f'{self.where}: of {path.name} {len(new)} rows are new'
        m.take(new)
        check(union._bank, m, f'{self.where}, union')
    def union_bank(self, *_):
        if not self.unions: return
        union,m = self.rng.choice(self.unions)
        bank = pickle.loads(pickle.dumps(union.bank))
        m.session = bank.session_id
        self.keep(bank, m.copy())
    def merge_files(self, *_):
        paths = [self.a_file() for _ in range(self.rng.randint(1, 5))]
        if not self.files: return
        cap = self.rng.choice((None,None,6,25))
        merged,again = merge_banks(paths, cap),merge_banks(self.rng.sample(paths, len(paths)), cap)
        m = Rows(cap, merged.session_id)
        for o in sorted({*paths}): m.take(m.unlike(self.files[o].rows, m.had))
        same = [Path(o.save(self.folder.parent, f'{i}.safetensors')).read_bytes() for i,o in enumerate((merged, again))]
        assert same[0]==same[1], f'{self.where}: the same files gave other bytes'
        self.keep(merged, m)

    touched = ()
    def run(self, steps):
        acts = dict(add=20, add_batch=14, merge_inplace=12, merge=5, clear=3, stamp=2, save=8, save_as=10, load=10, save_rose=3, copy=5, reader=3, union_add=12, union_bank=4, merge_files=6)
        for i in range(steps):
            bank,m = pair = self.rng.choice(self.banks)
            act,self.touched = self.rng.choices([*acts], [*acts.values()])[0],[pair]
            getattr(self, act)(bank, m)
            for o in self.touched: check(*o, f'{self.where}, act {i}, {act}')
        for o in self.banks: check(*o, f'{self.where}, at the end')
        for path,m in self.files.items(): check(ExperienceBank.load(path), m, f'{self.where}, {path.name}')
History.touched = []

cases = [pytest.param(range(6), id='few'), pytest.param(range(6, 60), id='more', marks=pytest.mark.slow), pytest.param(range(60, 1500), id='many', marks=pytest.mark.long)]

@pytest.mark.filterwarnings('ignore:Casting complex values', 'ignore:overflow encountered in cast')
@pytest.mark.parametrize('seeds', cases)
def test_banks(seeds, tmp_path, monkeypatch):
    "Whatever banks, copies, files and unions do to one another, each has its rows, bit for bit, and each row once"
    monkeypatch.setattr(logging.getLogger('fastrl.memory.bank'), 'disabled', True)
    for seed in seeds:
        (folder := tmp_path/str(seed)/'files').mkdir(parents=True)
        History(seed, folder).run(50)

# %% An episode that comes in pieces is one episode
def grown(seed, folder):
    "Three workers save their growing banks; merged in stages, in several ways, each episode has one number"
    rng,ends = random.Random(seed),{}
    workers,files = [ExperienceBank(session_id=f'w{i}') for i in range(3)],[]
    union,inplace = BankUnion(),ExperienceBank()
    def step(w):
        k = len(ends)
        ends[k] = (w, over := rng.random()<.3)
        workers[w].add(create_experience(float(k), 0, float(k), 0., over))
    for t in range(8):
        for _ in range(rng.randint(1, 9)): step(rng.randrange(3))
        for w,bank in enumerate(workers):
            if rng.random()<.5: continue
            files.append(Path(bank.save(folder, f'{t}_{w}.{rng.choice(("pkl","safetensors"))}')))
            if rng.random()<.3: workers[w] = bank = ExperienceBank.load(files[-1]) # it goes on under another name
            if rng.random()<.6: union.add(files[-1])
            if rng.random()<.6: inplace.merge_inplace(bank)
            if rng.random()<.2: inplace.merge_inplace(union.bank)
    episode,now,count = {},[0,1,2],3 # of each experience, by its number
    for k,(w,over) in ends.items():
        episode[k] = now[w]
        if over: now[w],count = count,count+1
    for o in files: union.add(o)
    (folder/'all').mkdir()
    merged = merge_banks(files)
    again = ExperienceBank.load(merged.save(folder/'all', 'm.safetensors'))
    for bank in (union.bank, inplace, merged, again):
        got = {int(e.state): i for e,i in zip(bank, bank._rows.episodes().tolist())}
        pairs = {(i, episode[k]) for k,i in got.items()}
        assert len(pairs)==len({i for i,_ in pairs})==len({e for _,e in pairs}), f'seed {seed}: {sorted(pairs)}'
    assert len(merged)==len(union.bank)

@pytest.mark.parametrize('seeds', [pytest.param(range(6), id='few'), pytest.param(range(6, 60), id='more', marks=pytest.mark.slow)])
def test_episodes_in_pieces(seeds, tmp_path):
    for seed in seeds:
        (tmp_path/str(seed)).mkdir()
        grown(seed, tmp_path/str(seed))

# %% Two copies of a bank that both go on
def in_episodes(bank): return {int(e.state): i for e,i in zip(bank, bank._rows.episodes().tolist())}

def one_step(k, over=False): return create_experience(float(k), 0, float(k), 0., over)

@pytest.mark.parametrize('first', ['original', 'copy'])
def test_copies_go_on_apart(first):
    "Whose rows came first keep the number of what both began with; those of the other are another episode"
    bank = ExperienceBank()
    for k in range(3): bank.add(one_step(k))
    both = {'original':bank, 'copy':copy.deepcopy(bank)}
    merged = ExperienceBank()
    for n in range(3): # each of them comes in pieces
        for i,o in enumerate([first, *({*both}-{first})]):
            both[o].add(one_step(10*(i+1)+n))
            merged.merge_inplace(both[o])
    n = in_episodes(merged)
    assert [{n[k] for k in ks} for ks in ((0,1,2,10,11,12), (20,21,22))]==[{n[0]}, {n[20]}] and n[0]!=n[20]

def test_own_steps_after_those_of_a_copy():
    "When the other copy's steps are merged first, our next one begins another episode"
    bank = ExperienceBank()
    for k in range(3): bank.add(one_step(k))
    ours = copy.deepcopy(bank)
    bank.add(one_step(3))
    ours.merge_inplace(bank)
    ours.add(one_step(20))
    ours.add_batch([one_step(21, True), one_step(22)])
    n = in_episodes(ours)
    assert n[0]==n[1]==n[2]==n[3]!=n[20]==n[21]!=n[22]!=n[0]
    bank.add(one_step(4))
    ours.merge_inplace(bank)
    assert in_episodes(ours)[4]==n[0]

def forked(seed, limits):
    "Banks are copied in the midst of episodes and merged at will; whatever has one number is steps of one walk"
    rng,before = random.Random(seed),{}
    def limit(): return rng.choice([None, 4, 8, 15]) if limits else None
    workers = [(ExperienceBank(limit()), None) for _ in range(3)] # and the last step of its open episode
    learners = [ExperienceBank(limit()) for _ in range(2)]
    for _ in range(60):
        w,what = rng.randrange(len(workers)),rng.random()
        bank,last = workers[w]
        if what<.5:
            before[k := len(before)] = last
            bank.add(one_step(k, over := rng.random()<.2))
            workers[w] = bank,None if over else k
        elif what<.6 and len(workers)<7: workers.append((copy.deepcopy(bank), last))
        elif what<.9: rng.choice(learners).merge_inplace(bank)
        elif what<.95: bank.merge_inplace(rng.choice(workers)[0])
        else: learners[0].merge_inplace(learners[1])
    for bank in (*learners, *(o for o,_ in workers)):
        walks = {}
        for k,i in in_episodes(bank).items() if len(bank) else (): walks.setdefault(i, set()).add(k)
        for steps in walks.values():
            way,k = set(),max(steps)
            while k is not None: way,k = way|{k},before[k]
            assert steps<=way, f'seed {seed}: {sorted(steps)}'

@pytest.mark.parametrize('limits', [False, True])
def test_copies_in_any_order(limits):
    for seed in range(40): forked(seed, limits)
