"""Modules:

- `fastrl.agents.dqn`: A deep Q network that learns from the memory, as fastai callbacks
- `fastrl.cli`: `fastrl train`, `explore`, `info`, `verify`, `merge`: the memory from a terminal
- `fastrl.core`: A batch is a dict of tensors with one batch axis, and a test that looks at shape and dtype too
- `fastrl.data.block`: An endless stream of experience, made by callbacks
- `fastrl.data.gym`: Steps of gymnasium environments, one or many, as a stream of true transitions
- `fastrl.memory.bank`: Experience that many workers collect, each into a bank of its own, to be saved, merged and drawn from
- `fastrl.memory.buffer`: A replay buffer of typed columns, as Velora's agents use it
- `fastrl.memory.check`: Hold any memory, also one of your own, to what a memory has to keep
- `fastrl.memory.checkpoint`: Write a memory to a folder, and the next time only what is new
- `fastrl.memory.columns`: Give each column of a batch the form it has in a replay memory
- `fastrl.memory.disk`: Save a memory so that nothing is lost and nothing is run: safetensors and JSON, complete or absent
- `fastrl.memory.episodes`: Whole episodes in memory or in files, and batches of sequences from them, drawn by one process or by many
- `fastrl.memory.experience_replay`: A replay memory in a fastai `Learner`: what comes in is remembered, what is learnt from is drawn
- `fastrl.memory.explore`: Pictures of what is in a memory
- `fastrl.memory.files`: Write tensors, and the data around them, to files that are complete or absent, and run nothing when they are read
- `fastrl.memory.manifest`: Replace a folder of files in one step, and check everything that a folder claims
- `fastrl.memory.place`: Where rows live: in memory, in shared memory, in a file, or on a device
- `fastrl.memory.replay`: A replay buffer for any training loop: add steps, draw batches, update TD errors
- `fastrl.memory.ring`: The one store: packed rows; when it is full, the newest replaces the oldest
- `fastrl.memory.row`: Pack the fields of a step side by side into one row, and check every step before it is stored
- `fastrl.memory.sample`: Which rows of a memory are drawn
- `fastrl.memory.saved`: Read a memory that was saved to a folder, and trust nothing in it
- `fastrl.memory.serial`: Which rows are stored, which number each one has, and where one does not follow another
- `fastrl.memory.tree`: Draw by priority among a million rows, and change priorities, in microseconds
- `fastrl.memory.vector`: Number the episodes and steps of vector environments, and tell true steps from resets
- `fastrl.memory.walk`: Which row follows which, and what several steps in a row make
- `fastrl.parallel`: Many environments collect at once, each on its own; what they bring is merged, learnt from and tested, until it is good enough"""

__version__ = "0.1.0"
