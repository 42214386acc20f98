// How <attention-view> looks. Its colours are those of the lab's pages, light and dark.

export const STYLE = `
:host {
  --ink: #1a202c; --soft: #4a5568; --faint: #a0aec0; --line: #cbd5e0; --panel: #ffffff;
  --low: #ffffff; --high: #174a85; --row: #2b6cb0; --column: #b7500f;
  display: block; color: var(--ink);
}
@media (prefers-color-scheme: dark) {
  :host {
    --ink: #edf2f7; --soft: #cbd5e0; --faint: #718096; --line: #4a5568; --panel: #1a202c;
    --low: #171d29; --high: #9bd0ff; --row: #63b3ed; --column: #f6ad55;
  }
}
h2 { font-size: 1.2rem; margin: 1.8rem 0 .4rem; }
p { margin: .4rem 0; }
.remark, .said { color: var(--soft); font-size: .92rem; }
.controls { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center; margin: .8rem 0; }
.controls label { display: inline-flex; gap: .4rem; align-items: center; cursor: pointer; }
.choice { border: 0; margin: 0; padding: 0; display: inline-flex; gap: 1rem; }
.choice legend { float: left; margin-right: .2rem; padding: 0; color: var(--soft); }
.grid { overflow: auto; max-height: 36rem; padding: .4rem .9rem; }
.layer { display: flex; align-items: center; gap: 6px; margin-bottom: 6px; width: max-content; }
.layer.heads { position: sticky; top: -.4rem; z-index: 2; margin: -.4rem 0 .2rem; padding-top: .4rem; }
.layer.heads { background: var(--panel); }
.layer[hidden] { display: none; }
.layer > .name { position: sticky; left: -.9rem; z-index: 1; flex: 0 0 auto; min-width: var(--name); padding: 0 .5rem; }
.layer > .name { margin-left: -.5rem; background: var(--panel); color: var(--soft); font-size: .85rem; }
.layer > .number { flex: 0 0 auto; width: calc(var(--thumb) + 10px); text-align: center; }
.layer > .number { color: var(--soft); font-size: .8rem; line-height: 1.2; }
button { font: inherit; color: inherit; cursor: pointer; }
.thumb { flex: 0 0 auto; padding: 2px; line-height: 0; }
.thumb, .token { background: none; border: 2px solid transparent; border-radius: 4px; }
.thumb canvas { border: 1px solid var(--line); }
.thumb:hover { border-color: var(--faint); }
.thumb[aria-pressed="true"] { border-color: var(--column); }
:focus-visible { outline: 3px solid var(--row); outline-offset: 1px; }
.text, .panel, .grid { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; }
.text { position: relative; padding: .4rem .9rem; }
.text .line { line-height: 4.2rem; }
.text .side { color: var(--soft); font-size: .85rem; margin-right: .6rem; }
.text svg { position: absolute; inset: 0; width: 100%; height: 100%; pointer-events: none; overflow: visible; }
.text path { fill: none; stroke-linecap: round; }
.text path.takes { stroke: var(--row); }
.text path.gives { stroke: var(--column); }
.token { display: inline-block; line-height: 1.3; padding: 0 .2em; margin: 0; }
.token { font-family: ui-monospace, monospace; font-size: .92rem; }
.token.special { color: var(--soft); font-style: italic; }
.token.hidden { opacity: .45; text-decoration: line-through; }
.token.key { border-color: var(--column); font-weight: 700; }
.token.query { border-color: var(--row); font-weight: 700; }
.large { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; margin-top: 1rem; }
.large figure { margin: 0; padding: 4px; box-sizing: border-box; overflow: auto; max-width: 100%; }
.large figcaption { color: var(--soft); font-size: .85rem; margin-top: .3rem; }
.large canvas { cursor: crosshair; display: block; }
.panel { flex: 1 1 20rem; min-width: min(20rem, 100%); box-sizing: border-box; padding: .5rem 1rem; }
h3 { font-size: 1.05rem; margin: 1rem 0 .3rem; }
.readout { min-height: 3.2em; }
.steps { padding-left: 1.4rem; margin: .4rem 0; }
.steps li { margin: .55rem 0; }
.steps output { font-weight: 700; font-variant-numeric: tabular-nums; }
.steps small { display: block; color: var(--soft); font-size: .85em; overflow-wrap: anywhere; }
`;
