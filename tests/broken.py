"A replay memory in a list, and one with each known mistake: NumPy only"
import numpy as np

class Right:
    "Steps, n-step rows, sequences and priorities, by the book"
    n_step,gamma = 3,.5
    def __init__(self, cap): self.cap,self.rows,self.total,self.rng = cap,[],0,np.random.default_rng(0)
    def add(self, **step):
        self.rows = [*self.rows, dict({k: self.keep(v) for k,v in step.items()}, serial=self.total, td_error=0.)][-self.cap:]
        self.total += 1
    def keep(self, v): return np.array(v)
    def choose(self, n):
        p = np.array([o['td_error']+.01 for o in self.rows])
        return self.rng.choice(len(self.rows), n, p=p/p.sum())

    def after(self, i):
        "The place of the step after that at `i`, if there is one"
        o = self.rows[i]
        if o['terminated'] or o['truncated']: return None
        return next((j for j in range(i+1, len(self.rows)) if self.rows[j]['env_id']==o['env_id']), None)
    def run(self, i, n):
        res = [i]
        while len(res)<n and (j := self.after(res[-1])) is not None: res.append(j)
        return res
    def fold(self, run):
        o,last = self.rows[run[0]],self.rows[run[-1]]
        return {**o, **{k: last[k] for k in ('next_state','terminated','truncated')}, 'n_steps':len(run),
                'reward':sum(self.gamma**k*self.rows[j]['reward'] for k,j in enumerate(run))}

    def stack(self, rows): return {k: np.stack([o[k] for o in rows]) for k in rows[0]}
    def sample(self):
        at = self.choose(8)
        return self.stack([self.fold(self.run(i, self.n_step)) for i in at]),at
    def sample_sequences(self, bs, T):
        runs = [o for o in (self.run(i, T) for i in range(len(self.rows))) if len(o)==T]
        return self.stack([self.stack([self.rows[i] for i in runs[self.rng.integers(len(runs))]]) for _ in range(bs)])
    def update_td(self, td_errors, idxs, serials):
        for td,i,s in zip(td_errors[:,0], idxs, serials):
            if self.rows[i]['serial']==s: self.rows[i]['td_error'] = float(td)

class rows(Right):
    "Rewards of other rows"
    def sample(self):
        b,i = super().sample()
        return {**b, 'reward':np.roll(b['reward'], 1)},i

class time_limit(Right):
    "A time limit ends the value, too"
    def fold(self, run):
        o = super().fold(run)
        return {**o, 'terminated':o['terminated'] or o['truncated']}

class next_row(Right):
    "The next state is the state of the next row, whatever that is"
    n_step = 1
    def fold(self, run): return {**super().fold(run), 'next_state':self.rows[(run[-1]+1)%len(self.rows)]['state']}

class terminal(Right):
    "A true end is forgotten"
    def fold(self, run): return {**super().fold(run), 'terminated':False}

class last_state(Right):
    "There is no observation after a true end"
    def fold(self, run):
        o = super().fold(run)
        return {**o, 'next_state':0*o['next_state']-1} if o['terminated'] else o

class write_cursor(Right):
    "The newest row is followed by the oldest one"
    def after(self, i):
        o,j = self.rows[i],super().after(i)
        others = any(x['env_id']!=o['env_id'] for x in self.rows)
        return 0 if j is None and i==len(self.rows)-1 and len(self.rows)==self.cap>1 and not (others or o['terminated'] or o['truncated']) else j

class overwritten(Right):
    "One row too many is kept"
    def __init__(self, cap): super().__init__(cap+1)

class episodes(Right):
    "Sequences go on after an episode"
    def sample_sequences(self, bs, T):
        if any(o['env_id'] for o in self.rows): return super().sample_sequences(bs, T)
        return self.stack([self.stack(self.rows[i:i+T]) for i in self.rng.integers(0, len(self.rows)-T+1, bs)])

class environments(Right):
    "The next row is the next step, whatever its environment"
    def after(self, i):
        o = self.rows[i]
        return i+1 if i+1<len(self.rows) and not (o['terminated'] or o['truncated']) else None

class aliasing(Right):
    "Arrays are kept as they come"
    def keep(self, v): return np.asarray(v)

class aliasing_out(Right):
    "A batch shows the memory's own array"
    n_step = 1
    def sample(self):
        i = self.choose(1)
        return {k: np.asarray(v)[None] for k,v in self.fold([i[0]]).items()},i

class late_priorities(Right):
    "An update goes wherever its row once was"
    def update_td(self, td_errors, idxs, serials):
        for td,i in zip(td_errors[:,0], idxs): self.rows[i]['td_error'] = float(td)

class wrong_priorities(Right):
    "An update goes to the row beside it"
    def update_td(self, td_errors, idxs, serials):
        super().update_td(td_errors, (np.asarray(idxs)+1)%len(self.rows), [self.rows[(i+1)%len(self.rows)]['serial'] for i in idxs])

class random_state(Right):
    "Draws come from NumPy's global generator"
    def choose(self, n):
        p = np.array([o['td_error']+.01 for o in self.rows])
        return np.random.choice(len(self.rows), n, p=p/p.sum())
