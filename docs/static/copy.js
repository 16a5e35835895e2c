// A button in the corner of each block of code, which copies it
addEventListener('DOMContentLoaded', () => {
  const shown = 'Copy', done = 'Copied';
  for (const block of document.querySelectorAll('.highlight')) {
    const code = block.querySelector('pre');
    if (!code || block.closest('.output')) continue; // nobody pastes what a cell printed
    const button = Object.assign(document.createElement('button'), {className: 'copy', textContent: shown, title: 'Copy this code'});
    button.onclick = async () => {
      const text = code.textContent.replace(/\n$/, '');
      try { await navigator.clipboard.writeText(text); }
      catch { // a page from a file may not use the clipboard
        const area = Object.assign(document.createElement('textarea'), {value: text});
        document.body.append(area); area.select(); document.execCommand('copy'); area.remove();
      }
      button.textContent = done;
      setTimeout(() => button.textContent = shown, 1500);
    };
    block.append(button);
  }
});
