"One DQN learns from four environments that explore differently: `run_me.py [embedded|dask|asyncflow]`"
import asyncio, logging, sys
from contextlib import asynccontextmanager
from pathlib import Path
from fastrl.parallel import GREATER_THAN_THRESHOLD, ParallelExperience

code_path = f'{sys.executable} {Path(__file__).parent}'

@asynccontextmanager
async def engine_of(kind):
    "The engine that runs the environments"
    if kind=='embedded': yield None
    elif kind=='dask':
        from distributed import Client, LocalCluster
        with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=':0') as cluster, Client(cluster) as client: yield client
    elif kind=='asyncflow':
        from radical.asyncflow import LocalExecutionBackend, WorkflowEngine
        engine = await WorkflowEngine.create(await LocalExecutionBackend())
        try: yield engine
        finally: await engine.shutdown()
    else: raise SystemExit(f'the engine should be embedded, dask or asyncflow, got {kind!r}')

async def main(kind='embedded', work_dir='parallel_cartpole'):
    async with engine_of(kind) as engine:
        pe = ParallelExperience(engine, work_dir=work_dir, timeout=60, seed=1)

        @pe.environment_task(name='calm')
        async def calm(*args): return f'{code_path}/environment.py eps=0.02'
        @pe.environment_task(name='curious')
        async def curious(*args): return f'{code_path}/environment.py eps=0.1'
        @pe.environment_task(name='bold')
        async def bold(*args): return f'{code_path}/environment.py eps=0.3'
        @pe.environment_task(name='wild')
        async def wild(*args): return f'{code_path}/environment.py eps=0.6'

        @pe.update_task
        async def update(*args): return f'{code_path}/update.py'

        @pe.as_stop_criterion(metric_name='MODEL_REWARD', threshold=200, operator=GREATER_THAN_THRESHOLD)
        async def check_reward(*args): return f'{code_path}/check_reward.py'

        return await pe.learn(40)

if __name__=='__main__':
    logging.basicConfig(level=logging.INFO, format='%(message)s')
    logging.getLogger('distributed').setLevel(logging.WARNING)
    state = asyncio.run(main(*sys.argv[1:]))
    print(f'After {state.iteration+1} iterations and {state.size:,} steps the pole stands for {state.metric:.0f} steps')
