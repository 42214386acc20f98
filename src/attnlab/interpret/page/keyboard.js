// Many buttons as one stop of the tab key: arrows move between them, as in a toolbar.

/**
 * @param {HTMLElement[][]} rows  the buttons as they lie on the page
 */
export function arrowKeys(rows) {
  const all = rows.flat();
  const pressed = all.find((button) => button.getAttribute("aria-pressed") === "true");
  for (const button of all) button.tabIndex = button === (pressed ?? all[0]) ? 0 : -1;
  rows.forEach((row, y) => {
    row.forEach((button, x) => {
      button.addEventListener("keydown", (event) => {
        const place = moved(event.key, y, x);
        const target = place && nearest(rows, place[0], place[1]);
        if (!target) return;
        event.preventDefault();
        for (const other of all) other.tabIndex = other === target ? 0 : -1;
        target.focus();
      });
    });
  });
}

/** The place after an arrow key, or null for another key.
 * @param {string} key @param {number} y @param {number} x @returns {[number, number] | null} */
export function moved(key, y, x) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[key];
  return step ? [y + step[0], x + step[1]] : null;
}

/** @returns {HTMLElement | undefined} */
function nearest(rows, y, x) {
  const row = rows[y];
  return row && x >= 0 ? row[Math.min(x, row.length - 1)] : undefined;
}
