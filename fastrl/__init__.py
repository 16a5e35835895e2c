"""Modules:

- `fastrl.agents.dqn`: A deep Q-network that learns from a replay memory, as fastai callbacks
- `fastrl.cli`: `fastrl train`, `explore`, `info`, `verify`, `merge`: replay memories from a terminal
- `fastrl.core`: A batch is a dict of tensors with one batch axis, and a test that looks at shape and dtype too
- `fastrl.data.block`: An endless stream of experience, made by callbacks
- `fastrl.data.envs`: Open one gymnasium environment or a vector of them, and begin each episode the way it does
- `fastrl.data.gym`: Steps of gymnasium environments, one or many, as a stream of true transitions
- `fastrl.data.steps`: Arrays for blocks of steps, in the form of any space
- `fastrl.memory.bank`: Experience that many workers collect, each into a bank of its own, to be saved, merged and drawn from
- `fastrl.memory.buffer`: Steps as typed columns, in the form that Velora's agents use
- `fastrl.memory.check`: Check any memory, including yours, against what a replay memory must guarantee
- `fastrl.memory.checkpoint`: Write a memory to a folder, and the next time only what is new
- `fastrl.memory.disk`: Save a memory so that nothing is lost and nothing is run: safetensors and JSON, complete or absent
- `fastrl.memory.episodes`: Whole episodes in memory or in files, and batches of sequences from them, drawn by one process or by many
- `fastrl.memory.experience_replay`: Put a replay buffer into a fastai `Learner`: it remembers every live batch and trains on drawn ones
- `fastrl.memory.explore`: See what is in a replay memory: plots, images, and a report page
- `fastrl.memory.files`: Write tensors, and the data around them, to files that are complete or absent, and run nothing when they are read
- `fastrl.memory.manifest`: Replace a folder of files in one step, and check everything that a folder claims
- `fastrl.memory.place`: Where rows live: in memory, in shared memory, in a file, or on a device
- `fastrl.memory.replay`: What an agent remembers, and draws batches from, in any training loop
- `fastrl.memory.ring`: The one store: packed rows; when it is full, the newest replaces the oldest
- `fastrl.memory.row`: Pack the fields of a step side by side into one row, and check every step before it is stored
- `fastrl.memory.sample`: Which rows of a memory are drawn
- `fastrl.memory.saved`: Read a memory that was saved to a folder, and trust nothing in it
- `fastrl.memory.serial`: Which rows are stored, which number each one has, and where one does not follow another
- `fastrl.memory.tree`: Draw by priority among a million rows, and change priorities, in microseconds
- `fastrl.memory.walk`: Which row follows which, and what several steps in a row make
- `fastrl.parallel`: Many environments collect at once, each on its own; what they bring is merged, learnt from and tested, until it is good enough"""

__version__ = "0.1.0"
