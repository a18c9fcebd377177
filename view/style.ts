import { checkerCss } from './checker/style.ts'
import { simulationCss } from './simulation/style.ts'

/**
 * The style of the view. The colours are those of Okabe and Ito, which people with any colour vision can tell
 * apart; each state also has its own height or pattern in the lanes.
 */
const css = `
:host { all: initial; display: block; height: 100%; color-scheme: light dark; }
.view {
  --bg: #ffffff; --raised: #f5f6f8; --line: #d9dce1; --text: #1c1f24; --dim: #5c6370; --accent: #0072b2;
  --running: #0072b2; --runnable: #e69f00; --preempted: #d55e00; --sleeping: #c9cdd4; --locked: #cc79a7;
  --stopped: #6b7280; --moved: #009e73; --bad: #d55e00; --good: #009e73;
  font: 13px/1.45 system-ui, sans-serif; color: var(--text); background: var(--bg);
  height: 100%; min-height: 20em; overflow: hidden;
}
@media (prefers-color-scheme: dark) {
  .view {
    --bg: #14171c; --raised: #1d2128; --line: #333944; --text: #e6e8ec; --dim: #9aa2b0; --accent: #56b4e9;
    --running: #56b4e9; --runnable: #e69f00; --preempted: #f0803c; --sleeping: #3c434f; --locked: #e39cc5;
    --stopped: #8b94a3; --moved: #2fc79c; --bad: #f0803c; --good: #2fc79c;
  }
}
.app { display: flex; flex-direction: column; height: 100%; }
header {
  display: flex; flex-wrap: wrap; align-items: center; gap: 4px 16px; padding: 0 12px; min-height: 40px;
  border-bottom: 1px solid var(--line); background: var(--raised);
}
h1 { font-size: 15px; margin: 0; letter-spacing: .02em; }
h2 { font-size: 15px; margin: 0 0 8px; }
h3 { font-size: 13px; margin: 0 0 6px; }
button, input, select { font: inherit; color: inherit; }
button {
  background: var(--bg); border: 1px solid var(--line); border-radius: 5px; padding: 3px 9px; cursor: pointer;
}
button:hover:not(:disabled) { border-color: var(--dim); }
button:disabled { opacity: .5; cursor: default; }
button.danger { border-color: var(--bad); color: var(--bad); }
input, select { background: var(--bg); border: 1px solid var(--line); border-radius: 5px; padding: 3px 7px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
nav { display: flex; align-self: stretch; gap: 2px; }
nav button { background: none; border: 0; border-bottom: 2px solid transparent; border-radius: 0; padding: 0 10px; }
nav button[aria-selected=true] { border-bottom-color: var(--accent); color: var(--accent); }
.status { margin: 0 0 0 auto; color: var(--dim); }
.status strong { color: var(--text); font-weight: 600; }
.mark { border: 1px solid var(--line); border-radius: 9px; padding: 0 8px; margin-left: 4px; }
.live .mark { color: var(--good); border-color: var(--good); }
.ended .mark { color: var(--bad); border-color: var(--bad); }
main { flex: 1; min-height: 0; display: flex; flex-direction: column; }
.empty { margin: 12vh auto; max-width: 34em; padding: 0 16px; text-align: center; color: var(--dim); }
.empty h2 { color: var(--text); }
code, pre { font: 12px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { background: var(--raised); border: 1px solid var(--line); border-radius: 4px; padding: 1px 5px; }
ul { list-style: none; margin: 0; padding: 0; }
.dim { color: var(--dim); }
.timeline { display: flex; flex-direction: column; flex: 1; min-height: 0; }
.tools { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; padding: 6px 12px; border-bottom: 1px solid var(--line); }
.lanes { flex: 1; min-height: 0; width: 100%; display: block; touch-action: none; outline-offset: -2px; cursor: crosshair; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 12px; margin-left: 8px; color: var(--dim); }
.swatch { display: inline-block; width: 14px; height: 10px; border-radius: 2px; }
.swatch.running { background: var(--running); }
.swatch.runnable { background: var(--runnable); height: 5px; margin-bottom: 2px; }
.swatch.preempted { background: var(--preempted); height: 5px; margin-bottom: 2px; }
.swatch.locked { background: repeating-linear-gradient(135deg, var(--locked) 0 4px, var(--bg) 4px 5px); }
.swatch.sleeping { background: var(--dim); height: 2px; margin-bottom: 4px; }
.swatch.stopped { background: var(--stopped); height: 4px; margin-bottom: 3px; }
.figures { margin-left: auto; color: var(--dim); font-variant-numeric: tabular-nums; }
.figures strong { color: var(--bad); }
.finder { position: relative; }
.finder input { width: 15em; }
.finder ul {
  position: absolute; z-index: 2; top: 100%; left: 0; min-width: 100%; max-height: 20em; overflow: auto;
  background: var(--bg); border: 1px solid var(--line); border-radius: 5px; box-shadow: 0 4px 14px #0003;
}
.finder li { padding: 4px 8px; white-space: nowrap; cursor: pointer; }
.finder li[aria-selected=true] { background: var(--raised); }
.finder .kind { color: var(--accent); }
.details {
  display: flex; flex-wrap: wrap; align-items: center; gap: 2px 18px; box-sizing: border-box;
  height: 66px; overflow: auto; padding: 6px 12px; border-top: 1px solid var(--line); background: var(--raised);
}
.details dl { display: flex; flex-wrap: wrap; gap: 0 18px; margin: 0; }
.details dl div { display: flex; gap: 6px; }
dt { color: var(--dim); }
dd { margin: 0; font-variant-numeric: tabular-nums; }
.details button { margin-left: auto; }
.split { display: flex; flex: 1; min-height: 0; }
.tablepane { flex: 1; min-width: 0; display: flex; flex-direction: column; }
.tablepane .tools input { width: 20em; }
aside {
  width: 330px; box-sizing: border-box; overflow: auto; padding: 12px; border-left: 1px solid var(--line);
  background: var(--raised); display: flex; flex-direction: column; gap: 10px; align-items: stretch;
}
aside h2 { margin: 0; overflow-wrap: anywhere; }
.asidehead { display: flex; justify-content: space-between; gap: 8px; align-items: start; }
.table { flex: 1; overflow: auto; position: relative; outline-offset: -2px; }
.row {
  display: grid; height: 26px; align-items: center; box-sizing: border-box; border-bottom: 1px solid var(--line);
  grid-template-columns: minmax(9em, 2fr) 6em 3em 5.5em 4em 5em 9em 5em minmax(7em, 1fr); column-gap: 10px;
  padding: 0 12px; min-width: 760px;
}
.row.head { position: sticky; top: 0; z-index: 1; background: var(--raised); height: 30px; }
.row.head button { background: none; border: 0; padding: 0; text-align: left; color: var(--dim); white-space: nowrap; }
.row.head [aria-sort=ascending] button, .row.head [aria-sort=descending] button { color: var(--text); }
.rows { position: relative; min-width: 760px; }
.rows .row { position: absolute; left: 0; right: 0; cursor: pointer; }
.rows .row:hover { background: var(--raised); }
.rows .row[aria-selected=true] { background: color-mix(in srgb, var(--accent) 18%, var(--bg)); }
.row span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.row .number, .row.head .number { text-align: right; font-variant-numeric: tabular-nums; }
.row .running { color: var(--running); } .row .runnable { color: var(--runnable); }
.row .stopped { color: var(--stopped); } .row .being-killed { color: var(--bad); }
.facts { display: grid; gap: 3px; margin: 0; }
.facts div { display: grid; grid-template-columns: 8.5em 1fr; gap: 8px; }
.facts dd { overflow-wrap: anywhere; }
.controls { display: grid; gap: 6px; }
.buttons { display: flex; flex-wrap: wrap; gap: 6px; }
.said { margin: 0; min-height: 1.45em; color: var(--dim); }
.stack { margin: 0; padding: 8px; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--bg); border: 1px solid var(--line); border-radius: 5px; }
dialog { border: 1px solid var(--line); border-radius: 8px; background: var(--bg); color: var(--text); max-width: 30em; }
dialog::backdrop { background: #0006; }
dialog .buttons { justify-content: flex-end; }
.histogram { margin: 0; }
.histogram figcaption { margin-bottom: 3px; }
.histogram svg { width: 100%; display: block; }
.histogram rect { fill: var(--running); }
.histogram text { font-size: 9px; fill: var(--dim); }
.waits { margin: 0; padding: 0; list-style: none; display: grid; gap: 2px; }
.waits button { width: 100%; text-align: left; border-color: transparent; background: none; padding: 3px 6px; font-variant-numeric: tabular-nums; }
.waits button:hover { background: var(--bg); }
.scrolls { flex: 1; min-width: 0; overflow: auto; padding: 12px; display: grid; gap: 18px; align-content: start; }
.block > h2 { margin-bottom: 8px; }
.wide { overflow-x: auto; padding-bottom: 4px; }
.deadlock { border: 1px solid var(--bad); border-radius: 8px; padding: 12px; }
.deadlock h2 { color: var(--bad); }
.stacks { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 12px; }
.stacks p { margin: 4px 0; color: var(--dim); }
.drawing { display: block; max-width: none; }
.drawing .box { fill: var(--raised); stroke: var(--line); stroke-width: 1.5; }
.drawing .box.lent { stroke: var(--locked); stroke-width: 2.5; }
.drawing .box.bad { stroke: var(--bad); stroke-width: 2; }
.drawing text { font: 12px system-ui, sans-serif; fill: var(--text); }
.drawing .strong { font-weight: 600; }
.drawing .dimtext { fill: var(--dim); font-size: 11px; }
.drawing .lenttext { fill: var(--locked); font-weight: 600; }
.drawing .edge { stroke: var(--dim); stroke-width: 1.5; fill: none; }
.drawing .tip { fill: var(--dim); }
.drawing .edge.bad { stroke: var(--bad); stroke-width: 2; }
.drawing .tip.bad { fill: var(--bad); }
.drawing .edgetext { font-size: 11px; paint-order: stroke; stroke: var(--bg); stroke-width: 5px; }
.circle { display: flex; flex-wrap: wrap; gap: 12px; align-items: start; }
.circle .stacks { flex: 1; min-width: 260px; }
.counts { display: flex; flex-wrap: wrap; gap: 8px 22px; margin: 0 0 12px; }
.counts dd { font-size: 17px; }
.locks { border-collapse: collapse; width: 100%; }
.locks th { text-align: left; color: var(--dim); font-weight: 400; white-space: nowrap; }
.locks th, .locks td { padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.locks .number { text-align: right; font-variant-numeric: tabular-nums; }
.locks td button { background: none; border: 0; padding: 0; text-align: left; color: var(--accent); }
.locks tr[aria-selected=true] { background: color-mix(in srgb, var(--accent) 14%, var(--bg)); }
.queue { margin: 0; padding-left: 1.8em; list-style: decimal; }
@media (max-width: 760px) {
  .split { flex-direction: column; }
  aside { width: auto; max-height: 45%; border-left: 0; border-top: 1px solid var(--line); }
}
@media (prefers-reduced-motion: reduce) { * { scroll-behavior: auto !important; transition: none !important; } }
`

let made: CSSStyleSheet | undefined

export function sheet(): CSSStyleSheet {
  if (made === undefined) {
    made = new CSSStyleSheet()
    made.replaceSync(css + checkerCss + simulationCss)
  }
  return made
}
