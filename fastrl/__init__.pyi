"""Modules:

- `fastrl.agents.dqn`: A deep Q-network that learns from a replay memory, as fastai callbacks
- `fastrl.agents.nets`: Networks that give each action a value, and a quick way to ask small ones
- `fastrl.bank_folder`: A folder of banks that only grows: each task adds one file, whole or not at all, and the memory is all of them merged
- `fastrl.cli`: `fastrl train`, `explore`, `info`, `verify`, `merge`: replay memories from a terminal
- `fastrl.compat`: The replay buffer of cleanrl's scripts, without stable-baselines3
- `fastrl.core`: Batches are dicts of tensors with one batch axis, and tests compare shape and dtype, too
- `fastrl.data.block`: An endless stream of experience, made by callbacks
- `fastrl.data.envs`: Open one gymnasium environment or a vector of them, and begin each episode the way it does
- `fastrl.data.gym`: Steps of gymnasium environments, one or many, as a stream of true transitions
- `fastrl.data.learner`: Train on a stream, validate by playing: the `DataLoaders` of a `Source`
- `fastrl.data.steps`: Arrays for blocks of steps, in the form of any space
- `fastrl.engines`: Run an environment task wherever you have processors: in processes of this machine, on a Dask cluster, or with asyncflow
- `fastrl.learner_config`: Change the arguments of a learner's tasks, for a whole run or from one iteration to the next
- `fastrl.memory.ahead`: Draw the next batches in a thread while the network learns from this one
- `fastrl.memory.alike`: A batch whose columns have the store's names and shapes, and dtypes that lose nothing, is copied with few questions
- `fastrl.memory.bank`: Collect experience in many workers, each into its own bank, then save, merge and draw from them
- `fastrl.memory.bank_frames`: Store each frame of a bank once, whoever brings it, and give it up when no row has it any more
- `fastrl.memory.bank_rows`: Keep experiences in a ring, with a form and a text for each, and let no interrupt tear them apart
- `fastrl.memory.bankfile`: Write the columns of a bank to a file, and read back what is sound
- `fastrl.memory.buffer`: A replay buffer of typed columns, as Velora's agents use it
- `fastrl.memory.check`: Check any memory, including yours, against what a replay memory must guarantee
- `fastrl.memory.checkpoint`: Write a memory to a folder, and the next time only what is new
- `fastrl.memory.columns`: Give each column of a batch the form it has in a replay memory
- `fastrl.memory.dataset`: What all datasets of episodes share: they take whole episodes, make room, count, and give them back
- `fastrl.memory.disk`: Save a memory so that nothing is lost and nothing is run: safetensors and JSON, complete or absent
- `fastrl.memory.episode_files`: Episodes in files, one each: more than memory holds, and safe from crashes
- `fastrl.memory.episode_rows`: Episodes in memory, in shared memory, or in one mapped file
- `fastrl.memory.episodes`: Whole episodes in memory or in files, and batches of sequences from them, drawn by one process or by many
- `fastrl.memory.experience_replay`: Put a replay buffer into a fastai `Learner`: it remembers every live batch and trains on drawn ones
- `fastrl.memory.explore`: See what is in a replay memory: plots, images, and a report page
- `fastrl.memory.files`: Write tensors, and the data around them, to files that are complete or absent, and run nothing when they are read
- `fastrl.memory.folds`: Let a draw give n-step returns, though each row was stored as one step
- `fastrl.memory.forms`: Turn experiences of any kind into columns of numbers, and back into what they were
- `fastrl.memory.frames`: Store each frame of a stack once
- `fastrl.memory.joins`: Copy rows from one ring to another, and keep which row follows which
- `fastrl.memory.limit`: Let actors and learners in several threads keep pace
- `fastrl.memory.loader`: Batches of sequences without end, drawn by this process or by several workers
- `fastrl.memory.manifest`: Replace a folder of files in one step, and check everything that a folder claims
- `fastrl.memory.mixture`: Draw each batch from several memories, a fixed share from each
- `fastrl.memory.moment`: A copy has the rows of one moment, though another process writes while it is made
- `fastrl.memory.on_device`: Let a memory on a GPU draw, and learn TD errors, without waiting for the GPU
- `fastrl.memory.place`: Where rows live: in memory, in shared memory, in a file, or on a device
- `fastrl.memory.positions`: How many steps come before and after a row, and which row is so many steps further
- `fastrl.memory.random`: Random numbers by their place in a stream, so that a compiled loop makes them where it needs them
- `fastrl.memory.recorded`: Record what a draw gives a GPU to do, and hand it over as one piece of work from then on
- `fastrl.memory.replay`: A replay buffer for any training loop: add steps, draw batches, update TD errors
- `fastrl.memory.returns`: What the next few rewards of a row are worth together
- `fastrl.memory.ring`: The one store: packed rows; when it is full, the newest replaces the oldest
- `fastrl.memory.rollout`: Epochs over all rows or sequences, and advantages by GAE, for PPO and others that learn from what they just did
- `fastrl.memory.row`: Pack the fields of a step side by side into one row, and check every step before it is stored
- `fastrl.memory.running`: Steps that wait until their episode ends
- `fastrl.memory.sample`: Which rows of a memory are drawn
- `fastrl.memory.saved`: Read a memory that was saved to a folder, and trust nothing in it
- `fastrl.memory.seen`: Tell which rows of saved banks came before, so that each is merged once
- `fastrl.memory.serial`: Which rows are stored, which number each one has, and where one does not follow another
- `fastrl.memory.slots`: Shared memory through which a worker hands its blocks to the process that trains
- `fastrl.memory.split`: Which episode each row is of, and two memories that share none
- `fastrl.memory.stacks`: Tell which frames of a stack came before, and which are new
- `fastrl.memory.starts`: Draw sequences of steps by the TD errors of their steps
- `fastrl.memory.stream`: Consecutive chunks of episodes, with the state carried from one batch to the next
- `fastrl.memory.table`: Which episodes are stored, and which sequences of them make the next batch
- `fastrl.memory.td_errors`: Which rows a learner's answer is for, and whether it can be stored
- `fastrl.memory.tensors`: The compiled loops of a draw once more, as tensor operations, for rows that live on a GPU
- `fastrl.memory.told`: Of which environment and episode a row is, which step, and whether it is the last; and whether one observation continues another
- `fastrl.memory.tree`: Draw by priority among a million rows, and change priorities, in microseconds
- `fastrl.memory.turn`: One process at a time adds rows that several processes see; a second one gets an error
- `fastrl.memory.unpickle`: Read pickles of plain objects without running anything they ask for
- `fastrl.memory.updates`: Draw, predict and step several times for each batch of new rows
- `fastrl.memory.vector`: Number the episodes and steps of vector environments, and tell true steps from resets
- `fastrl.memory.walk`: Which row follows which, and what several steps in a row make
- `fastrl.memory.windows`: Gather the frames of two stacks as one window, and show it twice
- `fastrl.memory.writer`: Compile functions for rows of known fields: one writes a row, one reads a batch
- `fastrl.offline`: Read Minari datasets and D4RL's arrays into a replay memory, and write a memory as a Minari dataset
- `fastrl.parallel`: Many environments collect at once; their banks are merged, learnt from and tested, until the result is good enough
- `fastrl.pytest_plugin`: Make every known mistake of replay buffers a test of yours
- `fastrl.run_state`: What an iteration brought, whether that is good enough, and where the next run resumes
- `fastrl.sb3`: The replay buffers of stable-baselines3, with priorities, n-step returns of any observation, and hindsight
- `fastrl.supervisor`: Run a command or a Python function in a process of its own that never outlives you, and that leaves nothing behind
- `fastrl.tasks`: Write an environment, an update or a test as a Python function, or as a command that starts a program of yours"""
from .memory.replay import ExperienceReplay as ExperienceReplay
from .memory.replay import ExperienceReplayException as ExperienceReplayException
from .memory.replay import MemoryNotWarm as MemoryNotWarm
from .memory.experience_replay import ExperienceReplayCallback as ExperienceReplayCallback
from .memory.experience_replay import Resume as Resume
from .memory.saved import Saved as Saved
from .memory.sample import Uniform as Uniform
from .memory.sample import Prioritized as Prioritized
from .memory.sample import HER as HER
from .memory.sample import Mixture as Mixture
from .memory.ring import Ring as Ring
from .core import BD as BD
from .data.block import Source as Source
from .data.gym import GymLoop as GymLoop
from .data.gym import FirstLast as FirstLast
from .memory.buffer import ReplayBuffer as ReplayBuffer
from .memory.episodes import EpisodeReplay as EpisodeReplay
from .memory.episodes import RingBufferDataset as RingBufferDataset
from .memory.episodes import IndividualFileDataset as IndividualFileDataset
from .memory.bank import ExperienceBank as ExperienceBank
from .memory.bank import Experience as Experience
from .memory.bank import create_experience as create_experience
from .memory.explore import plot_summary as plot_summary
from .memory.explore import plot_replay_stats as plot_replay_stats
from .memory.explore import plot_images as plot_images
from .memory.explore import replay_report as replay_report
from .parallel import ParallelExperience as ParallelExperience
from .memory.check import check_memory as check_memory
from .agents.dqn import dqn_learner as dqn_learner
__version__: str
