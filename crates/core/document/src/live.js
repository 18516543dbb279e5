const live = document.getElementById('live'), state = document.getElementById('state');
const sorted = new Map();
const name = table => table.caption ? table.caption.textContent : '';
const value = text => {
  const found = text.match(/^\*?([0-9.]+) ?([kMGT]?)/);
  return found ? found[1] * { '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12 }[found[2]] : -1;
};
function sort(table) {
  const [column, turn] = sorted.get(name(table)) || [];
  if (column === undefined) return;
  const isNumber = table.tHead.rows[0].cells[column].className.includes('words') === false;
  const order = (a, b) => isNumber ? value(a) - value(b) : a.localeCompare(b, undefined, { numeric: true });
  const text = row => row.cells[column].textContent;
  const rows = [...table.tBodies[0].rows].sort((a, b) => turn * order(text(a), text(b)));
  table.tBodies[0].append(...rows);
  table.tHead.rows[0].cells[column].ariaSort = turn > 0 ? 'ascending' : 'descending';
}
function prepare() {
  for (const table of live.querySelectorAll('table')) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement('button');
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.onclick = () => {
        const [before, turn] = sorted.get(name(table)) || [];
        sorted.set(name(table), [column, before === column ? -turn : 1]);
        sort(table);
      };
    });
    sort(table);
  }
}
async function load() {
  try {
    const response = await fetch('/status/live');
    if (!response.ok) throw response.status;
    const focused = document.activeElement && document.activeElement.textContent;
    live.innerHTML = await response.text();
    prepare();
    [...live.querySelectorAll('th button')].find(button => button.textContent === focused)?.focus();
    state.textContent = '';
  } catch {
    state.textContent = 'Not connected. These values are old.';
  }
  setTimeout(load, 1000);
}
prepare();
load();
