import { checkerCss } from './checker/style.ts'

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
@media (prefers-reduced-motion: reduce) { * { scroll-behavior: auto !important; transition: none !important; } }
`

let made: CSSStyleSheet | undefined

export function sheet(): CSSStyleSheet {
  if (made === undefined) {
    made = new CSSStyleSheet()
    made.replaceSync(css + checkerCss)
  }
  return made
}
