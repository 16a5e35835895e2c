"""See what is in a replay memory: plots, images, and a report page

An agent that does not learn often has a memory that does not hold what you think it holds. Look at it: `plot_replay_stats` draws any column row by row, with a marker that moves through the rows, and `plot_summary` answers the first questions at a glance. `figures_to_html` puts several figures on one page, such as the frames that the agent saw, with their markers in step; `replay_report` writes the page to a file that needs no network.

Docs: https://fastrl.github.io/fastrl/memory.explore.html.md"""
from typing import Any, overload
from pathlib import Path
import numpy as np
import plotly.graph_objects as go
from ..core import *
__all__ = ['plot_script', 'get_steps', 'frame_rows', 'thin', 'plot_replay_stats', 'plot_summary', 'Page', 'figures_to_html', 'replay_report', 'plot_images']

def get_steps(maxlen: int=0, atomic: bool=False) -> tuple[list[str], dict]:
    """The names of a slider's frames, and the settings that move to them: 50 ms per frame, without a redraw
    - `maxlen`: How many frames, or with `atomic` the number of a single one
    - `atomic`: Only that one frame?
    - returns: Names, and how plotly should animate"""
    ...

def frame_rows(n: int, most: int=500) -> np.ndarray:
    """The rows that get a frame: all, or `most` at even distances
    - `n`: Rows
    - `most`: Frames"""
    ...

def thin(y: np.ndarray, most: int=5000) -> np.ndarray:
    """The points of `y` that draw the same picture as all of them
    - `y`: `(n,)`
    - `most`: Points to keep
    - returns: Indices, ascending"""
    ...

def plot_replay_stats(experience_replay, columns: Any='td_error', n_cols: int=2, most: int=500) -> go.Figure:
    """Columns of the memory row by row, with a marker that a slider moves
    - `experience_replay`: A memory, or the callback or learner that has one
    - `columns`: Names, as a list or separated by commas; `state.arm` in a nested column
    - `n_cols`: Panels side by side
    - `most`: Frames; a longer memory shows rows at even distances"""
    ...

def plot_summary(experience_replay) -> go.Figure:
    """The steps that a memory holds, how often rows are drawn, how wrong the network was, how the episodes ended
    - `experience_replay`: A memory, or the callback or learner that has one and counts its draws"""
    ...

class Page(str):
    """HTML of a whole page, which a notebook shows"""

def figures_to_html(figs, title: str='fastrl', about: str='', facts: dict | None=None) -> Page:
    """One page with all `figs`, their animations in step
    - `figs`: Plotly figures
    - `title`: Of the page
    - `about`: A paragraph under the title
    - `facts`: A table below that"""
    ...
plot_script: Any

def replay_report(experience_replay, path: Any='report.html', title: str | None=None, more: Any=()) -> Path:
    """Write a page with pictures of the memory, which needs no network, to `path`
    - `experience_replay`: A memory, or the callback or learner that has one
    - `path`: File for the page
    - `title`: By default the kind of memory and its size
    - `more`: Figures to show first"""
    ...

def plot_images(experience_replay, column: str='image', most: int=500) -> go.Figure:
    """The images of the memory as an animation
    - `experience_replay`: A memory with a column of images, or the callback or learner that has it
    - `column`: `(n,H,W,C)`, `(n,H,W)`, with colours first `(n,3,H,W)`, or stacks `(n,k,H,W)`
    - `most`: Frames; a longer memory shows rows at even distances"""
    ...
